"""How far a policy's evaluation falls behind its training returns."""

from __future__ import annotations

from rlx.diagnose.case import RETURN, Case, SeedCase
from rlx.diagnose.curve import shape
from rlx.diagnose.finding import Evidence

LOST = 0.5  # of what was learned in training
ERRORS = 3.0


def gap(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of what was learned that evaluation does not show, where it is large and sure."""
    floor, series = case.floor(seed), seed.series.get(RETURN)
    is_comparable = case.is_paid_alike or case.setting("eval.env") is not None
    if series is None or seed.report is None or floor is None or not is_comparable:
        return None
    trained = shape(series.steps, series.values, floor=floor)
    learned, lost = trained.end - floor, trained.end - seed.report.mean
    error = max(seed.report.error, trained.visible / ERRORS)
    if not trained.is_learning or learned <= 0 or not lost > ERRORS * error or lost < LOST * learned:
        return None
    return Evidence("share of the training gain lost in evaluation", lost / learned, LOST, (trained.settled, seed.step))
