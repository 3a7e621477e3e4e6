"""Which checkpoints to keep: the best, the latest, the last few, and old ones at growing distances.

Disk stays bounded by about `recent + log₂(count)`. The ages of kept checkpoints grow about like powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_most


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint by its number and score."""

    number: int
    score: float


def kept(saved: list[SavedCheckpoint], *, recent: int = 3) -> list[SavedCheckpoint]:
    """Return the checkpoints to keep, in their order."""
    if not saved:
        return []
    latest = saved[-1].number
    chosen = {max(saved, key=lambda checkpoint: checkpoint.score).number, latest}
    chosen |= {checkpoint.number for checkpoint in saved[-recent:]}
    for age_class in range(latest.bit_length() + 1):  # one per power of two of the age: the oldest in its class
        in_class = [row.number for row in saved if (latest - row.number).bit_length() == age_class]
        chosen |= set(in_class[:1])
    return [checkpoint for checkpoint in saved if checkpoint.number in chosen]


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Save many checkpoints one after another, deleting as the rule says, and look for losses."""
    rng = np.random.default_rng(seed)
    lost_best = 0
    lost_latest = 0
    most = 0
    widest = 0.0
    for _ in range(int(30 * scale) + 20):
        saved: list[SavedCheckpoint] = []
        best = -np.inf
        for number in range(1, 129):
            score = float(rng.normal())
            best = max(best, score)
            saved = kept([*saved, SavedCheckpoint(number, score)])
            lost_best += max(row.score for row in saved) != best
            lost_latest += saved[-1].number != number
            most = max(most, len(saved))
        gaps = np.diff([row.number for row in saved])
        widest = max(widest, float(gaps.max()) / 128)
    return [
        at_most("times the best was lost", lost_best, 0.0),
        at_most("times the latest was lost", lost_latest, 0.0),
        at_most("checkpoints on disk after 128 saves", most, 14.0),
        at_most("largest gap / length of the run", widest, 0.85),
    ]
