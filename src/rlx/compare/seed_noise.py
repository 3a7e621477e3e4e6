"""How noisy a config is: the spread of its seeds, how many of them fail, and what a comparison with it can find.

Pure and invariant: scaling or shifting all scores, including the random policy's, changes no count and no share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.interim_plan import PLAN, InterimPlan
from rlx.compare.power import detectable_effect, failure_bound
from rlx.compare.stats import Floats, as_runs
from rlx.number_format import deviation

SHARES = (0.05, 0.10, 0.20)
FAILING = 0.5
GAP = 3.0
"""A gap between neighbouring seeds separates two groups if it is this many times the spread on either side of it."""


@dataclass(frozen=True)
class FailingSeeds:
    """How many seeds fail, including crashed ones. `threshold` is the score below which a seed fails, if there is one.

    `bound` is the largest share of failing seeds that this count still allows (95 %).
    """

    count: int
    threshold: float | None
    bound: float
    rule: str


@dataclass(frozen=True)
class Detection:
    """A gain, and the seeds per side of the look that finds it 4 times in 5, or None if the plan is too short."""

    share: float
    effect: float
    seeds: int | None


@dataclass(frozen=True)
class SeedNoise:
    """The noise of one config's seeds. `gain` is its mean above the random policy, or None if it has none.

    `finds` maps each deciding look to the smallest difference of means that it finds 4 times in 5.
    """

    n: int
    mean: float
    sd: float
    median: float
    low: float
    high: float
    random: float | None
    gain: float | None
    failing: FailingSeeds
    detections: tuple[Detection, ...]
    finds: dict[int, float]

    def document(self) -> dict[str, Any]:
        """Return the noise as JSON-able data."""
        document = asdict(self)
        names = {"low": "min", "high": "max", "detections": "detects"}
        document = {names.get(name, name): value for name, value in document.items()}
        finds = {str(seeds): effect for seeds, effect in self.finds.items()}
        return {**document, "detects": list(document["detects"]), "finds": finds}


def noise(
    scores: ArrayLike,
    *,
    random: float | None = None,
    crashed: int = 0,
    shares: Iterable[float] = SHARES,
    plan: InterimPlan = PLAN,
) -> SeedNoise:
    """Describe the seeds of one config, one score per seed: (n ≥ 2,) → SeedNoise. `random` is the random policy's."""
    pool = as_runs(scores)
    mean = float(pool.mean())
    sd = deviation(pool)
    finds = _finds(sd, plan)
    gain = None
    detections: list[Detection] = []
    if random is not None and mean > random:
        gain = mean - random
        for share in shares:
            seeds = next((seeds for seeds, found in finds.items() if share * gain >= found), None)
            detections.append(Detection(share, share * gain, seeds))
    return SeedNoise(
        n=pool.size,
        mean=mean,
        sd=sd,
        median=float(np.median(pool)),
        low=float(pool.min()),
        high=float(pool.max()),
        random=random,
        gain=gain,
        failing=_failing(pool, random, crashed),
        detections=tuple(detections),
        finds=finds,
    )


def _finds(sd: float, plan: InterimPlan) -> dict[int, float]:
    """Return what each deciding look finds. A look that finds no smaller effect than an earlier one is left out."""
    finds: dict[int, float] = {}
    smallest = float("inf")
    for stage in plan.deciding:
        effect = detectable_effect(stage.seeds, alpha=stage.better)
        if effect < smallest:
            smallest = effect
            finds[stage.seeds] = sd * effect
    return finds


def failing_limit(scores: ArrayLike, floor: float, *, share: float = FAILING) -> float | None:
    """Return the score below which a seed fails: half of what the best seed gains over the floor, or another share.

    Returns None if no seed beats the floor.
    """
    best = float(np.max(scores))
    if best <= floor:
        return None
    return floor + share * (best - floor)


def _failing(pool: Floats, random: float | None, crashed: int) -> FailingSeeds:
    """Count the seeds that gain less than half of what the best seed gains over the random policy.

    Without a random policy, shares (scores between 0 and 1, such as success rates) begin at 0. For other scores, or if
    no seed beats the random policy, count the seeds below a gap that separates two groups.
    """
    threshold: float | None = None
    rule = "gains less than half of what the best seed gains over the random policy"
    if random is not None:
        threshold = failing_limit(pool, random)
    elif pool.min() >= 0 and pool.max() <= 1:
        threshold = failing_limit(pool, 0.0)
        rule = "reaches less than half of what the best seed reaches"
    if threshold is None:
        threshold = _gap(np.sort(pool))
        rule = f"lies below a gap of {GAP:g} times the spread on either side of it"
    count = crashed
    if threshold is not None:
        count += int(np.count_nonzero(pool < threshold))
    return FailingSeeds(count, threshold, failure_bound(count, pool.size + crashed), rule)


def _gap(ordered: Floats) -> float | None:
    """Return the middle of the widest gap if it separates two groups of at least three seeds each."""
    cuts = range(3, ordered.size - 2)
    if not cuts:
        return None
    cut = max(cuts, key=lambda index: float(ordered[index] - ordered[index - 1]))
    spread = max(deviation(ordered[:cut]), deviation(ordered[cut:]))
    width = float(ordered[cut] - ordered[cut - 1])
    if not (width > GAP * spread):
        return None
    return float(ordered[cut - 1] + width / 2)
