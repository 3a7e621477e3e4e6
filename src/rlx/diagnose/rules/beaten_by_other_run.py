"""Another run of the project did far better under the same evaluation."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import HALF, REPORT, RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the share of the other run's gain over the random policy."""
    other = case.best_other_run
    share = case.share_of_best_other_run(seed)
    if share is None or other is None or seed.report is None:
        return None
    scores = f"return {seed.report.mean:.4g} against {other.mean:.4g} of {other.run}"
    what = f"{scores}, as a share of that run's gain over random"
    return Evidence(what, share, HALF, (0, seed.step))


RULE = RunRule(
    id="outdone",
    kind="symptom",
    severity="medium",
    summary="another run of this project did far better",
    look=by_seed(look_at_seed),
    needs=(REPORT,),
    source="the same evaluation in no more steps; less than half of its gain over random, by three standard errors",
    cannot_see="the reachable score if no other run had the same evaluation",
    advice=(Advice("compare the two configs", "config diff {run} {other}", "other run"),),
)
