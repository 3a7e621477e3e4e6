"""The critic explains nothing of the returns."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Change, Limit, Rule, by_seed, evidence

EXPLAINED = Limit("train/explained_variance", below=0.05, part=LATE)
EVER = Limit("train/explained_variance", below=0.05, statistic="high")
SPREAD = Limit("rollout/return_std", above=0.5, part=LATE, over="what was learned")
ERROR = Limit("train/critic_loss", above=1.0, part=LATE, over="|Q|, of the root")


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return how little is explained, or how large the critic's error is beside its values."""
    explained = EXPLAINED.see(seed, case) or _never_explained(seed, case)
    loss, values = ERROR.measure(seed, case), seed.values("train/q_mean")
    size = float(np.median(np.abs(values))) if values.size else 0.0
    error = loss**0.5 / size if loss is not None and loss >= 0 and size else 0.0
    return [one for one in (explained, ERROR.judge(error, seed, case)) if one]


def _never_explained(seed: SeedCase, case: Case) -> Evidence | None:
    """Return how little was ever explained, where episodes differ as much as what was learned: there is a lot to."""
    ever, spread, floor = EVER.measure(seed, case), SPREAD.measure(seed, case), case.curve_floor(seed)
    learned = abs(case.shapes[seed.seed].end - floor) if floor is not None else 0.0
    if ever is None or spread is None or not learned or not case.is_begun(seed):
        return None
    is_much = SPREAD.is_crossed(spread / learned, SPREAD.value)
    return evidence(EVER, seed, ever) if is_much and EVER.is_crossed(ever, EVER.value) else None


RULE = Rule(
    id="critic_uninformative",
    kind="cause",
    severity="medium",
    says="the critic explains next to nothing of the returns",
    look=by_seed(see),
    limits=(EXPLAINED, EVER, SPREAD, ERROR),
    needs=("train/explained_variance|train/critic_loss",),
    source="CartPole prototypes; its false alarms there were runs at their ceiling, hence only where returns are bad",
    cannot_see="returns that are all alike: nothing to explain",
    tries=(
        "the state may be incomplete, or an episode's end reported wrongly: rlx check env RUN",
        "longer rollouts",
        "a higher algo.value_coef, or normalised rewards",
    ),
    changes=(Change("algo.rollout_steps", times=2.0), Change("env.normalize.reward", to=True)),
)
