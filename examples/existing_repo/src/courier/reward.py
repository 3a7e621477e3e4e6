"""What pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from courier.world import Step


@dataclass(frozen=True)
class RewardWeights:
    """How much each term counts."""

    progress: float = 1.0
    effort: float = 1.0
    drowned: float = 0.5
    arrived: float = 1.0


def terms(step: Step, weights: RewardWeights) -> dict[str, np.ndarray]:
    """Return every term of the reward of one step, for every courier."""
    return {
        "progress": weights.progress * step.progress,
        "effort": -0.1 * weights.effort * step.effort,
        "drowned": -weights.drowned * step.drowned,
        "arrived": weights.arrived * step.arrived,
    }
