"""The policy scores less than acting at random."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import BY_CHANCE, REPORT, RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return how many standard errors the final evaluation lies below the random policy's."""
    above = case.above_random(seed) if case.has_begun(seed) else None
    if above is None or above >= -BY_CHANCE or seed.report is None or case.random is None:
        return None
    what = f"final evaluation {seed.report.mean:.4g}, random policy {case.random.mean:.4g}: standard errors below"
    return Evidence(what, -above, BY_CHANCE, (0, seed.step))


RULE = RunRule(
    id="worse_than_random",
    kind="symptom",
    severity="high",
    summary="it scores less than the random policy",
    look=by_seed(look_at_seed),
    needs=(REPORT,),
    source="the run's own final evaluation against the random policy on the same episodes, three standard errors",
    cannot_see="why: a reward or a loss with the wrong sign, or a policy that settled on one bad action",
    advice=(
        Advice("the reward, or the loss, may have the wrong sign", "check env {run}"),
        "check that the training reward pays for the task: compare both returns over the run",
    ),
)
