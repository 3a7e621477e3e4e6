"""Successive halving over training length: train many configs briefly, and only the better ones further.

A rung is a share of the full length. Each next rung keeps one in `ratio` of the configs. The shares come from
`bench/search.py`: at a tenth of the length, the order of the configs says little about the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Halving:
    """The rungs, as increasing shares of the full length, and how many configs each next rung drops."""

    shares: tuple[float, ...] = (0.3, 0.6, 1.0)
    ratio: float = 2.5

    def count(self, trials: int, rung: int) -> int:
        """Return how many of so many configs reach a rung."""
        return max(1, round(trials / self.ratio**rung))

    def cost(self, trials: int) -> float:
        """Return the cost of so many configs, in full trainings."""
        cost = 0.0
        before = 0.0
        for rung, share in enumerate(self.shares):
            cost += (share - before) * self.count(trials, rung)
            before = share
        return cost

    def keep(self, scores: Mapping[int, float | None], *, trials: int, rung: int) -> list[int]:
        """Return the trials that reach a rung, best first; a trial without a score has failed and never does."""
        sound = [(trial, score) for trial, score in scores.items() if score is not None]
        ordered = sorted(sound, key=lambda pair: (-pair[1], pair[0]))
        return [trial for trial, _ in ordered[: self.count(trials, rung)]]


FULL_LENGTH = Halving((1.0,))
"""No halving: every config trains to the end."""
