from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlx.runs import store
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_tags_are_removed(cli: Cli, make_run: MakeRun) -> None:
    store.tag(make_run(), "a", "b")

    assert cli("untag", "cartpole_001", "a").out == "cartpole_001: b\n"
    assert cli("untag", "cartpole_001", "b").out == "cartpole_001: no tags\n"


def test_a_tag_the_run_does_not_have_is_refused(cli: Cli, make_run: MakeRun) -> None:
    store.tag(make_run(), "a")

    answer = cli("untag", "cartpole_001", "a", "c")

    assert answer.code == 2
    assert "is not tagged `c`" in answer.err
    assert cli("info", "cartpole_001", "--json").data["tags"] == ["a"]
