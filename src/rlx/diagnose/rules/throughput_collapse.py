"""Training became much slower while it ran."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Limit, Rule, by_seed, evidence

SLOWER = Limit("time/steps_per_second", below=0.25, part=LATE, over="early rate")
FEWEST = 12


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the late rate beside the early one."""
    rates = seed.values("time/steps_per_second")
    late = SLOWER.measure(seed, case)
    early = float(np.median(rates[1 : len(rates) // 3])) if len(rates) >= FEWEST else 0.0
    if late is None or not early > 0:
        return None
    share = late / early
    return evidence(SLOWER, seed, share) if SLOWER.is_crossed(share, SLOWER.value) else None


RULE = Rule(
    id="throughput_collapse",
    kind="cost",
    severity="low",
    says="training became much slower",
    look=by_seed(see),
    limits=(SLOWER,),
    needs=("time/steps_per_second",),
    source="a quarter of the early rate; half of it is what another process on the machine costs",
    cannot_see="whether the machine was busy with something else",
    tries=("look for something in the environment that grows: lists, logs, figures", "look at time/memory_mb"),
)
