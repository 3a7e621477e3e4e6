from __future__ import annotations

from pathlib import Path

import pytest

from rlx import files
from rlx.config.load import load
from rlx.errors import NotFound
from rlx.launch import launch
from rlx.launch.executors.executor import Executor, Job, TrainingOrder, make_executor, run_job
from rlx.launch.executors.local import LocalExecutor
from rlx.runs import process
from tests.conftest import Project

GONE = {"place": process.place(), "pid": 2**22 + 1, "started": "1"}
ELSEWHERE = {"place": "another host", "pid": 1, "started": "1"}


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    executor = LocalExecutor(tmp_path)
    executor.prepare(Job("j001", ("true",), tmp_path))
    return executor


def test_a_job_s_folder_tells_its_status(executor: Executor) -> None:
    folder = executor.folder("j001")
    assert executor.status("j001").state == "prepared"
    (folder / "submitted.json").touch()
    assert executor.status("j001").state == "queued"
    files.write_json(folder / "process.json", process.current().document())
    assert executor.status("j001").state == "running"
    files.write_json(folder / "process.json", GONE)
    assert executor.status("j001").state == "lost"
    files.write_json(folder / "exit.json", {"code": 0})
    assert executor.status("j001").state == "completed"
    files.write_json(folder / "exit.json", {"code": 3})
    assert (executor.status("j001").state, executor.status("j001").exit_code) == ("failed", 3)
    (folder / "cancelled").touch()
    assert executor.status("j001").state == "cancelled"


def test_a_job_runner_on_another_machine_is_alive_while_its_beat_file_is_fresh(executor: Executor) -> None:
    folder = executor.folder("j001")
    files.write_json(folder / "process.json", ELSEWHERE)
    assert executor.status("j001").state == "lost"
    (folder / "beat").touch()
    assert executor.status("j001").state == "running"
    assert executor.recover() == ("j001",)


def test_a_job_is_written_down_once(executor: Executor, tmp_path: Path) -> None:
    executor.prepare(Job("j001", ("false",), tmp_path))
    assert files.read_json(executor.folder("j001") / "job.json")["argv"] == ["true"]
    with pytest.raises(ValueError, match="cannot be a job's id"):
        executor.prepare(Job("../x", ("true",), tmp_path))


def test_executors_are_found_by_name(tmp_path: Path) -> None:
    assert make_executor("local", tmp_path).name == "local"
    with pytest.raises(NotFound, match="unknown executor `locl`"):
        make_executor("locl", tmp_path)


def test_a_study_s_job_needs_what_its_seeds_side_by_side_need(project: Project) -> None:
    config = project.config(resources={"cores": 3, "gpus": 0.5, "memory": 2.0})
    experiment = launch.check(load(project.root / config), root=project.root).experiment
    lineage = {"slots": [None, None], "limits": {"seed_seconds": 120.0}}
    run = launch.create(experiment, root=project.root, lineage=lineage)
    job = run_job(TrainingOrder(run, (0, 1, 2)), id="j001")
    assert (job.cores, job.gpus, job.memory_gb, job.minutes) == (6, 1.0, 4.0, 4.0)
