"""Every episode is truncated long before the discount stops looking ahead."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Limit, RunRule, by_seed

TRUNCATED = Limit("rollout/truncated_share", above=0.99, strong=0.99)
LENGTH = Limit("rollout/length_mean", below=0.15, strong=0.1, statistic="max", over="discount horizon 1 / (1 − γ)")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return how short episodes are compared with the discount horizon, if all of them are truncated."""
    gamma = case.setting("algo.gamma")
    length = LENGTH.measure(seed, case)
    if not isinstance(gamma, (int, float)) or length is None:
        return []
    evidence = [TRUNCATED.check(seed, case), LENGTH.judge(length * (1 - gamma), seed, case)]
    if not all(evidence):
        return []
    return evidence


RULE = RunRule(
    id="cut_short",
    severity="high",
    summary="every episode is truncated before much can happen",
    look=by_seed(look_at_seed),
    limits=(TRUNCATED, LENGTH),
    needs=("rollout/truncated_share", "rollout/length_mean"),
    source="γ says how many steps matter, 1 / (1 − γ); episodes of a seventh of that never show them",
    cannot_see="tasks that are over in a few steps; above a tenth of the horizon the returns must be bad too",
    advice=("raise the time limit: the wrapper time_limit, or the environment's own", "start nearer to the goal"),
)
