"""Arms of a comparison: how each training seed counts, and how a run is read as an arm."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.compare.arms import Arm, Training, arm_of, evaluate_command
from rlx.compare.code_version import CodeVersions
from rlx.compare.stored_scores import StoredScore
from rlx.runs import store
from rlx.runs.run import Run
from tests.evaluate.linear import GOOD, POOR, make_run


def completed(seed: int, score: float | None = 1.0, *, started: float = 0.0) -> Training:
    return Training(seed, "completed", score=score, started=started, step=100)


@pytest.mark.parametrize(
    ("training", "fate"),
    [
        (completed(0), "scored"),
        (completed(0, math.nan), "crashed"),
        (completed(0, math.inf), "crashed"),
        (completed(0, None), "pending"),
        (Training(0, "failed", error="Diverged"), "crashed"),
        (Training(0, "failed", error="ZeroDivisionError", score=3.0), "crashed"),
        (Training(0, "failed", error="OSError"), "pending"),
        (Training(0, "failed", error="MissingExtra"), "pending"),
        (Training(0, "interrupted"), "pending"),
        (Training(0, "lost", score=3.0), "pending"),
        (Training(0, "running"), "pending"),
        (Training(0, "prepared"), "pending"),
    ],
)
def test_a_seed_counts_as_a_failure_only_where_the_learner_failed(training: Training, fate: str) -> None:
    assert training.fate == fate


@pytest.mark.parametrize(
    ("state", "command"),
    [("completed", "rlx eval b"), ("running", "rlx wait b"), ("lost", "rlx resume b"), ("prepared", "rlx resume b")],
)
def test_what_is_pending_has_a_command_that_finishes_it(state: str, command: str) -> None:
    assert Training(0, state).finish_command("b", evaluate="rlx eval b") == command


def test_trainings_are_in_the_order_they_began_and_a_pending_one_holds_up_those_behind_it() -> None:
    trainings = (
        completed(0, 10.0, started=5.0), completed(7, 11.0, started=1.0), completed(3, 12.0, started=1.0),
        Training(4, "interrupted", started=3.0), Training(5, "prepared"),
    )  # fmt: skip
    side = Arm("a", trainings)
    assert [one.seed for one in side.ordered] == [3, 7, 4, 0, 5]
    assert side.as_baseline() == {3: 12.0, 7: 11.0}
    assert side.scores.tolist() == [12.0, 11.0, 10.0]


def test_a_crashed_seed_counts_for_a_candidate_and_is_left_out_of_a_baseline() -> None:
    side = Arm("a", (completed(0, 10.0), Training(1, "failed", started=1.0), completed(2, 12.0, started=2.0)))
    assert side.as_baseline() == {0: 10.0, 2: 12.0}
    assert list(side.as_candidate()) == [0, 1, 2]
    assert math.isnan(side.as_candidate()[1])


def test_the_document_names_crashed_and_pending_seeds_and_invents_no_figures() -> None:
    side = Arm("a", (completed(0, 10.0), completed(1, math.nan, started=1.0), Training(2, "lost")))
    document = side.document()
    assert (document["n"], document["mean"], document["sd"]) == (1, 10.0, None)
    assert (document["crashed"], document["pending"]) == ([1], {"2": "lost"})
    assert Arm("a", ()).document()["mean"] is None


ENV = {"id": "CartPole-v1", "kwargs": {}, "wrappers": []}


def report(score: float = 1.0, **fields: Any) -> StoredScore:
    protocol = {"env": ENV, "episodes": 20}
    values = {"step": 1024, "time": 1.0, "episodes": 20, "protocol": protocol, "random": None, "figures": {}}
    return StoredScore(**{"score": score, **values, **fields})


def test_a_run_is_read_with_its_order_weights_code_versions_and_floor(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {5: GOOD, 2: POOR})
    side = arm_of(run, {5: report(500.0, random=21.0), 2: report(90.0)}, like=run, codes=CodeVersions(tmp_path))
    assert [(one.seed, one.score, one.fate) for one in side.ordered] == [(5, 500.0, "scored"), (2, 90.0, "scored")]
    assert (side.floor, side.phase, side.planned_steps) == (21.0, None, 1024)
    assert len({one.weights for one in side.trainings}) == 2
    assert all(one.weights and len(one.weights) == 64 for one in side.trainings)
    assert side.codes == ["code e3b0c442"]  # of no files
    assert "numpy" in side.versions[0]


def test_a_seed_without_checkpoint_has_no_weights_and_one_without_report_no_score(tmp_path: Path) -> None:
    run = store.add_seeds(make_run(tmp_path, "a", {0: GOOD}, names=()), [1])
    side = arm_of(run, {0: report()}, like=run, codes=CodeVersions(tmp_path))
    assert [(one.weights, one.score, one.state) for one in side.ordered] == [
        (None, 1.0, "completed"), (None, None, "prepared"),
    ]  # fmt: skip


def test_how_a_seed_failed_and_what_a_study_wants_it_for_are_read(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a", {0: GOOD}, names=())
    row = {"event": "failed", "time": 3.0, "reason": "loss is nan", "kind": "Diverged"}
    files.append_line(run.path / "seed_0" / "events.jsonl", files.encode(row))
    path = run.path / "metadata.json"
    files.write_json(path, {**files.read_json(path), "lineage": {"phase": "confirm"}})
    side = arm_of(Run(run.path), {0: report()}, like=run, codes=CodeVersions(tmp_path))
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
