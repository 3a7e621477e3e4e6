"""A seed while it is trained: one writer, rows that survive, outcomes with their reasons."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rlx.errors import Refused, UsageError
from rlx.runs.live import LiveSeed
from rlx.runs.run import Seed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "some_001" / "seed_3"
    folder.mkdir(parents=True)
    return folder


def live(folder: Path) -> LiveSeed:
    return LiveSeed(folder, root=folder.parent.parent.parent)


def test_a_row_is_on_disk_when_log_returns(folder: Path) -> None:
    seed = live(folder)
    seed.log(10, {"loss": float("nan"), "return": float("inf"), "x": 1.5})
    series = Seed(3, folder).series
    assert math.isnan(series("loss").values[0])
    assert series("return").values[0] == math.inf
    assert series("x").steps.tolist() == [10]
    seed.close()


def test_a_living_seed_is_running_and_a_second_writer_is_refused(folder: Path) -> None:
    seed = live(folder)
    assert Seed(3, folder).status.state == "running"
    with pytest.raises(Refused, match="seed 3 of some_001"):
        live(folder)
    seed.close()


def test_outcomes_are_recorded_with_their_reasons(folder: Path) -> None:
    seed = live(folder)
    seed.request_stop("SIGTERM")
    assert seed.stop_requested
    seed.interrupted(40)
    seed.close()
    status = Seed(3, folder).status
    assert (status.state, status.reason) == ("interrupted", "SIGTERM")
    again = live(folder)
    again.completed(80)
    again.close()
    assert Seed(3, folder).status.state == "completed"
    assert Seed(3, folder).status.attempt == 2
    assert Seed(3, folder).step == 80


def test_an_error_keeps_the_end_of_its_traceback_and_a_mistake_only_its_line(folder: Path) -> None:
    seed = live(folder)
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError as error:
        seed.failed(error, step=7)
    seed.close()
    event = Seed(3, folder).events[-1]
    assert event["reason"] == "ZeroDivisionError: by zero"
    assert "test_live.py" in "\n".join(event["traceback"])
    second = live(folder)
    second.failed(UsageError("wrong", hint="right"))
    second.close()
    event = Seed(3, folder).events[-1]
    assert (event["reason"], event["hint"]) == ("wrong", "right")
    assert "traceback" not in event


def test_a_resume_replaces_what_was_trained_after_it(folder: Path) -> None:
    seed = live(folder)
    for step in (10, 20, 30):
        seed.log(step, {"x": step})
    seed.log_resume(10)
    seed.log(20, {"x": -20})
    seed.close()
    assert Seed(3, folder).series("x").values.tolist() == [10, -20]


def test_the_heartbeat_tells_the_step(folder: Path) -> None:
    seed = live(folder)
    seed.beat(step=123456, episode_return=2.5)
    seed.beat(step=9)
    assert (folder / "heartbeat").read_bytes() == b'{"step":9}'
    assert (Seed(3, folder).heartbeat_age or 0.0) < 30
    seed.close()
