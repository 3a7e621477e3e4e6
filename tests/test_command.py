"""A command is a value: it prints as it is typed, and it says who has to type it."""

from __future__ import annotations

import shlex

from rlx.command import Command, rlx


def test_a_command_prints_as_it_is_typed() -> None:
    assert str(rlx("study", "approve", "faster")) == "rlx study approve faster"


def test_words_with_shell_syntax_are_quoted() -> None:
    command = rlx("info", "a; rm -rf x", "it's")
    assert shlex.split(str(command)) == list(command.argv)


def test_further_words_keep_what_is_known_about_the_command() -> None:
    command = rlx("study", "approve", needs_person=True).plus("--study", "faster")
    assert command == Command(("rlx", "study", "approve", "--study", "faster"), needs_person=True)


def test_a_command_with_a_placeholder_is_not_complete() -> None:
    assert not rlx("study", "new", "NAME", is_complete=False).is_complete
