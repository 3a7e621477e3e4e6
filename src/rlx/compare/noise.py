"""How noisy a config is: the spread of its seeds, how many of them fail, and what a comparison with it can find; pure.

Everything is invariant: scaling or shifting all scores, the random policy's among them, changes no count and no share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.looks import PLAN, Plan
from rlx.compare.planning import detectable_effect, failure_bound
from rlx.compare.stats import Floats, as_runs
from rlx.figures import deviation

SHARES = (0.05, 0.10, 0.20)
GAP = 3.0
"""A gap between neighbouring seeds this many times the spread on either side of it parts two kinds of seeds."""


@dataclass(frozen=True)
class Failing:
    """How many seeds fail, crashed ones among them; `threshold` is the score below which one does, None where none is.

    `bound` is the largest share of failing seeds that these still allow (95 %).
    """

    count: int
    threshold: float | None
    bound: float
    rule: str


@dataclass(frozen=True)
class Detection:
    """A gain, and the look that finds it 4 times in 5: `seeds` a side, None where the plan is too short for it."""

    share: float
    effect: float
    seeds: int | None


@dataclass(frozen=True)
class Noise:
    """A pool of seeds of one config. `gain` is its mean above the random policy, None where it has none.

    `finds` is, for each look that can decide, the smallest difference of means that it finds 4 times in 5.
    """

    n: int
    mean: float
    sd: float
    median: float
    low: float
    high: float
    random: float | None
    gain: float | None
    failing: Failing
    detections: tuple[Detection, ...]
    finds: dict[int, float]

    def document(self) -> dict[str, Any]:
        """Return the noise as JSON-able data."""
        return {
            "n": self.n, "mean": self.mean, "sd": self.sd, "median": self.median, "min": self.low, "max": self.high,
            "random": self.random, "gain": self.gain,
            "failing": {
                "count": self.failing.count, "threshold": self.failing.threshold, "bound": self.failing.bound,
                "rule": self.failing.rule,
            },
            "detects": [{"share": one.share, "effect": one.effect, "seeds": one.seeds} for one in self.detections],
            "finds": {str(seeds): effect for seeds, effect in self.finds.items()},
        }  # fmt: skip


def noise(
    scores: ArrayLike,
    *,
    random: float | None = None,
    crashed: int = 0,
    shares: Iterable[float] = SHARES,
    plan: Plan = PLAN,
) -> Noise:
    """Describe a pool, one score a seed: (n ≥ 2,) → Noise. `random` is the random policy's score where it is known."""
    pool = as_runs(scores)
    mean, sd = float(pool.mean()), deviation(pool)
    gain = mean - random if random is not None and mean > random else None
    return Noise(
        n=pool.size,
        mean=mean,
        sd=sd,
        median=float(np.median(pool)),
        low=float(pool.min()),
        high=float(pool.max()),
        random=random,
        gain=gain,
        failing=_failing(pool, random, crashed),
        detections=tuple(_detection(share, gain, sd, plan) for share in shares) if gain is not None else (),
        finds={stage.seeds: sd * found for stage, found in _finds(plan).items()},
    )


def _finds(plan: Plan) -> dict[Any, float]:
    """Return what each look that can decide finds, in sd; a look that finds no less than an earlier one is left out."""
    found: dict[Any, float] = {}
    for stage in plan.deciding:
        effect = detectable_effect(stage.seeds, alpha=stage.better)
        if effect < min(found.values(), default=math.inf):
            found[stage] = effect
    return found


def _detection(share: float, gain: float, sd: float, plan: Plan) -> Detection:
    effect = share * gain
    enough = (stage.seeds for stage, found in _finds(plan).items() if effect >= found * sd)
    return Detection(share, effect, next(enough, None))


def _failing(pool: Floats, random: float | None, crashed: int) -> Failing:
    """Count the seeds that gain less than half of what the best gains over the random policy.

    Without a random policy, or where no seed is better than it, those below a gap that parts two kinds of seeds.
    """
    best = float(pool.max())
    if random is not None and best > random:
        threshold: float | None = (random + best) / 2
        rule = "gains less than half of what the best seed gains over the random policy"
    else:
        threshold = _gap(np.sort(pool))
        rule = f"lies below a gap of {GAP:g} times the spread on either side of it"
    count = crashed + (int(np.count_nonzero(pool < threshold)) if threshold is not None else 0)
    return Failing(count, threshold, failure_bound(count, pool.size + crashed), rule)


def _gap(ordered: Floats) -> float | None:
    """Return the middle of the widest gap, where it parts two kinds of seeds: three seeds a side at least."""
    cuts = range(3, ordered.size - 2)
    if not cuts:
        return None
    cut = max(cuts, key=lambda index: float(ordered[index] - ordered[index - 1]))
    spread = max(deviation(ordered[:cut]), deviation(ordered[cut:]))
    width = float(ordered[cut] - ordered[cut - 1])
    return float(ordered[cut - 1] + width / 2) if width > GAP * spread else None
