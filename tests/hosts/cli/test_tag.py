from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_tags_are_added_and_shown(cli: Cli, make_run: MakeRun) -> None:
    make_run()

    assert cli("tag", "cartpole_001", "good", "two words").out == "cartpole_001: good two words\n"
    assert cli("tag", "cartpole", "good", "--json").data == {
        "schema": 1, "run": "cartpole_001", "tags": ["good", "two words"],
    }  # fmt: skip


@pytest.mark.parametrize("tag", ["", "  ", "a\nb", "\x1b[31m"])
def test_a_tag_that_would_break_a_list_is_refused(cli: Cli, make_run: MakeRun, tag: str) -> None:
    run = make_run()

    assert cli("tag", run.name, tag).code == 2
    assert Run(run.path).tags == ()


def test_an_unknown_run_is_not_tagged(cli: Cli, make_run: MakeRun) -> None:
    make_run()

    answer = cli("tag", "cartpole_002", "x")

    assert answer.code == 3
    assert "did you mean `cartpole_001`?" in answer.err
