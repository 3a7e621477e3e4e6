"""No returns, or returns that stopped: rlx cannot tell whether the run learns."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RETURN, RUNNING, RunCase, SeedCase
from rlx.diagnose.run_rule import RunRule, by_seed

STALE = 0.5  # of the run without a new value


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the missing metric: all returns, or those of the second half."""
    if not case.has_begun(seed) or seed.state in ("prepared", "unknown") or not seed.step:
        return None
    curve = seed.curve if len(seed.curve) else seed.series.get(RETURN, seed.curve)
    if not len(curve):
        return Evidence(RETURN, "never logged, and no evaluation", steps=(0, seed.step))
    last = int(curve.steps[-1])
    if seed.state != RUNNING and last < STALE * seed.step:
        return Evidence(RETURN, "no value since", steps=(last, seed.step))
    return None


RULE = RunRule(
    id="missing_metric",
    kind="broken",
    severity="high",
    summary="no return shows whether it learns",
    look=by_seed(look_at_seed),
    source="a run that ends without its metric is not evidence",
    cannot_see="why: no episode ended, the script does not log it, or a wrapper hides it",
    advice=(
        "end episodes: a time limit in the environment, or the wrapper time_limit",
        "in a script: run.log(step, {'rollout/return_mean': …})",
    ),
)
