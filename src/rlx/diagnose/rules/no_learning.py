"""Returns stay at the level of an untrained policy."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import BY_CHANCE, RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange, by_seed


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return a final score like the random policy's, or the level of a flat curve that no training reaches too."""
    if not case.has_begun(seed):
        return None
    if case.has_learned(seed):
        return None  # a greedy policy that scores less has its own rule
    shape = case.shapes[seed.seed]
    if shape.answer == "declining":
        return None  # it learned the wrong thing: `getting_worse`, with the opposite advice on the learning rate
    above = case.above_random(seed)
    if above is not None and abs(above) <= BY_CHANCE:
        return Evidence("standard errors between the final evaluation and the random policy", above, BY_CHANCE)
    if shape.answer != "flat" or case.is_above_floor(seed):
        return None
    floor = case.curve_floor(seed)
    what = "return, flat: now"
    if floor is not None:
        what = f"return, flat, {floor:.4g} without training: now"
    return Evidence(what, shape.end, None, (0, seed.step))


RULE = RunRule(
    id="no_learning",
    kind="symptom",
    severity="high",
    summary="it does not learn",
    look=by_seed(look_at_seed),
    needs=("rollout/return_mean|evaluations",),
    source="no change beyond noise, or no score above the random policy's; three standard errors",
    cannot_see="whether more steps would help: MountainCar is flat until it is solved",
    advice=(
        Advice("check whether anything can be learned here", "check env {run}"),
        Advice("start from a tuned config if there is one", "train catalog:{catalog}", "catalog"),
        "train longer, or explore more",
    ),
    changes=(SuggestedChange("algo.learning_rate", to=1e-3), SuggestedChange("algo.total_timesteps", times=3.0)),
)
