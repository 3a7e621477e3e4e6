"""NaN or infinity in what training depends on."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed

DERIVED = ("train/explained_variance", "obs/std_ratio", "time/steps_per_second")
"""Ratios, of which one that divides by nothing is no failure."""


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return the first metric that stopped being finite, or the error that says so."""
    if seed.has_diverged:
        return [Evidence("error", seed.reason, steps=(seed.step, seed.step))]
    first = [
        (float(series.steps[at]), name, float(series.values[at]))
        for name, series in seed.series.items()
        if name not in DERIVED
        for at in np.flatnonzero(~np.isfinite(series.values))[:1]
    ]
    return [Evidence(name, str(value), steps=(int(step), int(step))) for step, name, value in sorted(first)[:1]]


RULE = Rule(
    id="not_finite",
    kind="broken",
    severity="high",
    says="a number that training depends on is not finite",
    look=by_seed(see, share=0.0),
    source="Nikanjam et al. 2021 (DRLinter); any value counts",
    cannot_see="which tensor came first where the trainer logs means only",
    tries=(
        "lower the learning rate",
        "bound or normalise rewards and observations",
        "look for a division or a logarithm in the environment: rlx check env RUN",
    ),
    changes=(Change("algo.learning_rate", times=0.1), Change("env.normalize.obs", to=True)),
    is_sudden=True,
)
