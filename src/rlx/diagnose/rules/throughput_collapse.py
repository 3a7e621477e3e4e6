"""Training became much slower while it ran."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Limit, RunRule, by_seed

SLOWER = Limit("time/steps_per_second", below=0.25, strong=0.25, part=(0.8, 1.0), over="rate before the middle")
BEFORE = Limit("time/steps_per_second", part=(0.25, 0.5))
"""Not from the start, because an off-policy algorithm only fills its buffer then."""
FEWEST = 20


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the last rate compared with the one before the middle."""
    late = SLOWER.measure(seed, case)
    early = BEFORE.measure(seed, case)
    if late is None or not early or len(seed.values(SLOWER.metric)) < FEWEST:
        return None
    return SLOWER.judge(late / early, seed, case)


RULE = RunRule(
    id="throughput_collapse",
    kind="cost",
    severity="low",
    summary="training became much slower",
    look=by_seed(look_at_seed),
    limits=(SLOWER,),
    needs=("time/steps_per_second",),
    source="a quarter of the early rate; another process on the machine costs half of it",
    cannot_see="whether the machine was busy with something else",
    advice=("look for something in the environment that grows: lists, logs, figures", "look at time/memory_mb"),
)
