"""The reward rises while the task is not done better."""

from __future__ import annotations

from rlx.diagnose.case import NOTHING, RETURN, Case, SeedCase
from rlx.diagnose.divergence import divergence
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed

SUCCESS = "rollout/success_rate"


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return a return that rises beside successes that fall, or stay few."""
    found = divergence(seed.series.get(RETURN, NOTHING), seed.series.get(SUCCESS, NOTHING), "success_rate")
    if found is None:
        return []
    steps = (found.step, found.last_step)
    return [
        Evidence(f"{RETURN} from {found.returns[0]:.4g} to", found.returns[1], steps=steps),
        Evidence(f"{SUCCESS} from {found.task[0]:.4g} to", found.task[1], steps=steps),
    ]


RULE = Rule(
    id="reward_hacking",
    kind="cause",
    severity="high",
    says="the reward rises while the task is not done better",
    look=by_seed(see),
    needs=(SUCCESS, RETURN),
    source="Amodei et al. 2016; Pan et al. 2022 (proxy up, true reward down)",
    cannot_see="tasks without a measure of success: set info['is_success']",
    tries=("see which term pays for it: rlx reflect RUN", "lower or bound the term that rises"),
)
