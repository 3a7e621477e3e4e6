"""A learning rate that no tuned config uses."""

from rlx.diagnose.run_rule import OFF_POLICY, ON_POLICY, Limit, SuggestedChange, limit_rule

HIGH = Limit("train/learning_rate", above=0.008, strong=0.05, statistic="max")
LOW = Limit("train/learning_rate", below=3e-6, strong=1e-7, statistic="max")

RULE = limit_rule(
    HIGH,
    LOW,
    id="learning_rate",
    severity="high",
    summary="the learning rate is outside the usual 1e-5 to 5e-3",
    algorithms=(*ON_POLICY, *OFF_POLICY),
    source="RL Baselines3 Zoo's tuned configs lie within 1e-5 to 5e-3 (Adam)",
    cannot_see="a rate that is wrong for this task only; see update_too_large and policy_frozen",
    advice=("set algo.learning_rate between 1e-4 and 1e-3",),
    changes=(SuggestedChange("algo.learning_rate", to=3e-4),),
    is_sudden=True,
)
