"""Inputs that are too large for the network."""

from rlx.diagnose.run_rule import Limit, SuggestedChange, limit_rule

LARGEST = Limit("obs/max_abs", above=50.0, strong=1000.0)
UNEVEN = Limit("obs/std_ratio", above=1000.0, strong=1e6)

RULE = limit_rule(
    LARGEST,
    UNEVEN,
    id="observation_scale",
    severity="medium",
    summary="inputs of the network are far from order one",
    source="Schulman, Nuts and Bolts (clip((x − µ) / σ, ±10)); 5 times that bound",
    cannot_see="inputs that are too small",
    advice=("normalise observations: env.normalize.obs", "divide by known bounds in a wrapper"),
    changes=(SuggestedChange("env.normalize.obs", to=True),),
    is_sudden=True,
)
