from __future__ import annotations

from pathlib import Path

import pytest

from rlx.launch import launch
from rlx.launch.executors.executor import TrainingOrder, make_executor, run_job
from rlx.testing import ExecutorContract
from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow


class TestLocal(ExecutorContract):
    executor = "local"


def test_a_runs_supervisor_is_a_job_like_any_other(project: Project, tmp_path: Path) -> None:
    from rlx.config.load import load

    experiment = launch.check(load(project.root / project.config()), root=project.root).experiment
    run = launch.create(experiment, root=project.root)
    local = make_executor("local", tmp_path / "jobs")
    local.submit(run_job(TrainingOrder(run, (0,)), id="j001"))
    wait_until(lambda: local.poll("j001").is_over)
    assert local.poll("j001").state == "completed"
    assert project.run(run.name).status == "completed"
