"""The interim plan: at how many training seeds a pair is tested, what each look may decide, and what it costs.

Looking again is peeking: a permutation test at 5 % that is repeated every four seeds from 10 to 30 calls equal
learners different 25 times in 100. So a pair is tested only at declared sizes. Each look has its own share of the
error and always uses the *first* seeds of each side. A verdict is therefore a function of the seeds in their order:
adding seeds one by one and looking after each gives the same answer as looking once.

The plan, in candidate seeds (deciding looks need as many baseline seeds, the other looks need a pool of ten):

| look | better if p ≤ | worse if p ≤ | futile if p > |
|---|---|---|---|
| 3 | never | never | .50 |
| 6 | never | never | .25 |
| 10 | .033 | .006 | .20 |
| 16 | .001 | .002 | .06 |
| 24 | .006 | .002 | – |

The six levels add up to .05. By the union bound, `better` and `worse` together err at most 5 % for every shape of
returns and every dependence between looks. Simulated, it is 4.4 %. Futility is only advice: going on costs no error.

Why these levels:
- No look below ten seeds decides. Accepting at 3–5 seeds passes candidates that fail on a quarter of their seeds 4
  times in 10.
- Most of the error is spent at ten, so that ten seeds find a shift of 1.5 sd 9 times in 10.
- The rest goes to 24, because a candidate that fails on a quarter of its seeds is lucky more often at 16.
- Harm gets the smaller share: missing an improvement costs more than calling harm inconclusive.

To change the plan, edit `PLAN` and keep the levels' sum at .05. `bench/plan.py` searches for levels, and
`bench/verdict.py` measures them. Normal returns, 40,000 simulations:

| shift in sd | better by look 10 | by 24 | by 24 if futility stops | seeds spent then |
|---|---|---|---|---|
| 0 | .033 | .036 (worse .008) | .035 | 6.4 |
| .7 | .37 | .54 | .47 | 11.9 |
| 1 | .61 | .84 | .76 | 12.3 |
| 1.5 | .91 | .995 | .975 | 10.8 |
| 0, fails on 25 % of seeds | .079 | .094 | .080 | 6.0 |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.permutation import permutation_tails
from rlx.compare.stats import Floats

Decision = Literal["better", "worse"]

_ROUNDING = 1e-12
"""p and level are both shares of whole splits. 1/20 computed in two ways must still be equal."""


@dataclass(frozen=True)
class LookStage:
    """One declared look: its candidate seeds, and the p-values at which it decides or calls the candidate futile."""

    seeds: int
    better: float = 0.0
    worse: float = 0.0
    futile: float = 1.0

    @property
    def can_decide(self) -> bool:
        return self.better > 0 or self.worse > 0


@dataclass(frozen=True)
class InterimPlan:
    """The looks that a pair may take, in order. `pool` is how many baseline seeds a look needs that cannot decide."""

    stages: tuple[LookStage, ...]
    pool: int

    @property
    def error(self) -> float:
        """The most that `better` and `worse` together can err between equal learners, over all looks."""
        return sum(stage.better + stage.worse for stage in self.stages)

    @property
    def deciding(self) -> tuple[LookStage, ...]:
        return tuple(stage for stage in self.stages if stage.can_decide)

    def baseline_seeds(self, stage: LookStage) -> int:
        """Return how many baseline seeds a look takes."""
        if stage.can_decide:
            return stage.seeds
        return self.pool

    def next_deciding(self, seeds: int) -> LookStage | None:
        """Return the first deciding look beyond `seeds` per side, or None if the plan has no more."""
        return next((stage for stage in self.deciding if stage.seeds > seeds), None)


PLAN = InterimPlan(
    stages=(
        LookStage(3, futile=0.50),
        LookStage(6, futile=0.25),
        LookStage(10, better=0.033, worse=0.006, futile=0.20),
        LookStage(16, better=0.001, worse=0.002, futile=0.06),
        LookStage(24, better=0.006, worse=0.002),
    ),
    pool=10,
)


@dataclass(frozen=True)
class InterimLook:
    """One test of a pair: the scores it used, with crashed seeds filled in, and the two one-sided p-values."""

    stage: LookStage
    baseline: tuple[float, ...]
    candidate: tuple[float, ...]
    above: float
    below: float

    @property
    def leaning(self) -> float:
        """The candidate's mean minus the baseline's."""
        return float(np.mean(self.candidate) - np.mean(self.baseline))

    def decision(self, *, share: float = 1.0, minimum_effect: float = 0.0) -> Decision | None:
        """Return what this look decides. `share` scales its levels if several candidates are judged together."""
        if self.above <= self.stage.better * share + _ROUNDING and self.leaning >= minimum_effect:
            return "better"
        if self.below <= self.stage.worse * share + _ROUNDING:
            return "worse"
        return None

    @property
    def is_futile(self) -> bool:
        """Whether an improvement has become so unlikely that training more seeds is not worth it."""
        return self.above > self.stage.futile


def look(stage: LookStage, baseline: ArrayLike, candidate: ArrayLike, *, seed: int = 0) -> InterimLook:
    """Take one look at exactly the scores that it needs: (n,), (stage.seeds,) → InterimLook."""
    base = np.asarray(baseline, dtype=np.float64)
    new = np.asarray(candidate, dtype=np.float64)
    above, below = permutation_tails(base, new, seed=seed)
    return InterimLook(stage, tuple(base.tolist()), tuple(new.tolist()), float(above), float(below))


def available(plan: InterimPlan, baseline_seeds: int, candidate_seeds: int) -> tuple[LookStage, ...]:
    """Return the looks that so many finished seeds allow, in order."""
    return tuple(
        stage
        for stage in plan.stages
        if candidate_seeds >= stage.seeds and baseline_seeds >= plan.baseline_seeds(stage)
    )


def take(
    baseline: ArrayLike, candidate: ArrayLike, *, plan: InterimPlan = PLAN, floor: float | None = None, seed: int = 0
) -> tuple[InterimLook, ...]:
    """Take every look that the scores, in training order, allow: (n,), (m,) → looks.

    A candidate score that is not finite is a crashed seed (see `with_failures`).
    """
    base = np.asarray(baseline, dtype=np.float64)
    new = np.asarray(candidate, dtype=np.float64)
    looks = []
    for stage in available(plan, base.size, new.size):
        first_base = base[: plan.baseline_seeds(stage)]
        filled = with_failures(first_base, new[: stage.seeds], floor=floor)
        looks.append(look(stage, first_base, filled, seed=seed))
    return tuple(looks)


def with_failures(baseline: ArrayLike, candidate: ArrayLike, *, floor: float | None = None) -> Floats:
    """Return the candidate's scores with crashed seeds filled in by the worst score: (n,), (m,) → (m,).

    The worst score is the minimum of both sides' finite scores and of `floor`, the random policy's score. A crashed
    seed is never dropped: dropping failures makes a risky change look good.
    """
    base = np.asarray(baseline, dtype=np.float64)
    new = np.asarray(candidate, dtype=np.float64)
    seen = np.concatenate([base, new, [] if floor is None else [floor]])
    finite = seen[np.isfinite(seen)]
    if finite.size == 0:
        raise ValueError("no finite score on either side")
    return np.where(np.isfinite(new), new, finite.min())


def holm_shares(strengths: Sequence[float]) -> tuple[float, ...]:
    """Return the share of the plan's levels that each of several candidates is judged at (Holm 1979).

    `strengths` are the smallest shares at which each candidate would be decided. The strongest is held to 1/m. If it
    passes, the next is held to 1/(m − 1), and so on. All later candidates get the share at which the first one failed.
    The levels add up to the plan's error, so this keeps the chance of any false verdict below it (union over looks,
    Maurer & Bretz 2013).
    """
    shares = [0.0] * len(strengths)
    order = sorted(range(len(strengths)), key=lambda index: strengths[index])
    share = 1.0
    for rank, index in enumerate(order):
        if rank == 0 or strengths[order[rank - 1]] <= share + _ROUNDING:
            share = 1.0 / (len(strengths) - rank)
        shares[index] = share
    return tuple(shares)
