"""A candidate's life: its states, the moves between them (no other exists), and the jobs that each state may launch.

Who makes a move: `check` writes draft → validated (and back). Jobs make a candidate launched, completed and debug as
they start and end. Only `decide` makes it advanced, rejected, inconclusive or confirmed. Only `revert`
makes it reverted. Only `propose --withdraw` makes it withdrawn, before its first seed counts.
"""

from __future__ import annotations

from typing import Literal

BASELINE = "baseline"
REHEARSAL = "rehearsal"
"""The candidates that change nothing: what every study starts from, and what walks the whole path once."""
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
    "withdrawn",
]
MOVES: dict[CandidateState, frozenset[CandidateState]] = {
    "draft": frozenset({"validated", "withdrawn"}),
    "validated": frozenset({"draft", "launched", "withdrawn"}),
    "launched": frozenset({"completed", "debug"}),
    "completed": frozenset({"advanced", "rejected", "inconclusive", "debug"}),
    "inconclusive": frozenset({"launched", "rejected"}),
    "debug": frozenset({"draft"}),
    "advanced": frozenset({"confirmed", "rejected", "reverted"}),
    "confirmed": frozenset({"reverted"}),
    "rejected": frozenset(),
    "reverted": frozenset(),
    "withdrawn": frozenset(),
}
DECISIONS: frozenset[CandidateState] = frozenset({"advanced", "rejected", "inconclusive", "debug", "confirmed"})
"""The states that only a decision leads to; debug may also follow from how a job ended, or from a breach."""
Phase = Literal["smoke", "baseline", "trial", "promotion", "confirmation"]
"""What a job is for: does it run at all, the pool, the race, the head on fresh seeds, the claim."""
LAUNCHES: dict[Phase, frozenset[CandidateState]] = {
    "smoke": frozenset({"validated", "inconclusive", "advanced"}),
    "baseline": frozenset(),
    "trial": frozenset({"validated", "launched", "inconclusive"}),
    "promotion": frozenset({"advanced", "confirmed"}),
    "confirmation": frozenset({"advanced"}),
}
"""The states a candidate may be in when a job of a phase is launched for it."""
NULL_LAUNCHES: dict[str, frozenset[Phase]] = {
    BASELINE: frozenset({"smoke", "baseline", "confirmation"}),
    REHEARSAL: frozenset({"smoke"}),
}
"""The candidates that change nothing and have no life of their own, and the phases they run in."""
Purpose = Literal["search", "confirm"]
SEEDS: dict[Purpose, range] = {
    "search": range(0, 1000),
    "confirm": range(1000, 2**20),
}
"""The training seeds of each purpose (`compare/comparability.py` has the same); no seed serves two."""
DRAWN_PHASES: frozenset[Phase] = frozenset({"promotion", "confirmation"})
"""The phases whose seeds are drawn at the launch: no candidate can be tried on them before."""
DRAWN_SEEDS = range(2000, 2**20)


def may_move(before: CandidateState, after: CandidateState) -> bool:
    """Say whether a candidate may go from one state to another."""
    return after in MOVES[before]


def seeds_for(phase: Phase) -> range:
    """Return the training seeds that jobs of a phase may use."""
    if phase == "promotion":
        return range(SEEDS["search"].start, DRAWN_SEEDS.stop)  # drawn ones; older ledgers have seeds of the search
    return SEEDS["confirm" if phase == "confirmation" else "search"]
