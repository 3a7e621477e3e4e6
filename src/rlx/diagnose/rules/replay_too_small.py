"""A replay buffer that forgets too soon."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import OFF_POLICY, Change, Limit, Rule, by_seed

BATCHES = Limit("replay/capacity", below=20.0, strong=8.0, statistic="last", per="config:algo.batch_size")
KEPT = Limit("replay/capacity", below=0.05, statistic="last", over="steps trained")


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return how many batches, or which share of the steps, the buffer holds."""
    batches, capacity = BATCHES.see(seed, case), KEPT.measure(seed, case)
    kept = KEPT.judge(capacity / seed.step, seed, case) if capacity and seed.step else None
    return [one for one in (batches, kept) if one]


RULE = Rule(
    id="replay_too_small",
    kind="cause",
    severity="high",
    says="the replay buffer holds too little",
    look=by_seed(see),
    limits=(BATCHES, KEPT),
    needs=("replay/capacity",),
    algorithms=OFF_POLICY,
    source="Zhang and Sutton 2017 (replay capacity); Fedus et al. 2020",
    cannot_see="a buffer that is too large for a task that changes",
    tries=("raise algo.buffer_size to the number of steps",),
    changes=(Change("algo.buffer_size", to=100_000),),
)
