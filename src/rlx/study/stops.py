"""The stop rules of a contract: which of them holds now, by the figures of the ledger; pure."""

from __future__ import annotations

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
