from __future__ import annotations

import time

import pytest

from rlx.envs.inspect.deadline import Deadline, OutOfTime


def test_a_call_within_the_time_returns_its_value() -> None:
    deadline = Deadline(60)
    with deadline.armed():
        assert deadline.call(lambda: 3) == 3


def test_a_call_after_the_time_is_not_made() -> None:
    deadline = Deadline(0)
    with pytest.raises(OutOfTime):
        deadline.call(lambda: pytest.fail("called"))


def test_a_call_that_sleeps_for_ever_is_ended() -> None:
    deadline = Deadline(0.1)
    with deadline.armed(), pytest.raises(OutOfTime) as late:
        deadline.call(lambda: time.sleep(250))
    assert late.value.seconds > 0


def test_a_call_that_catches_everything_is_ended() -> None:
    def stubborn() -> None:
        times = 0
        while True:
            try:
                while True:
                    pass
            except BaseException:
                times += 1
                if times > 1:
                    raise

    deadline = Deadline(0.1)
    with deadline.armed(), pytest.raises(OutOfTime):
        deadline.call(stubborn)


def test_a_call_that_ends_late_by_itself_returns_its_value() -> None:
    deadline = Deadline(0.05)
    with deadline.armed():
        assert deadline.call(lambda: time.sleep(0.3) or "done") == "done"


def test_a_timer_that_was_set_before_goes_on() -> None:
    import signal

    before = signal.setitimer(signal.ITIMER_REAL, 100)
    try:
        with Deadline(1).armed():
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 90
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
