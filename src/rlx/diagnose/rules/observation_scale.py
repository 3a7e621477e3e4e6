"""Inputs too large for the network."""

from __future__ import annotations

from rlx.diagnose.rule import Change, Limit, Rule, any_of

LARGEST = Limit("obs/max_abs", above=50.0, strong=1000.0)
UNEVEN = Limit("obs/std_ratio", above=1000.0, strong=1e6)

RULE = Rule(
    id="observation_scale",
    kind="cause",
    severity="medium",
    says="inputs of the network are far from order one",
    look=any_of(LARGEST, UNEVEN),
    limits=(LARGEST, UNEVEN),
    needs=("obs/max_abs|obs/std_ratio",),
    source="Schulman, Nuts and Bolts (clip((x − µ) / σ, ±10)); 5 times that bound",
    cannot_see="inputs that are too small",
    tries=("normalise observations: env.normalize.obs", "divide by known bounds in a wrapper"),
    changes=(Change("env.normalize.obs", to=True),),
    is_sudden=True,
)
