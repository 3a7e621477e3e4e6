"""Which executor gets the jobs of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.launch.executors.remote_job import launcher_of
from rlx.study.task.task import Launcher, Task
from tests.study.papers import rlx_repo, rlx_task


def task_with(root: Path, launcher: Launcher) -> Task:
    rlx_repo(root)
    task = rlx_task(root)
    return task.model_copy(update={"adapter": task.adapter.model_copy(update={"launcher": launcher})})


def test_a_study_s_jobs_go_where_the_project_s_settings_send_them(tmp_path: Path) -> None:
    task = task_with(tmp_path, Launcher())
    assert launcher_of(task, tmp_path).executor == "local"
    (tmp_path / "rlx.toml").write_text('[executor]\nname = "slurm"\n')
    assert launcher_of(task, tmp_path).executor == "slurm"


def test_the_command_wins_over_the_task_and_the_task_over_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_with(tmp_path, Launcher(executor="ray"))
    (tmp_path / "rlx.toml").write_text('[executor]\nname = "slurm"\n')
    assert launcher_of(task, tmp_path).executor == "ray"
    monkeypatch.setenv("RLX_EXECUTOR", "local")
    assert launcher_of(task, tmp_path).executor == "local"
