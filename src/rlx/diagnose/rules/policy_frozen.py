"""Updates that change nothing."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import PPO, Limit, RunRule, SuggestedChange, by_seed

STILL = Limit("train/approx_kl", below=1e-4, part=(0.0, 0.5))
UNCLIPPED = Limit("train/clip_fraction", below=1e-3, part=(0.0, 0.5))
OPEN = Limit("train/entropy_share", below=0.15)
"""Below this entropy, the policy does not move because it is certain. That is entropy_collapse."""


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return the tiny KL of a policy that does not learn, and that nothing is ever clipped."""
    still = STILL.check(seed, case)
    if still is None or OPEN.check(seed, case):
        return []
    return [still, UNCLIPPED.check(seed, case)]


RULE = RunRule(
    id="policy_frozen",
    severity="high",
    summary="updates hardly change the policy",
    look=by_seed(look_at_seed),
    limits=(STILL, UNCLIPPED, OPEN),
    needs=("train/approx_kl",),
    algorithms=PPO,
    source="Jones, Debugging RL; approx_kl of healthy PPO lies between 1e-3 and 3e-2",
    cannot_see="whether a policy has converged or is stuck: the returns must be bad too",
    advice=(
        "raise the learning rate",
        "normalise rewards: large value losses drown the policy loss",
        "use more epochs per update",
    ),
    changes=(SuggestedChange("algo.learning_rate", times=10.0), SuggestedChange("env.normalize.reward", to=True)),
)
