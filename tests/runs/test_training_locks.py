"""Whether a run trains: its locks decide, then its processes; the age of a heartbeat alone decides nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlx import files
from rlx.errors import Refused
from rlx.launch import launch
from rlx.runs import process, status, store
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def age_heartbeat(run: Run, seconds: float) -> None:
    """Let the heartbeat look as it does to a host whose clock is this far ahead (or behind, below zero)."""
    then = time.time() - seconds
    (run.path / "seed_0" / "heartbeat").touch()
    os.utime(run.path / "seed_0" / "heartbeat", (then, then))


@pytest.fixture
def training(make_run: MakeRun, tmp_path: Path) -> Iterator[Run]:
    """Yield a run that this process trains."""
    run = make_run(state="prepared")
    live = LiveSeed(run.path / "seed_0", root=tmp_path)
    yield run
    live.close()


def look_from_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """Look at runs as another host does: its process table does not know who trains them."""
    patch.setattr(process, "place", lambda: "elsewhere boot pid")
    patch.setattr(status, "HEARTBEAT_SECONDS", 0.2)


@pytest.mark.parametrize("ahead", [120.0, -86400.0, 0.0], ids=["clock ahead", "clock behind", "same clock"])
def test_a_run_that_another_host_trains_is_running_whatever_the_clock_says(
    training: Run, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    look_from_elsewhere(monkeypatch)
    age_heartbeat(training, ahead)
    run = Run(training.path)
    assert run.status == "running"
    with pytest.raises(Refused, match="is training"):
        store.refuse_training(run)
    with pytest.raises(Refused, match="is training already"):
        launch.resume(run)
    assert run.path.is_dir()


def test_stop_says_that_it_cannot_reach_another_host(training: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    look_from_elsewhere(monkeypatch)
    monkeypatch.setattr(launch, "KILL_SECONDS", 0.1)
    with pytest.raises(Refused, match="still training") as refused:
        launch.stop(Run(training.path))
    assert refused.value.hint == f"type this on {os.uname().nodename}: rlx stop {training.name}"
    assert Run(training.path).status == "running"


def test_without_shared_locks_a_new_heartbeat_refuses_and_silence_does_not(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(state="lost")
    look_from_elsewhere(monkeypatch)
    age_heartbeat(run, 120.0)
    said: list[str] = []
    assert not store.is_training(Run(run.path), notice=said.append)
    assert "watching for a heartbeat" in said[0]
    beat = threading.Timer(0.3, age_heartbeat, (run, 119.0))
    beat.start()
    assert store.is_training(Run(run.path))
    beat.join()


def test_a_dead_run_with_a_heartbeat_in_the_future_is_lost_and_can_be_deleted(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(state="lost")
    look_from_elsewhere(monkeypatch)
    age_heartbeat(run, -3 * 86400.0)
    assert Run(run.path).status == "lost"
    store.refuse_training(Run(run.path))
    store.delete(run)
    assert not run.path.exists()


def test_a_run_is_not_deleted_under_a_supervisor_that_starts_meanwhile(make_run: MakeRun) -> None:
    run = make_run()
    with files.locked(run.path / "supervisor.json"), pytest.raises(Refused, match="is training"):
        store.delete(run)
    assert run.path.is_dir()


def test_a_lock_is_seen_without_being_taken(tmp_path: Path) -> None:
    path = tmp_path / "some"
    assert not files.is_locked(path)
    assert list(tmp_path.iterdir()) == []
    with files.locked(path):
        assert files.is_locked(path)
    assert not files.is_locked(path)
    os.replace(tmp_path / ".some.lock", tmp_path / "real")
    (tmp_path / ".some.lock").symlink_to("real")
    with files.locked(tmp_path / "other"), pytest.raises(OSError, match="symbolic"), files.locked(path):
        pass
