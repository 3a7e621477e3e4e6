"""Returns too large or too small for the critic to follow."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Change, Limit, Rule, by_seed

GRADIENT = Limit("train/gradient_norm", above=100.0, strong=5000.0, per="config:algo.max_grad_norm")
SMALLEST_CLIP = 0.01  # below, any gradient is clipped to next to nothing
BEHIND = Limit("train/target_abs", above=3.0, strong=10.0, part=LATE, per="train/value_abs")


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return a gradient that is clipped to next to nothing; and values behind their targets for that reason."""
    clip = case.setting("algo.max_grad_norm")
    if isinstance(clip, (int, float)) and clip < SMALLEST_CLIP:
        return []
    clipped, behind = GRADIENT.see(seed, case), BEHIND.see(seed, case)
    is_unclipped = GRADIENT.measure(seed, case) is None
    return [one for one in (clipped, behind if clipped or is_unclipped else None) if one]


RULE = Rule(
    id="reward_scale",
    kind="cause",
    severity="high",
    says="the critic cannot follow the size of the returns",
    look=by_seed(see),
    limits=(GRADIENT, BEHIND),
    needs=("train/gradient_norm|train/target_abs",),
    source="Henderson et al. 2018 (reward scale); Engstrom et al. 2020; in ratios, so that no unit matters by itself",
    cannot_see="a scale that only slows learning down",
    tries=("normalise rewards: env.normalize.reward", "divide rewards by their typical return; never shift them"),
    changes=(Change("env.normalize.reward", to=True),),
    is_sudden=True,
)
