"""Every episode scores the same: there is nothing to learn from."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import RETURN, Case, SeedCase
from rlx.diagnose.curve import FEWEST_POINTS
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Limit, Rule, by_seed

NONZERO = Limit("reward/nonzero_share", below=1e-3)
SAME = 1e-9  # of the returns' size: equal but for rounding


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return the one return there is; or the share of steps with a reward, where hardly any has one."""
    values = seed.curve.values[np.isfinite(seed.curve.values)]
    if len(values) < FEWEST_POINTS or not case.is_begun(seed):
        return []
    steps = (int(seed.curve.steps[0]), int(seed.curve.steps[-1]))
    spread = seed.values("rollout/return_std")
    is_spread = bool(spread.size) and float(np.nanmax(spread)) > 0
    if float(np.ptp(values)) <= SAME * float(np.abs(values).max()) and not is_spread:
        return [Evidence(f"every {RETURN}", float(values[0]), steps=steps)]
    seldom = NONZERO.see(seed, case)
    return [seldom] if seldom else []


RULE = Rule(
    id="no_signal",
    kind="cause",
    severity="high",
    says="rewards say nothing about what was done",
    look=by_seed(see),
    limits=(NONZERO,),
    source="Jones, Debugging RL (random search must meet a reward); a return that never varies has no gradient",
    cannot_see="rewards that vary but do not depend on the actions (rlx check env does)",
    tries=(
        "give a reward on the way to the goal, potential-based",
        "start episodes nearer to the goal, or make them longer",
        "explore more",
    ),
)
