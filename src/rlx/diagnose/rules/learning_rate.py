"""A learning rate outside what any of the tuned configs uses."""

from __future__ import annotations

from rlx.diagnose.rule import OFF_POLICY, ON_POLICY, Change, Limit, Rule, any_of

HIGH = Limit("train/learning_rate", above=0.008, strong=0.05, statistic="max")
LOW = Limit("train/learning_rate", below=3e-6, strong=1e-7, statistic="max")

RULE = Rule(
    id="learning_rate",
    kind="cause",
    severity="high",
    says="the learning rate is outside the usual 1e-5 to 5e-3",
    look=any_of(HIGH, LOW),
    limits=(HIGH, LOW),
    needs=("train/learning_rate",),
    algorithms=(*ON_POLICY, *OFF_POLICY),
    source="RL Baselines3 Zoo's tuned configs lie within 1e-5 to 5e-3 (Adam)",
    cannot_see="a rate that is wrong for this task only; see update_too_large and policy_frozen",
    tries=("set algo.learning_rate between 1e-4 and 1e-3",),
    changes=(Change("algo.learning_rate", to=3e-4),),
    is_sudden=True,
)
