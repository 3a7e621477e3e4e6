"""Pre-filled contracts: what can be inferred is, what cannot is asked, and confirming is all that is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.study.contract import contract_checks
from rlx.study.contract.contract import POINTS
from rlx.study.contract.prefill import PrefillInputs, prefill
from rlx.study.task.task import Task
from tests.study.papers import CONFIG, foreign_repo, foreign_task, rlx_repo, rlx_task, write


def settled(task: Task, root: Path, known: PrefillInputs) -> list[str]:
    """Return what is wrong with a pre-filled contract once every point is confirmed."""
    made = prefill(task, known, study="first", root=root)
    assert made.contract.confirmed == ()
    confirmed = made.contract.model_copy(update={"confirmed": tuple(POINTS)})
    return [str(problem) for problem in contract_checks.problems(confirmed, task, root=root)]


def test_an_rlx_task_needs_nothing_but_confirmations(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    task, known = rlx_task(tmp_path), PrefillInputs(commit=sha, cores=8, seed_seconds=30.0)
    made = prefill(task, known, study="first", root=tmp_path)
    assert made.questions == ()
    assert settled(task, tmp_path, known) == []
    contract = made.contract
    assert contract.metric is not None
    assert (contract.metric.name, contract.metric.direction) == ("success_rate", "maximize")
    assert contract.evaluation is not None
    assert contract.evaluation.level == "sealed"
    assert contract.scope is not None
    assert contract.scope.surfaces == ("hyperparameters", "reward")
    assert contract.scope.forbidden == ("algo.total_timesteps",)
    assert contract.hardware is not None
    assert (contract.hardware.cores, contract.hardware.parallel) == (1, 8)
    assert contract.budget is not None
    assert (contract.budget.seeds, contract.budget.per_seed_minutes) == (96, 1.0)
    assert contract.budget.hours == 1.6


def test_a_policy_is_played_as_the_config_says(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, "configs/lift.yaml", f"{CONFIG}  deterministic: false\n")
    evaluation = prefill(rlx_task(tmp_path), PrefillInputs(), study="first", root=tmp_path).contract.evaluation
    assert evaluation is not None
    assert not evaluation.deterministic


def test_the_reward_is_not_opened_where_the_return_decides(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    known = PrefillInputs(commit=sha, seed_seconds=30.0, metric="return")
    assert settled(rlx_task(tmp_path), tmp_path, known) == []


def test_a_foreign_task_is_asked_for_its_metric_where_there_are_several(tmp_path: Path) -> None:
    sha = foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    made = prefill(task, PrefillInputs(commit=sha, seed_seconds=10.0), study="first", root=tmp_path)
    assert [question.key for question in made.questions] == ["metric.name"]
    assert made.questions[0].choices == ("energy", "success")
    assert made.contract.evaluation is not None
    assert made.contract.evaluation.level == "pinned"
    assert settled(task, tmp_path, PrefillInputs(commit=sha, seed_seconds=10.0, metric="success")) == []


def test_everything_that_only_a_person_knows_is_asked(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    task = foreign_task(tmp_path)
    bare = task.model_copy(
        update={
            "card": task.card.model_copy(update={"mission": ""}),
            "surfaces": {},
            "adapter": task.adapter.model_copy(update={"eval": (), "result": None}),
        }
    )
    made = prefill(bare, PrefillInputs(), study="first", root=tmp_path)
    assert [question.key for question in made.questions] == [
        "card.mission", "scope", "budget.hours", "baseline.commit",
    ]  # fmt: skip
    assert made.contract.metric is not None
    assert (made.contract.metric.name, made.contract.metric.source) == ("return", "training")
    assert made.contract.evaluation is not None
    assert made.contract.evaluation.level == "reported"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"seed_seconds": 60.0}, (96, 3.2, 2.0)),
        ({"seed_seconds": 60.0, "hours": 2.0}, (120, 2.0, 2.0)),
        ({"seed_seconds": 60.0, "hours": 2.0, "seeds": 40}, (40, 2.0, 2.0)),
        ({"hours": 2.0}, (96, 2.0, 1.25)),
        ({"hours": 2.0, "seeds": 30}, (30, 2.0, 4.0)),
        ({"hours": 2.0, "seeds": 70}, (70, 2.0, 1.71)),
        ({"seed_seconds": 0.01}, (96, 0.01, 0.01)),
        ({"seeds": 30}, None),
        ({}, None),
    ],
)
def test_a_budget_is_made_of_what_is_known(
    tmp_path: Path, known: dict[str, Any], expected: tuple[int, float, float] | None
) -> None:
    sha = rlx_repo(tmp_path)
    made = prefill(rlx_task(tmp_path), PrefillInputs(commit=sha, **known), study="first", root=tmp_path).contract.budget
    found = (made.seeds, made.hours, made.per_seed_minutes) if made else None
    assert found == expected


@pytest.mark.parametrize(
    ("name", "direction"),
    [("success", "maximize"), ("tracking_error", "minimize"), ("collisions", "minimize"), ("loss", "minimize")],
)
def test_a_direction_is_guessed_from_the_name(tmp_path: Path, name: str, direction: str) -> None:
    foreign_repo(tmp_path)
    known = PrefillInputs(metric=name)
    made = prefill(foreign_task(tmp_path), known, study="first", root=tmp_path).contract.metric
    assert made is not None
    assert made.direction == direction


def test_an_unattended_study_asks_for_a_signature_where_somebody_can_sign(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    made = prefill(
        rlx_task(tmp_path), PrefillInputs(unattended=True, has_signers=True), study="a", root=tmp_path
    ).contract
    assert made.automation is not None
    assert made.automation.approval == "signed"


@pytest.mark.parametrize(
    ("device", "machine", "expected"),
    [("auto", 2.0, (0.0, 8)), ("cuda", 2.0, (1.0, 2)), ("cuda", 0.0, (1.0, 1)), ("cpu", 4.0, (0.0, 8))],
)
def test_hardware_is_what_a_seed_needs_and_a_machine_has(
    tmp_path: Path, device: str, machine: float, expected: tuple[float, int]
) -> None:
    rlx_repo(tmp_path)
    config = tmp_path / "configs/lift.yaml"
    write(tmp_path, "configs/lift.yaml", f"device: {device}\n" + config.read_text())
    known = PrefillInputs(cores=8, gpus=machine)
    made = prefill(rlx_task(tmp_path), known, study="a", root=tmp_path).contract.hardware
    assert made is not None
    assert (made.gpus, made.parallel) == expected


def test_a_foreign_training_takes_a_gpu_where_there_is_one(tmp_path: Path) -> None:
    foreign_repo(tmp_path)
    made = prefill(foreign_task(tmp_path), PrefillInputs(cores=8, gpus=4.0), study="a", root=tmp_path).contract.hardware
    assert made is not None
    assert (made.gpus, made.parallel) == (1.0, 4)


@pytest.mark.parametrize(("executor", "parallel"), [("local", 8), ("slurm", 16), ("custom", 1)])
def test_a_project_s_executor_says_how_many_seeds_train_at_once(tmp_path: Path, executor: str, parallel: int) -> None:
    rlx_repo(tmp_path)
    known = PrefillInputs(cores=8, executor=executor)
    made = prefill(rlx_task(tmp_path), known, study="a", root=tmp_path).contract.hardware
    assert made is not None
    assert made.parallel == parallel
