"""The stop rules of a contract and its deadline, judged by the figures of the ledger; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from rlx.config.expression import Expression
from rlx.study.contract.contract import Contract
from rlx.study.ledger.state import State

STREAKS = frozenset({"rejected_in_a_row", "debug_in_a_row"})
"""The figures that start at 0 again when a person lets the study go on."""


@dataclass(frozen=True)
class StopRule:
    """A stop rule that holds, as the contract has it."""

    text: str
    counts_streak: bool
    """Whether a person can lift it: `approve --go-on` resets the streak that it counts."""


def holding_rule(state: State, contract: Contract) -> StopRule | None:
    """Return the first stop rule that holds. A rule that cannot be read never holds: the contract's checks name it."""
    if contract.automation is None:
        return None
    figures = _figures(state, contract)
    for text in contract.automation.stop:
        try:
            rule = Expression(text, known=figures)
            if rule.holds(figures):
                return StopRule(text, counts_streak=bool(rule.names & STREAKS))
        except ValueError:
            continue
    return None


def _figures(state: State, contract: Contract) -> dict[str, float]:
    """Return the figures that stop rules use. A gain is positive whichever way the metric counts."""
    used = state.spent + state.reserved
    shares = [0.0]
    if contract.budget:
        shares = [used.seeds / contract.budget.seeds, used.seconds / (contract.budget.hours * 3600)]
    sign = 1.0
    if contract.metric and contract.metric.direction == "minimize":
        sign = -1.0
    confirmed = [event for event in state.decisions if event["decision"] == "confirmed"]
    return {
        "candidates": float(len(state.launched)),
        "rejected_in_a_row": float(state.rejected_in_a_row),
        "debug_in_a_row": float(state.debug_in_a_row),
        "gain": max((sign * float(event.get("effect") or 0.0) for event in confirmed), default=0.0),
        "spent": max(shares),
        "hours": used.seconds / 3600,
    }


def passed_deadline(state: State, contract: Contract, *, now: float) -> str:
    """Return the contract's `until` if that time is over or is not a time; else an empty text."""
    until = contract.budget.until if contract.budget else None
    if until is None:
        return ""
    approved = state.approval.event.time if state.approval else now
    end = deadline(until, since=approved)
    if end is not None and now < end:
        return ""
    return until


def deadline(until: str, *, since: float) -> float | None:
    """Return a contract's `until` in seconds of the epoch, or None if it is not a time.

    `07:00` is the first one after `since`. A time without a zone is local; a day without a time ends at midnight.
    """
    try:
        if re.fullmatch(r"\d{1,2}:\d\d", until):
            start = datetime.fromtimestamp(since)
            hour, minute = map(int, until.split(":"))
            end = start.replace(hour=hour, minute=minute, second=0, microsecond=0)
            if end <= start:
                end += timedelta(days=1)
            return end.timestamp()
        end = datetime.fromisoformat(until)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", until):
            end += timedelta(days=1)
        return end.timestamp()
    except (ValueError, OverflowError, OSError):
        return None
