"""A reward term that never changes."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Limit, Rule, by_seed
from rlx.diagnose.terms import SATURATION

PREFIX = "reward/term/"
SPREAD = Limit(f"{PREFIX}*", below=SATURATION)
FEWEST = 10


def see(seed: SeedCase, case: Case) -> list[Evidence]:
    """Return the terms whose spread over the run is below a hundredth of their size."""
    found = []
    for name, series in seed.series.items():
        values = series.values[np.isfinite(series.values)]
        if name.startswith(PREFIX) and len(values) >= FEWEST and case.is_harmed(seed):
            size = float(np.abs(values).max())
            spread = float(np.std(values)) / size if size else 0.0
            if SPREAD.is_crossed(spread, SPREAD.value):
                found.append(Evidence(f"spread of `{name.removeprefix(PREFIX)}` / its size", spread, SPREAD.value))
    return found


RULE = Rule(
    id="term_constant",
    kind="cause",
    severity="low",
    says="a reward term never changes",
    look=by_seed(see),
    limits=(SPREAD,),
    needs=(f"{PREFIX}*",),
    source="Ma et al. 2023 (Eureka, tip 2: nearly identical values mean that it is not optimised)",
    cannot_see="terms that change within an episode and not from one to the next",
    tries=("rescale it, rewrite it, or drop it",),
)
