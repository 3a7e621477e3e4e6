"""Preflight of a changed reward: does it rank stored successes above stored failures? Pure.

Refusing a reward that ranks known trajectories wrongly, before anything is trained, follows CARD (arXiv 2410.14660).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.diagnose.finding import Evidence, Finding
from rlx.diagnose.rule import Rule, Sighting, run_rules
from rlx.number_format import figure

LEAST_AUC = 0.6
FEWEST = 3
"""How many successes, and how many failures, there must be."""


@dataclass(frozen=True)
class Preflight:
    """How well a reward separates successes from failures: the chance that a success is paid more (a tie counts half).

    `paid` is the mean pay of a success and of a failure. `not_finite` counts steps without a finite reward.
    """

    auc: float
    auc_before: float
    successes: int
    failures: int
    paid: tuple[float, float]
    not_finite: int

    @property
    def is_refused(self) -> bool:
        return self.not_finite > 0 or self.auc < LEAST_AUC

    def document(self) -> dict[str, Any]:
        """Return the result as JSON-able data."""
        paid = {"success": self.paid[0], "failure": self.paid[1]}
        return {**vars(self), "paid": paid, "least_auc": LEAST_AUC, "is_refused": self.is_refused}

    def findings(self) -> tuple[Finding, ...]:
        """Return why the reward is refused."""
        return run_rules((NOT_FINITE, RANKS_FAILURES), self).findings


def _find_not_finite(preflight: Preflight) -> Iterator[Sighting]:
    if preflight.not_finite:
        evidence = Evidence("steps without a finite reward", float(preflight.not_finite), limit=0.0)
        yield Sighting((evidence,), f"it pays NaN or infinity in {preflight.not_finite:,} stored steps")


def _find_wrong_ranking(preflight: Preflight) -> Iterator[Sighting]:
    if not preflight.not_finite and preflight.auc < LEAST_AUC:
        claim = (
            f"it ranks failures with or above successes: a success is paid more than a failure in {preflight.auc:.0%} "
            f"of pairs (mean pay {figure(preflight.paid[0])} against {figure(preflight.paid[1])})"
        )
        yield Sighting((Evidence("AUC of successes over failures", preflight.auc, limit=LEAST_AUC),), claim)


GUARD_NUMBERS = ("guard divisions, logs and exponentials",)
NOT_FINITE: Rule[Preflight] = Rule("reward_not_finite", "high", _find_not_finite, GUARD_NUMBERS)
RANKS_FAILURES: Rule[Preflight] = Rule(
    "reward_ranks_failures",
    "high",
    _find_wrong_ranking,
    (
        "pay finishing more than what failing episodes collect on their way",
        "make shaping a difference of potentials: γΦ(s′) − Φ(s)",
    ),
    source="CARD (arXiv 2410.14660)",
    cannot_see="episodes that do not say whether they succeeded",
)


def judge(
    paid: Sequence[float], before: Sequence[float], success: Sequence[bool], *, not_finite: int = 0
) -> Preflight | None:
    """Judge what a changed reward pays for episodes, next to the old one. Returns None if too few are known."""
    has_succeeded = np.array(success, dtype=np.bool_)
    new = np.array(paid, dtype=np.float64)
    old = np.array(before, dtype=np.float64)
    successes = int(has_succeeded.sum())
    failures = len(has_succeeded) - successes
    if min(successes, failures) < FEWEST:
        return None
    means = float(new[has_succeeded].mean()), float(new[~has_succeeded].mean())
    return Preflight(auc(new, has_succeeded), auc(old, has_succeeded), successes, failures, means, not_finite)


def auc(values: np.ndarray[Any, np.dtype[np.float64]], has_succeeded: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    """Return the chance that a random success has more than a random failure. Ties count half, NaN counts nothing."""
    successes = values[has_succeeded][:, None]
    failures = values[~has_succeeded][None, :]
    return float(np.mean((successes > failures) + 0.5 * (successes == failures)))
