"""Values that no policy could earn."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Change, Limit, Rule, by_seed

BEYOND = Limit("train/q_mean", above=1.2, strong=1.2, part=LATE, over="the largest return: max |r| / (1 − γ)")
OVER_TARGET = Limit("train/value_abs", above=3.0, strong=10.0, part=LATE, per="train/target_abs")


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return how far the values are beyond what rewards allow, or beyond their own targets."""
    gamma, rewards = case.setting("algo.gamma"), seed.values("reward/max_abs")
    found = []
    is_raw = not case.setting("env.normalize.reward")  # else values are in another unit than the rewards that are told
    values = BEYOND.measure(seed, case) if is_raw else None
    if values is not None and isinstance(gamma, (int, float)) and gamma < 1 and rewards.size and np.max(rewards) > 0:
        share = abs(values) * (1 - gamma) / float(np.nanmax(rewards))
        found.append(BEYOND.judge(share, seed, case))
    return [one for one in (*found, OVER_TARGET.see(seed, case)) if one]


RULE = Rule(
    id="value_explosion",
    kind="cause",
    severity="high",
    says="the critic's values are larger than any return can be",
    look=by_seed(see),
    limits=(BEYOND, OVER_TARGET),
    needs=("train/q_mean|train/value_abs", "reward/max_abs|train/target_abs"),
    source="the bound max |r| / (1 − γ); van Hasselt et al. 2018 (soft divergence)",
    cannot_see="overestimation below the bound",
    tries=("lower the learning rate", "update the target network more slowly", "clip or normalise rewards"),
    changes=(Change("algo.learning_rate", times=0.3), Change("algo.tau", to=0.005)),
    is_sudden=True,
)
