"""A reward term that is NaN or infinite."""

from collections.abc import Iterator

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import TERMS, RunCase
from rlx.diagnose.run_rule import RunRule


def look(case: RunCase) -> Iterator[Sighting]:
    """Find each term that was NaN or infinite, from its first step on."""
    first_steps: dict[str, dict[int, int]] = {}
    for seed in case.reward_history.seeds:
        for term, series in seed.per_step.items():
            bad = series.steps[~np.isfinite(series.values)]
            if len(bad):
                first_steps.setdefault(term, {})[seed.seed] = int(bad[0])
    for term, by_seed in first_steps.items():
        first = min(by_seed.values())
        evidence = Evidence(f"first step of {term} that is not finite", float(first), seeds=tuple(by_seed))
        tries = (f"look for a division by zero, a log or an overflow in `{term}`",)
        yield Sighting((evidence,), f"`{term}` is NaN or infinite, first at step {first:,}", tries=tries)


RULE = RunRule(
    id="term_not_finite",
    kind="broken",
    severity="high",
    summary="a reward term is NaN or infinite",
    look=look,
    needs=(TERMS,),
    source="any value counts",
    cannot_see="steps that a logged mean hides",
)
