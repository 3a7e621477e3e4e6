"""Every episode is cut long before the discount stops looking ahead."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Limit, Rule, by_seed

CUT = Limit("rollout/truncated_share", above=0.99, strong=0.99)
SEEN = Limit(
    "rollout/length_mean", below=0.15, strong=0.1, statistic="max", over="steps the discount sees: 1 / (1 − γ)"
)


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return how little of what the discount looks at an episode lasts, where all are cut and returns are bad."""
    gamma, share, length = case.setting("algo.gamma"), CUT.measure(seed, case), SEEN.measure(seed, case)
    if not isinstance(gamma, (int, float)) or share is None or length is None:
        return []
    found = [CUT.judge(share, seed, case), SEEN.judge(length * (1 - gamma), seed, case)]
    return [one for one in found if one] if all(found) else []


RULE = Rule(
    id="cut_short",
    kind="cause",
    severity="high",
    says="every episode is cut before much can happen",
    look=by_seed(see),
    limits=(CUT, SEEN),
    needs=("rollout/truncated_share", "rollout/length_mean"),
    source="γ says how many steps matter, 1 / (1 − γ); episodes of a seventh of that never show them",
    cannot_see="tasks that are over in a few steps; above a tenth it speaks only where returns are bad",
    tries=("raise the time limit: the wrapper time_limit, or the environment's own", "start nearer to the goal"),
)
