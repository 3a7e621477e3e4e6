"""Another run of the project did far better under the same evaluation."""

from __future__ import annotations

from rlx.diagnose.case import HALF, REPORT, Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of the other run's gain over the random policy."""
    share, known = case.share_of_precedent(seed), case.precedent
    if share is None or known is None or seed.report is None:
        return None
    what = f"final score {seed.report.mean:.4g}, {known.mean:.4g} by {known.run}: share of its gain over random"
    return Evidence(what, share, HALF, (0, seed.step))


RULE = Rule(
    id="outdone",
    kind="symptom",
    severity="medium",
    says="another run of this project did far better",
    look=by_seed(see),
    needs=(REPORT,),
    source="the same evaluation in no more steps; less than half of its gain over random, three standard errors sure",
    cannot_see="what is reachable where no other run was evaluated alike",
    tries=("see what differs between the two configs: rlx config diff RUN OTHER",),
)
