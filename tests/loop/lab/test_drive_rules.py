"""When a drive ends and how long it waits: judged from rows and a clock value."""

from __future__ import annotations

from dataclasses import replace

from rlx.loop.lab.attempt import Attempt
from rlx.loop.lab.drive_rules import (
    FAILURES,
    LIMIT_SECONDS,
    DriveOptions,
    attempts_without_progress,
    is_time_to_climb,
    iterations_done,
    seconds_to_wait,
    stop_before_reset,
    stop_by_rule,
)
from rlx.loop.lab.lab_config import Rung
from rlx.loop.lab.session.session_record import (
    LabSession,
    SessionOutcome,
    SessionRecord,
    SessionUsage,
    read_record,
    read_usage,
    spent_dollars,
)

NOW = 1_000_000.0
OPTIONS = DriveOptions("claude", no_progress=4)
RUNG = Rung(train_episodes=12, eval_episodes=8)


def session(
    outcome: SessionOutcome = "attempt", status: str = "discard", *, dollars: float | None = None,
    resets: float | None = None, ago: float = 0.0,
) -> LabSession:  # fmt: skip
    record = SessionRecord(1, outcome, "d", NOW - ago, 0.0, SessionUsage(dollars), resets=resets)
    return LabSession(record, Attempt("s/c001", RUNG, status))  # type: ignore[arg-type]


def test_usage_limits_and_killed_drivers_are_not_iterations() -> None:
    sessions = [session(), session("usage limit"), session("interrupted"), session("crash")]
    assert iterations_done(sessions) == 2
    stop = stop_by_rule(sessions, replace(OPTIONS, iterations=2), now=NOW)
    assert stop is not None
    assert stop.code == "iterations"
    assert stop_by_rule(sessions, replace(OPTIONS, iterations=3), now=NOW) is None


def test_the_clock_ends_a_drive_and_a_limit_beyond_it_ends_it_at_once() -> None:
    options = replace(OPTIONS, until=NOW + 100)
    assert stop_by_rule([], options, now=NOW) is None
    assert stop_by_rule([], options, now=NOW + 100).code == "until"  # type: ignore[union-attr]
    limited = [session("usage limit", resets=NOW + 500)]
    assert stop_before_reset(limited, options, now=NOW).code == "until"  # type: ignore[union-attr]
    assert stop_before_reset([session("usage limit", resets=NOW + 50)], options, now=NOW) is None


def test_attempts_that_do_not_move_the_head_end_a_drive() -> None:
    tries = [session(status="keep"), session(), session("crash", "failed"), session(), session()]
    assert attempts_without_progress(tries) == 3
    assert stop_by_rule(tries, OPTIONS, now=NOW) is None
    assert stop_by_rule([*tries, session()], OPTIONS, now=NOW).code == "no progress"  # type: ignore[union-attr]


def test_only_tried_candidates_that_do_not_move_the_head_lead_to_the_next_rung() -> None:
    kept = Attempt("s/c001", RUNG, "keep", candidate="c001")
    lost = Attempt("s/c002", RUNG, "discard", candidate="c002")
    refused = Attempt("s/row9", RUNG, "refused")
    assert not is_time_to_climb([lost, kept, lost, refused, refused, refused], climb_after=2)
    assert is_time_to_climb([kept, lost, refused, lost], climb_after=2)


def test_an_agent_that_fails_again_and_again_ends_a_drive_and_waits_longer_each_time() -> None:
    failed = [session("crash", "failed")] * FAILURES
    assert stop_by_rule(failed, OPTIONS, now=NOW).code == "failures"  # type: ignore[union-attr]
    waits = [seconds_to_wait(failed[:count], OPTIONS, now=NOW) for count in range(FAILURES)]
    assert waits == [0.0, 10.0, 20.0, 40.0, 80.0]
    assert seconds_to_wait([*failed, session()], OPTIONS, now=NOW) == 0.0


def test_a_usage_limit_is_waited_for_until_it_resets() -> None:
    assert seconds_to_wait([session("usage limit", resets=NOW + 3600)], OPTIONS, now=NOW) == 3605.0
    assert seconds_to_wait([session("usage limit", resets=NOW + 3600)], OPTIONS, now=NOW + 3605) == 0.0
    unknown = session("usage limit")
    assert seconds_to_wait([unknown], OPTIONS, now=NOW) == LIMIT_SECONDS
    assert seconds_to_wait([unknown, unknown], OPTIONS, now=NOW) == 2 * LIMIT_SECONDS
    stale = session("usage limit", resets=NOW - 60)
    assert seconds_to_wait([stale], OPTIONS, now=NOW) == 0.0
    assert seconds_to_wait([stale] * 4, OPTIONS, now=NOW) == 40.0, "a limit that does not reset is not asked at once"


def test_money_is_counted_and_a_session_without_a_report_costs_as_much_as_the_dearest() -> None:
    options = replace(OPTIONS, max_cost=1.0)
    known = [session(dollars=0.3), session(dollars=0.2)]
    assert stop_by_rule(known, options, now=NOW) is None
    assert stop_by_rule([*known, session("timeout", "failed")], options, now=NOW) is None
    stop = stop_by_rule([*known, *[session("timeout", "failed")] * 2], options, now=NOW)
    assert stop is not None
    assert (stop.code, stop.why) == ("cost", "$1.10 of $1.00 are spent")
    silent = [session()]
    assert stop_by_rule(silent, options, now=NOW).code == "cost", "nobody knows what it costs"  # type: ignore[union-attr]
    assert stop_by_rule(silent, replace(options, cost_per_session=0.5), now=NOW) is None
    assert spent_dollars([one.record for one in silent], cost_per_session=0.5) == 0.5


def test_what_a_client_reports_is_read_from_its_events() -> None:
    claude = '{"type":"result","total_cost_usd":0.25,"usage":{"input_tokens":6,"output_tokens":30}}'
    codex = '{"type":"turn.completed","usage":{"input_tokens":4,"output_tokens":4}}\n'
    assert read_usage(f"text\n{claude}") == SessionUsage(0.25, 36)
    assert read_usage(codex * 2) == SessionUsage(None, 16)
    assert read_usage('{"total_cost_usd": -5}\n{broken') == SessionUsage()


def test_a_record_survives_its_row() -> None:
    record = session("usage limit", resets=NOW + 5, dollars=0.1).record
    assert read_record(record.document()) == record
    assert read_record({"outcome": "unknown"}) is None
    assert read_record(None) is None
