"""A verdict in words for people; pure. The p-values stay in the figures next to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlx.compare.race_thresholds import RULE
from rlx.number_format import counted, figure, signed

NO_LEAN = 0.5
"""From this one-sided p-value on, nothing speaks for the candidate."""


def verdict_words(decision: str, fields: Mapping[str, Any]) -> str:
    """Return one sentence for a decision; `fields` are those of its row in the ledger, or of a verdict."""
    effect = fields.get("effect")
    if decision == "debug" or not isinstance(effect, (int, float)):
        return str(fields.get("says") or fields.get("reason") or "there is nothing to compare")
    harmed = [name for name, guard in (fields.get("guardrails") or {}).items() if guard.get("answer") == "harm"]
    harm = f"; it harms {', '.join(harmed)}" if harmed else ""
    seeds = int((fields.get("n") or (0, 0))[1])
    if str(fields.get("test", "race")).startswith("claim"):
        return _claim_words(decision, fields, effect) + harm
    return _race_words(decision, effect, seeds, fields.get("p")) + harm


def _race_words(decision: str, effect: float, seeds: int, p: object) -> str:
    measured = f"{signed(effect)} on {counted(seeds, 'seed')}"
    if decision == "inconclusive":
        return f"promising: {measured}, {RULE.last - seeds} more decide"
    if decision == "advanced":
        return f"better: {measured}; it is the new head, to be confirmed on fresh seeds"
    if isinstance(p, (int, float)) and p >= NO_LEAN:
        return f"no gain: {measured}"
    return f"not better: {measured}, which chance explains"


def _claim_words(decision: str, fields: Mapping[str, Any], effect: float) -> str:
    seeds = " v ".join(str(count) for count in reversed(fields.get("n") or ()))
    measured = f"{signed(effect)}{interval_words(fields.get('interval'))} on {seeds} fresh seeds"
    if fields.get("provisional") or fields.get("answer") == "provisional":
        return f"provisional: {measured}; too little for a claim"
    if decision == "confirmed":
        return f"confirmed: {measured}"
    if decision == "rejected":
        return f"worse than the baseline: {measured}"
    return f"not confirmed: {measured}, which chance could explain"


def interval_words(ends: Sequence[object] | None) -> str:
    """Return an interval in brackets; empty if there is none."""
    if not ends:
        return ""
    low, high = (figure(end) if isinstance(end, (int, float)) else "open" for end in ends)
    return f" [{low}, {high}]"
