"""Seeds of several runs on one machine get different GPUs, as long as there are free ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.launch.gpu_lease import take
from tests.conftest import Project

GPUS = ("0", "1")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_the_gpu_with_the_fewest_seeds_is_taken() -> None:
    first, second, third = take(GPUS), take(GPUS), take(GPUS)
    assert [first.gpus, second.gpus, third.gpus] == ["0", "1", "0"]
    second.end()
    assert take(GPUS).gpus == "1"
    for lease in (first, third):
        lease.end()
    assert take(GPUS).gpus == "0"


def test_a_place_of_several_gpus_is_as_busy_as_its_busiest() -> None:
    one = take(("1",))
    assert take(("0,1", "2,3")).gpus == "2,3"
    one.end()


def test_a_seed_without_a_gpu_locks_nothing(tmp_path: Path) -> None:
    assert take((None, None)).locks == ()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_without_a_folder_for_locks_the_first_place_is_taken(tmp_path: Path) -> None:
    (tmp_path / "tmp").rmdir()
    assert take(GPUS).gpus == "0"


def test_a_run_takes_the_gpu_that_no_other_run_uses(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    other = take(("4", "7"))
    try:
        project.rlx("train", project.config(), "-s", "resources.gpus=1")
    finally:
        other.end()
    (attempt,) = project.run("tiny_001").seed(0).attempts
    assert other.gpus == "4"
    assert attempt["environment"]["CUDA_VISIBLE_DEVICES"] == "7"
