"""The policy loses its gain again."""

from rlx.diagnose.curve_shape import COLLAPSE_LOSS
from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the share of the peak's height that is lost."""
    shape = case.shapes[seed.seed]
    if shape.answer != "collapsed":
        return None
    what = "loss since the peak, as a share of the range"
    return Evidence(what, shape.loss, COLLAPSE_LOSS, (shape.peak_step, seed.step))


RULE = RunRule(
    id="collapse_after_peak",
    kind="symptom",
    severity="high",
    summary="the policy loses its gain again",
    look=by_seed(look_at_seed, share=0.34),
    needs=("rollout/return_mean|evaluations",),
    source="loses half of (peak − floor) for at least a tenth of the run, by four standard errors",
    cannot_see="why; findings above it may show the cause",
    advice=(Advice("keep `best`", "eval {run}:best"), "let the learning rate fall to 0", "stop at the peak"),
    changes=(SuggestedChange("algo.learning_rate", times=0.3),),
)
