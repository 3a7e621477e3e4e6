"""A replay buffer that forgets too soon."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import OFF_POLICY, Limit, RunRule, SuggestedChange, by_seed

BATCHES = Limit("replay/capacity", below=20.0, strong=8.0, statistic="last", per="config:algo.batch_size")
KEPT = Limit("replay/capacity", below=0.05, statistic="last", over="steps trained")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return how many batches, and which share of the steps, the buffer holds."""
    evidence = [BATCHES.check(seed, case)]
    capacity = KEPT.measure(seed, case)
    if capacity and seed.step:
        evidence.append(KEPT.judge(capacity / seed.step, seed, case))
    return evidence


RULE = RunRule(
    id="replay_too_small",
    severity="high",
    summary="the replay buffer holds too little",
    look=by_seed(look_at_seed),
    limits=(BATCHES, KEPT),
    needs=("replay/capacity",),
    algorithms=OFF_POLICY,
    source="Zhang and Sutton 2017 (replay capacity); Fedus et al. 2020",
    cannot_see="a buffer that is too large for a task that changes",
    advice=("raise algo.buffer_size to the number of steps",),
    changes=(SuggestedChange("algo.buffer_size", to=100_000),),
)
