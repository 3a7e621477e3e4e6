"""Returns that are too large or too small for the critic to follow."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import LATE, Limit, RunRule, SuggestedChange, by_seed

GRADIENT = Limit("train/gradient_norm", above=100.0, strong=5000.0, per="config:algo.max_grad_norm")
SMALLEST_CLIP = 0.01  # a smaller one clips any gradient to almost nothing
BEHIND = Limit("train/target_abs", above=3.0, strong=10.0, part=LATE, per="train/value_abs")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return a gradient that is clipped to almost nothing, and values that lag behind their targets for that reason."""
    clip = case.setting("algo.max_grad_norm")
    if isinstance(clip, (int, float)) and clip < SMALLEST_CLIP:
        return []
    clipped = GRADIENT.check(seed, case)
    if clipped is None and GRADIENT.measure(seed, case) is not None:
        return []
    return [clipped, BEHIND.check(seed, case)]


RULE = RunRule(
    id="reward_scale",
    severity="high",
    summary="the critic cannot follow the size of the returns",
    look=by_seed(look_at_seed),
    limits=(GRADIENT, BEHIND),
    needs=("train/gradient_norm|train/target_abs",),
    source="Henderson et al. 2018 (reward scale); Engstrom et al. 2020; limits are ratios, so units do not matter",
    cannot_see="a scale that only slows learning down",
    advice=("normalise rewards: env.normalize.reward", "divide rewards by their typical return; never shift them"),
    changes=(SuggestedChange("env.normalize.reward", to=True),),
    is_sudden=True,
)
