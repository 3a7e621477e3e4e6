"""Continuous actions stick to their bounds."""

from __future__ import annotations

from rlx.diagnose.rule import LATE, Change, Limit, Rule, any_of

AT_BOUND = Limit("action/saturation", above=0.9, part=LATE)

RULE = Rule(
    id="action_saturation",
    kind="cause",
    severity="medium",
    says="actions stick to their bounds",
    look=any_of(AT_BOUND),
    limits=(AT_BOUND,),
    needs=("action/saturation",),
    source="Chou et al. 2017 (bias of clipped Gaussians); bang-bang control is sound in some tasks",
    cannot_see="which component",
    tries=("rescale the action space to [−1, 1]", "lower the learning rate", "normalise observations"),
    changes=(Change("algo.learning_rate", times=0.3), Change("env.normalize.obs", to=True)),
)
