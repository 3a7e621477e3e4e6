"""A candidate's life: its states and the moves between them; no other move exists."""

from __future__ import annotations

from typing import Literal

CandidateState = Literal[
    "draft",
    "validated",
    "launched",
    "completed",
    "advanced",
    "rejected",
    "inconclusive",
    "debug",
    "confirmed",
    "reverted",
]
MOVES: dict[CandidateState, frozenset[CandidateState]] = {
    "draft": frozenset({"validated"}),
    "validated": frozenset({"draft", "launched"}),
    "launched": frozenset({"completed", "debug"}),
    "completed": frozenset({"advanced", "rejected", "inconclusive", "debug"}),
    "inconclusive": frozenset({"launched", "rejected"}),
    "debug": frozenset({"draft"}),
    "advanced": frozenset({"confirmed", "rejected", "reverted"}),
    "confirmed": frozenset({"reverted"}),
    "rejected": frozenset(),
    "reverted": frozenset(),
}
Phase = Literal["smoke", "baseline", "trial", "promotion", "confirmation"]
"""What a job is for: does it run at all, the pool, the race, the head on fresh seeds, the claim."""


def may_move(before: CandidateState, after: CandidateState) -> bool:
    """Say whether a candidate may go from one state to another."""
    return after in MOVES[before]
