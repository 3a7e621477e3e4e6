"""A target network that is hardly ever updated."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import OFF_POLICY, Change, Limit, Rule, by_seed

SELDOM, NEVER = 0.25, 1.0  # of the planned steps between two updates
MOVED = Limit("train/updates", below=3.0, statistic="last", over="updates the target takes to follow: 1 / algo.tau")


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return the share of the run between two updates of the target, or how often it could follow at all."""
    every, tau, updates = case.setting("algo.target_update_every"), case.setting("algo.tau"), MOVED.measure(seed, case)
    share = every / case.planned_steps if isinstance(every, int) and case.planned_steps else 0.0
    is_stale = share >= NEVER or (share > SELDOM and case.is_harmed(seed))
    found = [Evidence("algo.target_update_every / planned steps", share, SELDOM)] if is_stale else []
    followed = MOVED.judge(updates * tau, seed, case) if updates and isinstance(tau, float) else None
    return [*found, followed] if followed else found


RULE = Rule(
    id="stale_target",
    kind="cause",
    severity="medium",
    says="the target network hardly ever follows",
    look=by_seed(see),
    limits=(MOVED,),
    algorithms=OFF_POLICY,
    source="10,000 steps are meant for millions (Mnih et al. 2015); with τ = .005 it follows in 200 updates",
    cannot_see="a target that is updated too often",
    tries=("lower algo.target_update_every", "raise algo.tau to 0.005"),
    changes=(Change("algo.target_update_every", to=250), Change("algo.tau", to=0.005)),
)
