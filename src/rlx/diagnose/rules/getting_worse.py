"""Returns fall."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the loss since the start or the peak."""
    shape = case.shapes[seed.seed]
    if shape.answer != "declining" or not case.has_begun(seed) or case.evaluations_rise(seed):
        return None
    what = "loss, as a share of the range"
    return Evidence(what, max(shape.loss, -shape.gain), None, (shape.changed, seed.step))


RULE = RunRule(
    id="getting_worse",
    kind="symptom",
    severity="high",
    summary="returns fall",
    look=by_seed(look_at_seed),
    needs=("rollout/return_mean|evaluations",),
    source="by three standard errors, in the curve's own range",
    cannot_see="why; findings above it may show the cause",
    advice=(Advice("the reward may have the wrong sign", "check env {run}"), "lower the learning rate"),
    changes=(SuggestedChange("algo.learning_rate", times=0.3),),
)
