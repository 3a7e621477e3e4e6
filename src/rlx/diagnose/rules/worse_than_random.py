"""What was learned scores less than acting at random."""

from __future__ import annotations

from rlx.diagnose.case import BY_CHANCE, REPORT, Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return how surely the final evaluation lies below the random policy's."""
    above = case.above_random(seed) if case.is_begun(seed) else None
    if above is None or above >= -BY_CHANCE or seed.report is None or case.random is None:
        return None
    what = f"final evaluation {seed.report.mean:.4g}, random policy {case.random.mean:.4g}: standard errors below"
    return Evidence(what, -above, BY_CHANCE, (0, seed.step))


RULE = Rule(
    id="worse_than_random",
    kind="symptom",
    severity="high",
    says="it scores less than the random policy",
    look=by_seed(see),
    needs=(REPORT,),
    source="the run's own final evaluation against the random policy on the same episodes, three standard errors",
    cannot_see="why: a reward or a loss with the wrong sign, or a policy that settled on one bad action",
    tries=(
        "the reward, or the loss, may have the wrong sign: rlx check env RUN",
        "does the reward that is trained on pay for the task? compare both returns over the run",
    ),
)
