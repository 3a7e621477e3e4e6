"""Values that no policy could earn."""

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import LATE, Limit, RunRule, SuggestedChange, by_seed

BEYOND = Limit("train/q_mean", above=1.2, strong=1.2, part=LATE, over="the largest return: max |r| / (1 − γ)")
OVER_TARGET = Limit("train/value_abs", above=3.0, strong=10.0, part=LATE, per="train/target_abs")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return how far the values are beyond what rewards allow, and beyond their own targets."""
    return [_beyond_rewards(seed, case), OVER_TARGET.check(seed, case)]


def _beyond_rewards(seed: SeedCase, case: RunCase) -> Evidence | None:
    if case.setting("env.normalize.reward"):  # then values have another unit than the logged rewards
        return None
    gamma = case.setting("algo.gamma")
    rewards = seed.values("reward/max_abs")
    values = BEYOND.measure(seed, case)
    if values is None or not isinstance(gamma, (int, float)) or gamma >= 1:
        return None
    if not rewards.size or not np.max(rewards) > 0:
        return None
    return BEYOND.judge(abs(values) * (1 - gamma) / float(np.nanmax(rewards)), seed, case)


RULE = RunRule(
    id="value_explosion",
    severity="high",
    summary="the critic's values are larger than any return can be",
    look=by_seed(look_at_seed),
    limits=(BEYOND, OVER_TARGET),
    needs=("train/q_mean|train/value_abs", "reward/max_abs|train/target_abs"),
    source="the bound max |r| / (1 − γ); van Hasselt et al. 2018 (soft divergence)",
    cannot_see="overestimation below the bound",
    advice=("lower the learning rate", "update the target network more slowly", "clip or normalise rewards"),
    changes=(SuggestedChange("algo.learning_rate", times=0.3), SuggestedChange("algo.tau", to=0.005)),
    is_sudden=True,
)
