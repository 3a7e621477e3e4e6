"""No returns, or returns that stopped coming: nothing says whether the run learns."""

from __future__ import annotations

from rlx.diagnose.case import RETURN, RUNNING, Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed

STALE = 0.5  # of the run without a new value


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return what is missing: every return, or those of the second half."""
    if not case.is_begun(seed) or seed.state in ("prepared", "unknown") or not seed.step:
        return None
    curve = seed.curve if len(seed.curve) else seed.series.get(RETURN, seed.curve)
    if not len(curve):
        return Evidence(RETURN, "never logged, and no evaluation", steps=(0, seed.step))
    last = int(curve.steps[-1])
    if seed.state != RUNNING and last < STALE * seed.step:
        return Evidence(RETURN, "no value since", steps=(last, seed.step))
    return None


RULE = Rule(
    id="missing_metric",
    kind="broken",
    severity="high",
    says="no return says whether it learns",
    look=by_seed(see),
    source="a run that ends without its metric is not evidence",
    cannot_see="why: no episode ended, the script does not log it, or a wrapper hides it",
    tries=(
        "end episodes: a time limit in the environment, or the wrapper time_limit",
        "in a script: run.log(step, {'rollout/return_mean': …})",
    ),
)
