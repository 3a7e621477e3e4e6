"""The declared plan of looks: at how many training seeds a pair is tested, what each look may decide, what it costs.

Looking again is peeking: a permutation test at 5 % that is repeated every four seeds from 10 to 30 calls equal
learners different 25 times in 100. So a pair is only ever tested at declared sizes, each with its own share of the
error, and always on the *first* seeds that were trained on either side. A verdict is therefore a function of the
seeds in their order: whoever adds them one by one and looks after each gets the answer of whoever looked once.

The plan, in candidate seeds (deciding looks need as many on the baseline's side, the others a pool of ten):

| look | better if p ≤ | worse if p ≤ | futile if p > |
|---|---|---|---|
| 3 | never | never | .50 |
| 6 | never | never | .25 |
| 10 | .033 | .006 | .20 |
| 16 | .001 | .002 | .06 |
| 24 | .006 | .002 | – |

The six levels add up to .05, so `better` and `worse` together err at most 5 % for every shape of returns and every
dependence between looks; simulated it is 4.4 %. Futility is advice: nobody's error grows by going on. Nothing is
decided on fewer than ten seeds, because accepting at 3–5 passes candidates that fail on a quarter of their seeds 4
times in 10. Most of the error is spent at ten so that ten seeds find a shift of 1.5 sd 9 times in 10; what is left goes
to 24, because a candidate that fails on a quarter of its seeds is lucky more often at 16. Harm gets the smaller share:
a missed improvement costs more than harm that is called inconclusive.
`bench/plan.py` found these numbers, `bench/verdict.py` measures them. Normal returns, 40,000 simulations:

| shift in sd | better by look 10 | by 24 | by 24 if futility stops | seeds spent then |
|---|---|---|---|---|
| 0 | .033 | .036 (worse .008) | .035 | 6.4 |
| .7 | .37 | .54 | .47 | 11.9 |
| 1 | .61 | .84 | .76 | 12.3 |
| 1.5 | .91 | .995 | .975 | 10.8 |
| 0, fails on 25 % of seeds | .079 | .094 | .080 | 6.0 |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.permutation import permutation_tails
from rlx.compare.stats import Floats

Decision = Literal["better", "worse"]

_ROUNDING = 1e-12
"""p and level are both shares of whole splits; 1/20 computed in two ways must still be equal."""


@dataclass(frozen=True)
class Stage:
    """One declared look: the candidate seeds it takes and the p-values at which it decides or calls it futile."""

    seeds: int
    better: float = 0.0
    worse: float = 0.0
    futile: float = 1.0

    @property
    def can_decide(self) -> bool:
        return self.better > 0 or self.worse > 0


@dataclass(frozen=True)
class Plan:
    """The looks a pair may take, in order; `pool` is the baseline's share of a look that cannot decide."""

    stages: tuple[Stage, ...]
    pool: int

    @property
    def error(self) -> float:
        """The most that `better` and `worse` together can err between equal learners, over all looks."""
        return sum(stage.better + stage.worse for stage in self.stages)

    @property
    def deciding(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.can_decide)

    def baseline_seeds(self, stage: Stage) -> int:
        """Return how many baseline seeds a look takes."""
        return stage.seeds if stage.can_decide else self.pool

    def next_deciding(self, seeds: int) -> Stage | None:
        """Return the first look beyond `seeds` a side that can decide; None where the plan is spent."""
        return next((stage for stage in self.deciding if stage.seeds > seeds), None)


PLAN = Plan(
    stages=(
        Stage(3, futile=0.50),
        Stage(6, futile=0.25),
        Stage(10, better=0.033, worse=0.006, futile=0.20),
        Stage(16, better=0.001, worse=0.002, futile=0.06),
        Stage(24, better=0.006, worse=0.002),
    ),
    pool=10,
)


