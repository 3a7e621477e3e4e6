"""Inputs that never change."""

from rlx.diagnose.run_rule import Advice, Limit, limit_rule

CONSTANT = Limit("obs/constant_share", above=0.2, strong=0.9)

RULE = limit_rule(
    CONSTANT,
    id="observation_constant",
    severity="high",
    summary="inputs of the network never change",
    source="Nikanjam et al. 2021 (DRLinter); padding and unused sensors are constant in healthy environments",
    cannot_see="inputs that change without meaning; shuffled inputs (rlx check env does)",
    advice=(
        Advice("look at the observations that the environment returns", "check env {run}"),
        "remove wrappers that clip or overwrite observations",
    ),
)
