"""Inputs that never change."""

from __future__ import annotations

from rlx.diagnose.rule import Limit, Rule, any_of

CONSTANT = Limit("obs/constant_share", above=0.2, strong=0.9)

RULE = Rule(
    id="observation_constant",
    kind="cause",
    severity="high",
    says="inputs of the network never change",
    look=any_of(CONSTANT),
    limits=(CONSTANT,),
    needs=("obs/constant_share",),
    source="Nikanjam et al. 2021 (DRLinter); padding and unused sensors are constant in sound environments",
    cannot_see="inputs that change but say nothing; shuffled inputs (rlx check env does)",
    tries=(
        "look at what the environment returns: rlx check env RUN",
        "remove wrappers that clip or overwrite observations",
    ),
)
