"""Training became much slower while it ran."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Limit, Rule, by_seed

SLOWER = Limit("time/steps_per_second", below=0.25, strong=0.25, part=(0.8, 1.0), over="rate before the middle")
BEFORE = Limit("time/steps_per_second", part=(0.25, 0.5))
"""Not from the start: there an off-policy algorithm only fills its buffer."""
FEWEST = 20


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the last rate beside the one before the middle."""
    late, early = SLOWER.measure(seed, case), BEFORE.measure(seed, case)
    if late is None or not early or len(seed.values(SLOWER.metric)) < FEWEST:
        return None
    return SLOWER.judge(late / early, seed, case)


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
