"""A target network that is hardly ever updated."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import OFF_POLICY, Limit, RunRule, SuggestedChange, by_seed

SELDOM = 0.25  # of the planned steps between two updates
NEVER = 1.0
MOVED = Limit("train/updates", below=3.0, statistic="last", over="updates the target takes to follow: 1 / algo.tau")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return the share of the run between two updates of the target, and how often it could follow at all."""
    evidence: list[Evidence | None] = []
    every = case.setting("algo.target_update_every")
    if isinstance(every, int) and case.planned_steps:
        share = every / case.planned_steps
        if share >= NEVER or (share > SELDOM and case.is_harmed(seed)):
            evidence.append(Evidence("algo.target_update_every / planned steps", share, SELDOM))
    tau = case.setting("algo.tau")
    updates = MOVED.measure(seed, case)
    if updates and isinstance(tau, float):
        evidence.append(MOVED.judge(updates * tau, seed, case))
    return evidence


RULE = RunRule(
    id="stale_target",
    severity="medium",
    summary="the target network hardly ever follows",
    look=by_seed(look_at_seed),
    limits=(MOVED,),
    algorithms=OFF_POLICY,
    source="10,000 steps are meant for millions (Mnih et al. 2015); with τ = .005 it follows in 200 updates",
    cannot_see="a target that is updated too often",
    advice=("lower algo.target_update_every", "raise algo.tau to 0.005"),
    changes=(SuggestedChange("algo.target_update_every", to=250), SuggestedChange("algo.tau", to=0.005)),
)
