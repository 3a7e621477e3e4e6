"""Runs read as the sides of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.compare.code import Codes
from rlx.compare.evidence import evaluate_command, side_of
from rlx.compare.reports import Report
from rlx.runs import store
from rlx.runs.run import Run
from tests.evaluate.linear import GOOD, POOR, make_run

ENV = {"id": "CartPole-v1", "kwargs": {}, "wrappers": []}


def report(score: float = 1.0, **fields: Any) -> Report:
    protocol = {"env": ENV, "episodes": 20}
    return Report(**{"score": score, "step": 1024, "time": 1.0, "episodes": 20, "protocol": protocol, "random": None,
                     "figures": {}, **fields})  # fmt: skip


def test_a_run_is_read_with_its_order_weights_code_versions_and_floor(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {5: GOOD, 2: POOR})
    side = side_of(run, {5: report(500.0, random=21.0), 2: report(90.0)}, like=run, codes=Codes(tmp_path))
    assert [(one.seed, one.score, one.fate) for one in side.ordered] == [(5, 500.0, "scored"), (2, 90.0, "scored")]
    assert (side.floor, side.phase, side.planned_steps) == (21.0, None, 1024)
    assert len({one.weights for one in side.trainings}) == 2
    assert all(one.weights and len(one.weights) == 64 for one in side.trainings)
    assert side.codes == ["code e3b0c442"]  # of no files
    assert "numpy" in side.versions[0]


def test_a_seed_without_checkpoint_has_no_weights_and_one_without_report_no_score(tmp_path: Path) -> None:
    run = store.add_seeds(make_run(tmp_path, "a", {0: GOOD}, names=()), [1])
    side = side_of(run, {0: report()}, like=run, codes=Codes(tmp_path))
    assert [(one.weights, one.score, one.state) for one in side.ordered] == [
        (None, 1.0, "completed"), (None, None, "prepared"),
    ]  # fmt: skip


def test_how_a_seed_failed_and_what_a_study_wants_it_for_are_read(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD}, names=())
    row = {"event": "failed", "time": 3.0, "reason": "loss is nan", "kind": "Diverged"}
    files.append_line(run.path / "seed_0" / "events.jsonl", files.encode(row))
    path = run.path / "metadata.json"
    files.write_json(path, {**files.read_json(path), "lineage": {"phase": "confirm"}})
    side = side_of(Run(run.path), {0: report()}, like=run, codes=Codes(tmp_path))
    (one,) = side.trainings
    assert (one.fate, one.error, one.reason, side.phase) == ("crashed", "Diverged", "loss is nan", "confirm")


@pytest.mark.parametrize(
    ("changes", "episodes", "command"),
    [
        ({}, 20, "rlx eval b_001"),
        ({}, 7, "rlx eval b_001 --episodes 7"),
        ({"env": {**ENV, "kwargs": {"sutton_barto_reward": True}}}, 20, "rlx eval b_001 --like a_001"),
        ({"eval": {"report_episodes": 7}}, 7, "rlx eval b_001 --like a_001"),
        ({"eval": {"every": 100, "episodes": 3}}, 20, "rlx eval b_001"),
    ],
)
def test_the_command_evaluates_under_the_protocol_that_is_wanted(
    tmp_path: Path, changes: dict[str, Any], episodes: int, command: str
) -> None:
    base, new = make_run(tmp_path, "a", {0: GOOD}, names=(), **changes), make_run(tmp_path, "b", {0: GOOD}, names=())
    protocol = {"episodes": episodes}
    assert evaluate_command(new, protocol, like=base) == command
    assert "--like" not in evaluate_command(base, protocol, like=base)
