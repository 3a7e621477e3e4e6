"""When a contract stops: its stop rules by the figures of the ledger, and the time after which no job starts; pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from rlx.config.expression import Expression
from rlx.study.state import State
from rlx.study.terms import Contract


def holding(state: State, contract: Contract) -> str:
    """Return the first stop rule that holds; empty where none does. One that cannot be read leaves its point open."""
    if contract.automation is None:
        return ""
    figures = _figures(state, contract)
    return next((text for text in contract.automation.stop if _holds(text, figures)), "")


def _holds(text: str, figures: dict[str, float]) -> bool:
    try:
        return Expression(text, known=figures).holds(figures)
    except ValueError:
        return False


def _figures(state: State, contract: Contract) -> dict[str, float]:
    """Return what stop rules are written over; a gain is positive whichever way the metric counts."""
    used, budget = state.spent + state.reserved, contract.budget
    sign = -1.0 if contract.metric and contract.metric.direction == "minimize" else 1.0
    gains = [sign * float(one.get("effect") or 0.0) for one in state.decisions if one["decision"] == "confirmed"]
    shares = (used.seeds / budget.seeds, used.seconds / (budget.hours * 3600)) if budget else (0.0,)
    return {
        "candidates": float(len(state.launched)),
        "rejected_in_a_row": float(state.rejected_in_a_row),
        "debug_in_a_row": float(state.debug_in_a_row),
        "gain": max(gains, default=0.0),
        "spent": max(shares),
        "hours": used.seconds / 3600,
    }


def passed(state: State, contract: Contract, *, now: float) -> str:
    """Return a contract's `until` where that time is over (or is none); empty where jobs may start."""
    until = contract.budget.until if contract.budget else None
    if until is None:
        return ""
    end = deadline(until, since=state.approval.event.time if state.approval else now)
    return until if end is None or not now < end else ""


def deadline(until: str, *, since: float) -> float | None:
    """Return a contract's `until` in seconds of the epoch; 07:00 is the first after `since`. None: it is no time.

    A time without a zone is this machine's; a day without a time ends with it.
    """
    try:
        if re.fullmatch(r"\d{1,2}:\d\d", until):
            start = datetime.fromtimestamp(since)
            hour, minute = map(int, until.split(":"))
            end = start.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return (end if end > start else end + timedelta(days=1)).timestamp()
        is_day = re.fullmatch(r"\d{4}-\d\d-\d\d", until) is not None
        return (datetime.fromisoformat(until) + timedelta(days=1 if is_day else 0)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
