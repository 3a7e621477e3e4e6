"""What was learned is lost again."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.curve import COLLAPSE_LOSS
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of the peak's height that is lost."""
    found = case.shapes[seed.seed]
    if found.answer != "collapsed":
        return None
    what = f"loss since the peak ({found.peak:.4g}, now {found.end:.4g}), share of the range"
    return Evidence(what, found.loss, COLLAPSE_LOSS, (found.peak_step, seed.step))


RULE = Rule(
    id="collapse_after_peak",
    kind="symptom",
    severity="high",
    says="what was learned is lost again",
    look=by_seed(see, share=0.34),
    needs=("rollout/return_mean|evaluations",),
    source="loses half of (peak − floor) for at least a tenth of the run, four standard errors sure",
    cannot_see="why; findings above it may say",
    tries=("keep `best`: rlx eval RUN:best", "let the learning rate fall to 0", "stop at the peak"),
    changes=(Change("algo.learning_rate", times=0.3),),
)
