"""Every episode has the same return: there is nothing to learn from."""

import numpy as np

from rlx.diagnose.curve_shape import FEWEST_POINTS
from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RETURN, RunCase, SeedCase
from rlx.diagnose.run_rule import Limit, RunRule, by_seed

NONZERO = Limit("reward/nonzero_share", below=1e-3)
SAME = 1e-9  # of the returns' size: equal up to rounding


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the only return there is, or the share of steps with a reward if hardly any has one."""
    values = seed.curve.values[np.isfinite(seed.curve.values)]
    if len(values) < FEWEST_POINTS or not case.has_begun(seed):
        return None
    spread = seed.values("rollout/return_std")
    has_spread = bool(spread.size) and float(np.nanmax(spread)) > 0
    if float(np.ptp(values)) <= SAME * float(np.abs(values).max()) and not has_spread:
        steps = (int(seed.curve.steps[0]), int(seed.curve.steps[-1]))
        return Evidence(f"every {RETURN}", float(values[0]), steps=steps)
    return NONZERO.check(seed, case)


RULE = RunRule(
    id="no_signal",
    severity="high",
    summary="rewards do not depend on the actions",
    look=by_seed(look_at_seed),
    limits=(NONZERO,),
    source="Jones, Debugging RL (random search must find a reward); a return that never varies has no gradient",
    cannot_see="rewards that vary but do not depend on the actions (rlx check env does)",
    advice=(
        "reward progress towards the goal, potential-based",
        "start episodes nearer to the goal, or make them longer",
        "explore more",
    ),
)
