"""Updates that change nothing."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import PPO, Change, Limit, Rule, by_seed

STILL = Limit("train/approx_kl", below=1e-4, part=(0.0, 0.5))
UNCLIPPED = Limit("train/clip_fraction", below=1e-3, part=(0.0, 0.5))
OPEN = Limit("train/entropy_share", below=0.15)
"""Below, the policy does not move because it has made up its mind: that is entropy_collapse."""


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return the tiny KL of a policy that does not learn; where there is none, that nothing is ever clipped."""
    if OPEN.see(seed, case):
        return []
    found = [limit.see(seed, case) for limit in (STILL, UNCLIPPED)]
    return [one for one in found if one] if found[0] else []


RULE = Rule(
    id="policy_frozen",
    kind="cause",
    severity="high",
    says="updates hardly change the policy",
    look=by_seed(see),
    limits=(STILL, UNCLIPPED, OPEN),
    needs=("train/approx_kl",),
    algorithms=PPO,
    source="Jones, Debugging RL; approx_kl of healthy PPO lies between 1e-3 and 3e-2",
    cannot_see="a policy that has converged and one that is stuck look alike: it speaks only where returns are bad",
    tries=(
        "raise the learning rate",
        "normalise rewards: large value losses crowd the policy out",
        "more epochs an update",
    ),
    changes=(Change("algo.learning_rate", times=10.0), Change("env.normalize.reward", to=True)),
)
