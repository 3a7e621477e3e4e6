"""The policy moves too far in one update."""

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import PPO, Limit, RunRule, SuggestedChange, by_seed

KL = Limit("train/approx_kl", above=0.03, strong=0.1)
KL_SPIKE = Limit("train/approx_kl", above=0.3, strong=2.0, statistic="max")
CLIPPED = Limit("train/clip_fraction", above=0.3, strong=0.5)
USUAL_RANGE = 0.05
"""A smaller algo.clip_range clips any update, however small it is."""


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return which measures of an update are too large. The clip fraction counts if the clip range is a usual one."""
    evidence = [KL.check(seed, case), KL_SPIKE.check(seed, case)]
    ranges = seed.values("train/clip_range")
    if not ranges.size or float(np.median(ranges)) >= USUAL_RANGE:
        evidence.append(CLIPPED.check(seed, case))
    return evidence


RULE = RunRule(
    id="update_too_large",
    severity="high",
    summary="the policy moves too far in an update",
    look=by_seed(look_at_seed),
    limits=(KL, KL_SPIKE, CLIPPED),
    needs=("train/approx_kl|train/clip_fraction",),
    algorithms=PPO,
    source="Schulman et al. 2017 (target_kl .01 to .03); CleanRL's notes on PPO; CartPole prototypes",
    cannot_see="a single large update between two rows; algorithms without a KL",
    advice=("lower the learning rate", "use fewer epochs per update", "stop an update at algo.target_kl 0.02"),
    changes=(
        SuggestedChange("algo.learning_rate", times=0.3),
        SuggestedChange("algo.update_epochs", to=4),
        SuggestedChange("algo.target_kl", to=0.02),
    ),
    is_sudden=True,
)
