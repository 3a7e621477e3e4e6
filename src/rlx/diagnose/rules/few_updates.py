"""Hardly any update for the steps that were taken."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import OFF_POLICY, Change, Limit, Rule, by_seed

SHARE = Limit("train/updates", below=0.01, statistic="max", over="steps trained")


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the updates a step, where returns are bad."""
    updates = SHARE.measure(seed, case)
    return SHARE.judge(updates / seed.step, seed, case) if updates is not None and seed.step else None


RULE = Rule(
    id="few_updates",
    kind="cause",
    severity="medium",
    says="there is hardly an update for the steps taken",
    look=by_seed(see),
    limits=(SHARE,),
    needs=("train/updates",),
    algorithms=OFF_POLICY,
    source="RL Baselines3 Zoo: an update for every step to every fourth; one in a hundred is none of them",
    cannot_see="updates that are too small",
    tries=("update more often: algo.train_every 1", "more gradient steps each time"),
    changes=(Change("algo.train_every", to=1), Change("algo.gradient_steps", to=-1)),
)
