"""It stopped improving below what is known to be reachable."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return where it stands beside what was seen on this environment, with at least as many steps."""
    found = case.shapes[seed.seed]
    if not found.is_learning or case.reachable is None or not case.is_short(seed):
        return None
    what = f"return, {case.reachable:.4g} was seen after {case.reachable_steps:,} steps: now"
    return Evidence(what, found.end, case.reachable, (found.settled, seed.step))


RULE = Rule(
    id="plateau",
    kind="symptom",
    severity="medium",
    says="it stopped below what can be reached here",
    look=by_seed(see),
    needs=("rollout/return_mean|evaluations",),
    source="what the catalog's tuned config was measured to reach on the same environment, half the way from random",
    cannot_see="what is reachable where rlx has measured nothing: there a plateau looks like the end of learning",
    tries=("compare with the tuned config: rlx train catalog:NAME", "explore more", "train longer"),
    changes=(Change("algo.entropy_coef", to=0.01), Change("algo.total_timesteps", times=2.0)),
)
