"""The race over seeds: the best few configs train on more and more seeds, and those that fall behind are dropped.

The winner of a wide search on one seed is partly lucky. More seeds remove most of that luck before the confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rlx.compare.permutation import permutation_tails

SIZES = (3, 6, 10)
DROPPED = 0.10
"""A config is dropped if the leader is better than it with a one-sided p below this."""
FIRST_SHARE = 0.5
"""The part of the remaining budget that a look before the last may use."""


RaceScores = Mapping[int, Sequence[float]]
"""Trial → one score per seed. A seed that failed has the worst score of the whole search."""


@dataclass(frozen=True)
class SeedRace:
    """The sizes in seeds per config, and the budget in full trainings."""

    sizes: tuple[int, ...] = SIZES
    budget: float = 20.0

    def field(self, scores: RaceScores, *, size: int, left: float) -> list[int]:
        """Return the configs that get up to `size` seeds within the budget that is left, best first."""
        order = standing(scores)
        if not order:
            return []
        rivals = [order[0], *(trial for trial in order[1:] if not _is_behind(scores[order[0]], scores[trial]))]
        may_use = left
        if size != self.sizes[-1]:
            may_use = left * FIRST_SHARE
        chosen: list[int] = []
        cost = 0
        for trial in rivals:
            cost += size - len(scores[trial])
            if cost > may_use and (len(chosen) >= 2 or cost > left):
                break
            chosen.append(trial)
        return chosen or order[:1]


def _is_behind(leader: Sequence[float], other: Sequence[float]) -> bool:
    if min(len(leader), len(other)) < 2:
        return False
    return float(permutation_tails(other, leader)[0]) < DROPPED


def standing(scores: RaceScores) -> list[int]:
    """Return the configs by their mean score, best first."""
    return sorted(scores, key=lambda trial: (-fmean(scores[trial]), trial))
