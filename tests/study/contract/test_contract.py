"""Contracts as documents: written, read back, hashed, and what their scope opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.study.contract import contract as contracts
from rlx.study.task.task import PathsAndKeys, Task
from tests.study.papers import contract_of, rlx_repo, rlx_task, write


@pytest.fixture
def lift(tmp_path: Path) -> tuple[Task, Path, str]:
    sha = rlx_repo(tmp_path)
    return rlx_task(tmp_path), tmp_path, sha


def test_it_reads_back_as_it_was_written(lift: tuple[Task, Path, str], tmp_path: Path) -> None:
    task, root, sha = lift
    contract = contract_of(task, root, sha)
    path = write(tmp_path, "contract.yaml", contracts.dump(contract))
    assert contracts.read(path) == contract
    assert "# 4. The budget of all jobs together." in path.read_text()


def test_one_byte_gives_another_hash(lift: tuple[Task, Path, str], tmp_path: Path) -> None:
    task, root, sha = lift
    path = write(tmp_path, "contract.yaml", contracts.dump(contract_of(task, root, sha)))
    before = contracts.sha256(path)
    path.write_bytes(path.read_bytes() + b"\n")
    assert contracts.sha256(path) != before


def test_a_scope_opens_its_own_and_its_surfaces_places(lift: tuple[Task, Path, str]) -> None:
    task, root, sha = lift
    scope = contract_of(task, root, sha, scope={"surfaces": ["reward", "evaluator"], "keys": ["algo.gamma"]}).scope
    assert scope is not None
    assert contracts.open_places(scope, task) == PathsAndKeys(
        paths=("envs/lift.py::Lift._reward",), keys=("algo.gamma",)
    )


def test_every_figure_that_can_be_named_is_one_the_evaluator_works_out() -> None:
    from rlx.evaluate.episode_metrics import FIGURE_NAMES

    assert set(contracts.SEALED_FIGURES) == FIGURE_NAMES