@dataclass(frozen=True)
class Look:
    """One test of a pair: the scores it was taken on, crashed seeds filled in, and the two one-sided p-values."""

    stage: Stage
    baseline: tuple[float, ...]
    candidate: tuple[float, ...]
    above: float
    below: float

    @property
    def leaning(self) -> float:
        """The candidate's mean minus the baseline's."""
        return float(np.mean(self.candidate) - np.mean(self.baseline))

    def decision(self, *, share: float = 1.0, minimum_effect: float = 0.0) -> Decision | None:
        """Return what this look decides; `share` scales the levels where several candidates are judged at once."""
        if self.above <= self.stage.better * share + _ROUNDING and self.leaning >= minimum_effect:
            return "better"
        return "worse" if self.below <= self.stage.worse * share + _ROUNDING else None

    @property
    def is_futile(self) -> bool:
        """Whether an improvement has become unlikely enough to stop."""
        return self.above > self.stage.futile

    def strength(self, *, minimum_effect: float = 0.0) -> float:
        """Return the share of the plan's levels at which this look would just decide; infinite where it cannot."""
        better = self.above / self.stage.better if self.stage.better and self.leaning >= minimum_effect else math.inf
        return min(better, self.below / self.stage.worse if self.stage.worse else math.inf)


def look(stage: Stage, baseline: ArrayLike, candidate: ArrayLike, *, seed: int = 0) -> Look:
    """Take one look at the scores of exactly the seeds it is meant for: (n,), (stage.seeds,) → Look."""
    base, new = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    above, below = permutation_tails(base, new, seed=seed)
    return Look(stage, tuple(base.tolist()), tuple(new.tolist()), float(above), float(below))


def available(plan: Plan, baseline_seeds: int, candidate_seeds: int) -> tuple[Stage, ...]:
    """Return the looks that so many finished seeds allow, in order."""
    return tuple(
        stage
        for stage in plan.stages
        if candidate_seeds >= stage.seeds and baseline_seeds >= plan.baseline_seeds(stage)
    )


def take(
    baseline: ArrayLike, candidate: ArrayLike, *, plan: Plan = PLAN, floor: float | None = None, seed: int = 0
) -> tuple[Look, ...]:
    """Take every look that the scores, in the order they were trained, allow: (n,), (m,) → looks.

    A candidate score that is not finite is a crashed seed (see `with_failures`).
    """
    base, new = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    taken = []
    for stage in available(plan, base.size, new.size):
        ours, theirs = base[: plan.baseline_seeds(stage)], new[: stage.seeds]
        taken.append(look(stage, ours, with_failures(ours, theirs, floor=floor), seed=seed))
    return tuple(taken)


def with_failures(baseline: ArrayLike, candidate: ArrayLike, *, floor: float | None = None) -> Floats:
    """Return the candidate's scores with crashed seeds in: each scores the worst of everything seen: (n,), (m,) → (m,).

    Worst of both sides' finite scores and of `floor`, the random policy's score where it is known. A seed that crashed
    or went NaN never drops out: leaving failures out is how a risky change looks good.
    """
    base, new = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    seen = np.concatenate([base, new, [] if floor is None else [floor]])
    finite = seen[np.isfinite(seen)]
    if finite.size == 0:
        raise ValueError("no finite score on either side")
    return np.where(np.isfinite(new), new, finite.min())


def holm_shares(strengths: Sequence[float]) -> tuple[float, ...]:
    """Return the share of the plan's levels that each of several candidates is judged at (Holm 1979).

    `strengths` are the smallest shares at which each would be decided. The strongest is held to 1/m; where it passes,
    the next to 1/(m − 1), and so on; those that remain all get the share that stopped. With levels that add up to the
    plan's error this keeps the chance of any false verdict below it (union over looks, Maurer & Bretz 2013).
    """
    shares = [0.0] * len(strengths)
    order = sorted(range(len(strengths)), key=lambda index: strengths[index])
    share = 1.0
    for rank, index in enumerate(order):
        if rank == 0 or strengths[order[rank - 1]] <= share + _ROUNDING:
            share = 1.0 / (len(strengths) - rank)
        shares[index] = share
    return tuple(shares)
