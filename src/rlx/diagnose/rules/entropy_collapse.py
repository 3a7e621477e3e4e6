"""The policy stops exploring before it has learned."""

from rlx.diagnose.run_rule import EARLY, LATE, ON_POLICY, Limit, SuggestedChange, limit_rule

EARLY_SHARE = Limit("train/entropy_share", below=0.15, part=EARLY)
LATE_SHARE = Limit("train/entropy_share", below=0.05, part=LATE)
LATE_STD = Limit("train/std", below=0.05, part=LATE)

RULE = limit_rule(
    EARLY_SHARE,
    LATE_SHARE,
    LATE_STD,
    id="entropy_collapse",
    severity="high",
    summary="the policy hardly explores any more",
    algorithms=ON_POLICY,
    source="Jones, Debugging RL (H / log A starts near 1, falls, flattens); CartPole prototypes",
    cannot_see="whether a reward with the wrong sign caused it",
    advice=(
        "raise algo.entropy_coef",
        "lower the learning rate",
        "if returns fell too, check the sign of the reward",
    ),
    changes=(SuggestedChange("algo.entropy_coef", to=0.01), SuggestedChange("algo.learning_rate", times=0.3)),
)
