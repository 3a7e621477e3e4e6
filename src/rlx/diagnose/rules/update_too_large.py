"""The policy moves too far in one update."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import PPO, Change, Limit, Rule, by_seed

KL = Limit("train/approx_kl", above=0.03, strong=0.1)
KL_SPIKE = Limit("train/approx_kl", above=0.3, strong=2.0, statistic="max")
CLIPPED = Limit("train/clip_fraction", above=0.3, strong=0.5)

USUAL_RANGE = 0.05
"""Of a smaller algo.clip_range any update is clipped, however small it is."""


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return what of an update is too large; what is clipped counts where the range is a usual one."""
    ranges = seed.values("train/clip_range")
    is_usual = not ranges.size or float(np.median(ranges)) >= USUAL_RANGE
    limits = [KL, KL_SPIKE, *([CLIPPED] if is_usual else [])]
    return [found for found in (limit.see(seed, case) for limit in limits) if found]


RULE = Rule(
    id="update_too_large",
    kind="cause",
    severity="high",
    says="the policy moves too far in an update",
    look=by_seed(see),
    limits=(KL, KL_SPIKE, CLIPPED),
    needs=("train/approx_kl|train/clip_fraction",),
    algorithms=PPO,
    source="Schulman et al. 2017 (target_kl .01 to .03); CleanRL's notes on PPO; CartPole prototypes",
    cannot_see="a single large update between two rows; algorithms without a KL",
    tries=("halve the learning rate", "fewer epochs an update", "stop an update at algo.target_kl 0.02"),
    changes=(
        Change("algo.learning_rate", times=0.3),
        Change("algo.update_epochs", to=4),
        Change("algo.target_kl", to=0.02),
    ),
    is_sudden=True,
)
