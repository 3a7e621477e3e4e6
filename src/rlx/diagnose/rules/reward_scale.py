"""Returns too large or too small for the critic to follow."""

from __future__ import annotations

from rlx.diagnose.rule import LATE, Change, Limit, Rule, any_of

GRADIENT = Limit("train/gradient_norm", above=100.0, strong=5000.0, per="config:algo.max_grad_norm")
BEHIND = Limit("train/target_abs", above=3.0, strong=10.0, part=LATE, per="train/value_abs")

RULE = Rule(
    id="reward_scale",
    kind="cause",
    severity="high",
    says="the critic cannot follow the size of the returns",
    look=any_of(GRADIENT, BEHIND),
    limits=(GRADIENT, BEHIND),
    needs=("train/gradient_norm|train/target_abs",),
    source="Henderson et al. 2018 (reward scale); Engstrom et al. 2020; in ratios, so that no unit matters by itself",
    cannot_see="a scale that only slows learning down",
    tries=("normalise rewards: env.normalize.reward", "divide rewards by their typical return; never shift them"),
    changes=(Change("env.normalize.reward", to=True),),
)
