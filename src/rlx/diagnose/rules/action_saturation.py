"""Continuous actions stick to their bounds."""

from rlx.diagnose.run_rule import LATE, Limit, SuggestedChange, limit_rule

AT_BOUND = Limit("action/saturation", above=0.9, part=LATE)

RULE = limit_rule(
    AT_BOUND,
    id="action_saturation",
    severity="medium",
    summary="actions stick to their bounds",
    source="Chou et al. 2017 (bias of clipped Gaussians); bang-bang control is fine in some tasks",
    cannot_see="which action component it is",
    advice=("rescale the action space to [−1, 1]", "lower the learning rate", "normalise observations"),
    changes=(SuggestedChange("algo.learning_rate", times=0.3), SuggestedChange("env.normalize.obs", to=True)),
)
