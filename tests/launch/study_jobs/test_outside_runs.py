"""Trainings outside a study: told next to its claims, or refused; and an approval is that of one folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rlx
from rlx.errors import Refused
from rlx.launch.study_jobs import outside_runs
from rlx.launch.study_jobs.launch_facts import approval_problems
from rlx.runs import store
from rlx.study.study_folder import find_study
from tests.loop.told import Told

CONFIG = {
    "env": {"id": "CartPole-v1", "num_envs": 2},
    "algo": {"name": "ppo", "total_timesteps": 64, "rollout_steps": 32, "batch_size": 32, "update_epochs": 1},
    "policy": {"hidden_sizes": [8]},
    "eval": {"every": 64, "episodes": 1, "report_episodes": 1},
}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told(tmp_path / "project")
    monkeypatch.chdir(told.study.root)
    return told


def test_a_plain_run_after_the_approval_is_counted_also_when_it_is_deleted(told: Told) -> None:
    assert list(outside_runs.notes(told.study)) == []
    run = rlx.run(CONFIG, seeds=2)
    store.delete(run)
    (note,) = outside_runs.notes(told.study)
    assert note == (
        f"outside the study, 1 plain run of its environment trained since the approval: 2 seeds, 128 steps ({run.name})"
    )
    assert told.state.violations == ()


def test_a_script_of_ones_own_is_counted(told: Told) -> None:
    with rlx.start({"env": {"id": "CartPole-v1"}, "algo": {"total_timesteps": 50}, "run_name": "mine"}) as run:
        run.log(50, {"loss": 1.0})
    (note,) = outside_runs.notes(told.study)
    assert "1 seed, 50 steps (mine_001)" in note


def test_a_project_can_require_studies(told: Told) -> None:
    (told.study.root / "rlx.toml").write_text("require_study = true\n")
    with pytest.raises(Refused, match="require_study") as refused:
        rlx.run(CONFIG, seeds=1)
    assert refused.value.hint == "rlx next"
    with pytest.raises(Refused, match="require_study"):
        rlx.start({"run_name": "mine"})
    assert not list((told.study.root / "runs").glob("[!.]*_001"))


def test_a_copy_of_a_project_needs_its_own_approval_and_a_moved_one_does_not(told: Told, tmp_path: Path) -> None:
    assert approval_problems(told.study, told.state) == ()
    copy = find_study(Path(shutil.copytree(told.study.root, tmp_path / "copy", symlinks=True)))
    (problem,) = approval_problems(copy, copy.state())
    assert problem == "the approval is for another folder: a copy of a project needs its own approval"
    moved = find_study(told.study.root.rename(tmp_path / "moved"))
    assert approval_problems(moved, moved.state()) == ()
