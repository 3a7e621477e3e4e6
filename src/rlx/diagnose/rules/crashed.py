"""A seed ended with an error."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import FAILED, RunCase, SeedCase
from rlx.diagnose.run_rule import RunRule, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the error of a seed that failed, unless a number was not finite."""
    if seed.state != FAILED or seed.has_diverged:
        return None
    return Evidence("error", seed.reason or "no reason recorded", steps=(seed.step, seed.step))


RULE = RunRule(
    id="crashed",
    kind="broken",
    severity="high",
    summary="a seed ended with an error",
    look=by_seed(look_at_seed, share=0.0),
    source="the run's events",
    cannot_see="what the program did before the error",
    advice=("read the end of its traceback, fix the error and resume",),
    is_sudden=True,
)
