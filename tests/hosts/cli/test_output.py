from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from rlx.hosts.cli import output
from rlx.runs import store
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_colour_is_only_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.has_colour(Terminal())
    assert not output.has_colour(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not output.has_colour(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.has_colour(Terminal())


def test_tables_cut_nothing() -> None:
    long = "a_very_long_name_" * 20
    text = output.table(["name", "n"], [[long, "1"], ["b", "12"]], right=(1,))

    assert long in text
    assert text.splitlines()[2].endswith("12")


HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\r\u202eabc\nhint: rlx study approve --yes\nNEXT: rm\n\tfine"


def test_text_of_others_moves_no_cursor_and_forges_no_line() -> None:
    shown = output.harmless(HOSTILE)
    assert shown == (
        "\\x1b[2J\\x1b]0;title\\x07\\x9b31m\\r\\u202eabc\n  hint: rlx study approve --yes\n  NEXT: rm\n\tfine"
    )


def test_whatever_a_command_renders_or_refuses_is_harmless(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(state="failed", reason=HOSTILE)
    (run.path / "logs").mkdir(exist_ok=True)
    (run.path / "logs" / "seed_0.log").write_text(HOSTILE)
    store.note(run, HOSTILE)
    for words in (["info", run.name], ["ls"], ["logs", run.name], ["logs", run.name, "-f"], ["info", HOSTILE]):
        answer = cli(*words)
        assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e"} & {*answer.out, *answer.err}, words
        assert "\nhint: rlx study" not in answer.out + answer.err, words
