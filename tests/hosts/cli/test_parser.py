from __future__ import annotations

import subprocess
import sys

import pytest

from rlx.errors import UsageError
from rlx.hosts.cli.parser import Parser, leaves, parser_of


def test_a_mistake_is_our_error_with_the_way_to_help() -> None:
    with pytest.raises(UsageError, match="invalid choice") as error:
        parser_of("completion").parse_args(["powershell"])

    assert error.value.hint == "rlx completion --help"


def test_the_leaves_are_the_parsers_that_end_a_command_line() -> None:
    parser = Parser(prog="rlx config")
    assert leaves(parser) == [parser]

    actions = parser.add_subparsers()
    children = [actions.add_parser("show"), actions.add_parser("check")]
    assert leaves(parser) == children
    assert all(isinstance(child, Parser) for child in children)


def test_parsing_does_not_import_shutil() -> None:
    code = "import sys; from rlx.hosts.cli.parser import parser_of; parser_of('ls'); print('shutil' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_a_sub_command_s_mistake_leads_to_its_own_help() -> None:
    with pytest.raises(UsageError, match="unrecognized arguments: --bogus") as error:
        parser_of("study").parse_args(["rehearse", "--bogus"])

    assert error.value.hint == "rlx study rehearse --help"


def test_a_value_may_begin_with_a_dash_as_it_is_typed() -> None:
    task = parser_of("task").parse_args(["new", "reach", "--override", "--set={key}={value}", "--train", "-x y"])
    study = parser_of("study").parse_args(["new", "x", "--guard", "-energy:2", "--guard", "-1 * falls", "--seeds", "9"])
    short = parser_of("study").parse_args(["amend", "-s", "-odd=1", "--json"])

    assert (task.override, task.train) == ("--set={key}={value}", "-x y")
    assert (study.guard, study.seeds) == (["-energy:2", "-1 * falls"], 9)
    assert (short.set, short.json) == (["-odd=1"], True)


def test_an_option_is_never_another_one_s_value() -> None:
    with pytest.raises(UsageError, match="--guard: expected one argument"):
        parser_of("study").parse_args(["new", "x", "--guard", "--seeds", "9"])


def test_a_setting_without_its_option_is_told_the_option() -> None:
    with pytest.raises(UsageError, match="unrecognized arguments") as error:
        parser_of("train").parse_args(["a.yaml", "algo.gamma=0.9"])

    assert error.value.hint == "a setting needs -s: -s algo.gamma=0.9"


def test_a_misspelled_choice_is_told_the_closest_one() -> None:
    with pytest.raises(UsageError, match="invalid choice: 'cvs'") as error:
        parser_of("import").parse_args(["x", "--as", "cvs"])

    assert error.value.hint == "did you mean `csv`?"
