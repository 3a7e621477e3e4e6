from __future__ import annotations

from pathlib import Path

import pytest

from rlx import files
from rlx.config.load import load
from rlx.errors import NotFound
from rlx.launch import launch
from rlx.launch.executor import Desk, Job, executor, run_job
from rlx.runs import process
from tests.conftest import Project

GONE = {"place": process.place(), "pid": 2**22 + 1, "started": "1"}
ELSEWHERE = {"place": "another host", "pid": 1, "started": "1"}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.prepare(Job("j001", ("true",), tmp_path))
    return desk


def test_a_job_stands_as_its_folder_tells(desk: Desk) -> None:
    folder = desk.folder("j001")
    assert desk.standing("j001").state == "prepared"
    (folder / "submitted.json").touch()
    assert desk.standing("j001").state == "queued"
    files.write_json(folder / "process.json", process.current().document())
    assert desk.standing("j001").state == "running"
    files.write_json(folder / "process.json", GONE)
    assert desk.standing("j001").state == "lost"
    files.write_json(folder / "exit.json", {"code": 0})
    assert desk.standing("j001").state == "completed"
    files.write_json(folder / "exit.json", {"code": 3})
    assert (desk.standing("j001").state, desk.standing("j001").exit_code) == ("failed", 3)
    (folder / "cancelled").touch()
    assert desk.standing("j001").state == "cancelled"


def test_a_carrier_on_another_machine_is_known_by_its_signs_of_life(desk: Desk) -> None:
    folder = desk.folder("j001")
    files.write_json(folder / "process.json", ELSEWHERE)
    assert desk.standing("j001").state == "lost"
    (folder / "beat").touch()
    assert desk.standing("j001").state == "running"
    assert desk.open_jobs() == ("j001",)


def test_a_job_is_written_down_once(desk: Desk, tmp_path: Path) -> None:
    desk.prepare(Job("j001", ("false",), tmp_path))
    assert files.read_json(desk.folder("j001") / "job.json")["argv"] == ["true"]
    with pytest.raises(ValueError, match="cannot be a job's id"):
        desk.prepare(Job("../x", ("true",), tmp_path))


def test_executors_are_found_by_name(tmp_path: Path) -> None:
    assert executor("local", tmp_path).name == "local"
    with pytest.raises(NotFound, match="unknown executor `locl`"):
        executor("locl", tmp_path)


def test_a_study_s_job_needs_what_its_seeds_side_by_side_need(project: Project) -> None:
    config = project.config(resources={"cores": 3, "gpus": 0.5, "memory": 2.0})
    experiment = launch.check(load(project.root / config), root=project.root).experiment
    lineage = {"slots": [None, None], "limits": {"seed_seconds": 120.0}}
    run = launch.create(experiment, root=project.root, lineage=lineage)
    job = run_job(run, [0, 1, 2], id="j001")
    assert (job.cores, job.gpus, job.memory_gb, job.minutes) == (6, 1.0, 4.0, 4.0)
