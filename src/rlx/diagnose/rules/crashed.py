"""A seed ended with an error."""

from __future__ import annotations

from rlx.diagnose.case import FAILED, Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the error of a seed that failed for another reason than its numbers."""
    if seed.state != FAILED or seed.has_diverged:
        return None
    return Evidence("error", seed.reason or "no reason recorded", steps=(seed.step, seed.step))


RULE = Rule(
    id="crashed",
    kind="broken",
    severity="high",
    says="a seed ended with an error",
    look=by_seed(see, share=0.0),
    source="the run's events",
    cannot_see="what the program did before it raised",
    tries=("read the end of its traceback, mend it and resume",),
    is_sudden=True,
)
