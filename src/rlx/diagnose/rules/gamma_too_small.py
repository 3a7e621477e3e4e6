"""A discount that does not see as far as an episode lasts."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import LATE, Limit, RunRule, SuggestedChange, by_seed

LENGTH = Limit("rollout/length_mean", above=33.0, strong=60.0, part=LATE, over="discount horizon 1 / (1 − γ)")
SMALLEST_GAMMA = 0.5
SMALLEST_RATIO = 5.0
"""No tuned config has a γ below .5. Then shorter episodes count too, if the returns are bad."""


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return how many times longer than the discount horizon an episode lasts."""
    gamma = case.setting("algo.gamma")
    length = LENGTH.measure(seed, case)
    if not isinstance(gamma, (int, float)) or gamma >= 1 or not length:
        return None
    ratio = length * (1 - gamma)
    if gamma < SMALLEST_GAMMA and ratio > SMALLEST_RATIO and case.is_harmed(seed):
        return LENGTH.evidence(ratio, seed)
    return LENGTH.judge(ratio, seed, case)


RULE = RunRule(
    id="short_sighted",
    severity="medium",
    summary="the discount sees only a small part of an episode",
    look=by_seed(look_at_seed),
    limits=(LENGTH,),
    needs=("rollout/length_mean",),
    source="γ ≈ 1 − 1 / horizon; RL Baselines3 Zoo's episodes last up to 20 times the discount horizon",
    cannot_see="tasks in which only the next steps matter; below 60 times, the returns must be bad too",
    advice=("raise algo.gamma to 0.99",),
    changes=(SuggestedChange("algo.gamma", to=0.99),),
)
