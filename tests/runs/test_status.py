from __future__ import annotations

import pytest

from rlx.runs.status import STALE_SECONDS, SeedStatus, run_status, seed_status, tally

STARTED = {"event": "started"}


def test_a_seed_without_events_is_prepared() -> None:
    assert seed_status([], is_alive=None, heartbeat_age=None) == SeedStatus("prepared")


@pytest.mark.parametrize("state", ["completed", "failed", "interrupted", "lost"])
def test_an_end_on_record_counts_whatever_the_process_table_says(state: str) -> None:
    events = [STARTED, {"event": "evaluated"}, {"event": state, "reason": "why"}, {"event": "saved"}]

    for is_alive in (True, False, None):
        assert seed_status(events, is_alive=is_alive, heartbeat_age=0.0) == SeedStatus(state, "why", 1)


def test_a_started_seed_runs_while_its_process_lives_and_is_lost_when_it_is_gone() -> None:
    assert seed_status([STARTED], is_alive=True, heartbeat_age=9999.0).state == "running"
    assert seed_status([STARTED], is_alive=False, heartbeat_age=0.0) == SeedStatus("lost", "process is gone", 1)


@pytest.mark.parametrize(
    ("age", "state"), [(0.0, "running"), (STALE_SECONDS - 1, "running"), (STALE_SECONDS + 1, "lost"), (None, "lost")]
)
def test_the_heartbeat_decides_on_another_machine(age: float | None, state: str) -> None:
    assert seed_status([STARTED], is_alive=None, heartbeat_age=age).state == state


def test_a_new_attempt_counts_after_an_old_end() -> None:
    events = [STARTED, {"event": "failed"}, STARTED]

    assert seed_status(events, is_alive=True, heartbeat_age=0.0) == SeedStatus("running", "", 2)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "prepared"),
        (["prepared", "prepared"], "prepared"),
        (["completed", "completed"], "completed"),
        (["completed", "running"], "running"),
        (["completed", "failed", "lost"], "failed"),
        (["completed", "lost", "interrupted"], "lost"),
        (["completed", "interrupted"], "interrupted"),
        (["completed", "prepared"], "interrupted"),
    ],
)
def test_a_run_follows_from_its_seeds(states: list[str], expected: str) -> None:
    assert run_status(states, is_supervised=False) == expected
    assert run_status(states, is_supervised=True) == "running"


def test_tally_spells_states_in_a_fixed_order() -> None:
    assert tally(["failed", "completed", "completed"]) == "2 completed, 1 failed"
    assert tally([]) == ""
