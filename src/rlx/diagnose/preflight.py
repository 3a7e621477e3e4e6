"""Preflight of a changed reward: does it rank stored successes above stored failures? Pure.

Refusing a reward that orders known trajectories wrongly, before anything is trained, is CARD's (arXiv 2410.14660).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.diagnose.finding import Evidence, Finding
from rlx.figures import figure

LEAST_AUC = 0.6
FEWEST = 3
"""Successes and failures there must be at least, each."""


@dataclass(frozen=True)
class Preflight:
    """How well a reward tells successes from failures: the chance that a success is paid more (a tie counts half)."""

    auc: float
    auc_before: float
    successes: int
    failures: int
    paid: tuple[float, float]
    """Mean pay of a success and of a failure."""
    not_finite: int

    @property
    def is_refused(self) -> bool:
        return self.not_finite > 0 or self.auc < LEAST_AUC

    def document(self) -> dict[str, Any]:
        """Return everything as JSON-able data."""
        paid = dict(zip(("success", "failure"), self.paid, strict=True))
        return {**vars(self), "paid": paid, "least_auc": LEAST_AUC, "is_refused": self.is_refused}

    def findings(self) -> list[Finding]:
        """Return why the reward is refused; nothing where it is not."""
        if self.not_finite:
            evidence = (Evidence("steps that are not paid a finite number", float(self.not_finite), limit=0.0),)
            claim = f"it pays NaN or infinity in {self.not_finite:,} stored steps"
            return [Finding("reward_not_finite", "high", claim, evidence, ("guard divisions, logs and exponentials",))]
        if not self.is_refused:
            return []
        claim = (
            f"it ranks failures with or above successes: a success is paid more than a failure in {self.auc:.0%} of "
            f"pairs (mean pay {figure(self.paid[0])} against {figure(self.paid[1])})"
        )
        evidence = (Evidence("AUC of successes over failures", self.auc, limit=LEAST_AUC),)
        tries = (
            "pay finishing more than what failing episodes collect on their way",
            "make shaping a difference of potentials: γΦ(s′) − Φ(s)",
        )
        return [Finding("reward_ranks_failures", "high", claim, evidence, tries)]


def judge(
    paid: Sequence[float], before: Sequence[float], success: Sequence[bool], *, not_finite: int = 0
) -> Preflight | None:
    """Judge what a changed reward pays for episodes, beside what the old one paid; None where too few are known."""
    won = np.array(success, dtype=np.bool_)
    new, old = np.array(paid, dtype=np.float64), np.array(before, dtype=np.float64)
    if min(won.sum(), (~won).sum()) < FEWEST:
        return None
    means = float(new[won].mean()), float(new[~won].mean())
    return Preflight(auc(new, won), auc(old, won), int(won.sum()), int((~won).sum()), means, not_finite)


def auc(values: np.ndarray[Any, np.dtype[np.float64]], won: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    """Return the chance that a random success has more than a random failure; ties count half, NaN counts nothing."""
    above, below = values[won][:, None], values[~won][None, :]
    return float(np.mean((above > below) + 0.5 * (above == below)))
