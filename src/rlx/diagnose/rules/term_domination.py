"""One reward term drowns the others."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Limit, Rule, by_seed
from rlx.diagnose.terms import DOMINATION

PREFIX = "reward/term_abs/"
SHARE = Limit(f"{PREFIX}*", above=DOMINATION, part=LATE)


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the largest term's share of all |reward|, where there are several and returns are bad."""
    sizes = {name.removeprefix(PREFIX): float(np.nanmedian(series.values[-max(1, len(series) * 2 // 5) :]))
             for name, series in seed.series.items() if name.startswith(PREFIX)}  # fmt: skip
    total = sum(sizes.values())
    if len(sizes) < 2 or not total > 0 or not case.is_harmed(seed):
        return None
    name, size = max(sizes.items(), key=lambda item: item[1])
    is_crossed = SHARE.is_crossed(size / total, SHARE.value)
    return Evidence(f"share of |reward| of `{name}`", size / total, SHARE.value) if is_crossed else None


RULE = Rule(
    id="term_domination",
    kind="cause",
    severity="medium",
    says="one reward term drowns the others",
    look=by_seed(see),
    limits=(SHARE,),
    needs=(f"{PREFIX}*",),
    source="Ma et al. 2023 (Eureka, tip 3); 80 % of |reward|",
    cannot_see="whether the large term is the task itself: it speaks only where returns are bad",
    tries=("rescale the term", "see how the terms went: rlx reflect RUN"),
)
