"""It stopped improving below a return that is known to be reachable."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return its level and the return that was reached on this environment with at most as many steps."""
    shape = case.shapes[seed.seed]
    if not shape.is_learning or case.reachable is None or not case.is_short(seed):
        return None
    what = f"return, {case.reachable:.4g} was reached after {case.reachable_steps:,} steps: now"
    return Evidence(what, shape.end, case.reachable, (shape.settled, seed.step))


RULE = RunRule(
    id="plateau",
    kind="symptom",
    severity="medium",
    summary="it stopped below what can be reached here",
    look=by_seed(look_at_seed),
    needs=("rollout/return_mean|evaluations",),
    source="half the way from random to what the catalog's tuned config reached on the same environment",
    cannot_see="the reachable return if rlx has not measured it: then a plateau looks like the end of learning",
    advice=(
        Advice("compare with the tuned config", "train catalog:{catalog}", "catalog"),
        "explore more",
        "train longer",
    ),
    changes=(SuggestedChange("algo.entropy_coef", to=0.01), SuggestedChange("algo.total_timesteps", times=2.0)),
)
