"""Most of the time goes into the environment."""

from rlx.diagnose.run_rule import Advice, Limit, SuggestedChange, limit_rule

ENV_SHARE = Limit("time/env_share", above=0.8, strong=0.8)

RULE = limit_rule(
    ENV_SHARE,
    id="env_bound",
    kind="cost",
    severity="low",
    summary="most of the time goes into the environment",
    source="at 80 %, a learner that costs nothing saves a fifth",
    cannot_see="what makes a step slow",
    advice=("step environments in parallel: env.vectorization async", Advice("profile a step", "check env {run}")),
    changes=(SuggestedChange("env.vectorization", to="async"),),
)
