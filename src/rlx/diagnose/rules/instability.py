"""Returns swing between good and bad."""

from rlx.diagnose.curve_shape import SWINGS
from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import RunRule, SuggestedChange, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return how often the curve swings by a large part of its height."""
    shape = case.shapes[seed.seed]
    if shape.answer != "unstable" or not case.has_begun(seed):
        return None
    return Evidence("swings by 0.4 of the gain, and back", shape.swings, SWINGS, (shape.changed, seed.step))


RULE = RunRule(
    id="instability",
    kind="symptom",
    severity="medium",
    summary="returns swing between good and bad",
    look=by_seed(look_at_seed),
    needs=("rollout/return_mean|evaluations",),
    source="Jones, Debugging RL (oscillation: lower the learning rate)",
    cannot_see="swings that are faster than the logged rows",
    advice=("lower the learning rate, or let it fall to 0", "use larger batches", "use a smaller algo.clip_range"),
    changes=(SuggestedChange("algo.learning_rate", times=0.3), SuggestedChange("algo.clip_range", times=0.5)),
)
