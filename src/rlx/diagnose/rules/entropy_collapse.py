"""The policy stops exploring before it has learned."""

from __future__ import annotations

from rlx.diagnose.rule import EARLY, LATE, ON_POLICY, Change, Limit, Rule, any_of

EARLY_SHARE = Limit("train/entropy_share", below=0.15, part=EARLY)
LATE_SHARE = Limit("train/entropy_share", below=0.05, part=LATE)
LATE_STD = Limit("train/std", below=0.05, part=LATE)

RULE = Rule(
    id="entropy_collapse",
    kind="cause",
    severity="high",
    says="the policy hardly explores any more",
    look=any_of(EARLY_SHARE, LATE_SHARE, LATE_STD),
    limits=(EARLY_SHARE, LATE_SHARE, LATE_STD),
    needs=("train/entropy_share|train/std",),
    algorithms=ON_POLICY,
    source="Jones, Debugging RL (H / log A starts near 1, falls, flattens); CartPole prototypes",
    cannot_see="whether a reward of the wrong sign drove it there",
    tries=(
        "raise algo.entropy_coef",
        "lower the learning rate",
        "if returns fell with it: is the reward's sign right?",
    ),
    changes=(Change("algo.entropy_coef", to=0.01), Change("algo.learning_rate", times=0.3)),
)
