"""Returns stay where no training leaves them."""

from __future__ import annotations

from rlx.diagnose.case import BY_CHANCE, Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return a final score like the random policy's; or the level of a flat curve that no training would reach too."""
    found, above = case.shapes[seed.seed], case.above_random(seed)
    if not case.is_begun(seed):
        return None
    if above is not None and abs(above) <= BY_CHANCE:
        return Evidence("standard errors between the final evaluation and the random policy", above, BY_CHANCE)
    if found.answer != "flat" or case.is_above_floor(seed):
        return None
    floor = case.curve_floor(seed)
    beside = "" if floor is None else f", {floor:.4g} without training"
    return Evidence(f"return, flat{beside}: now", found.end, None, (0, seed.step))


RULE = Rule(
    id="no_learning",
    kind="symptom",
    severity="high",
    says="it does not learn",
    look=by_seed(see),
    needs=("rollout/return_mean|evaluations",),
    source="no change that noise could not make, or no score above the random policy's; three standard errors",
    cannot_see="whether more steps would do: MountainCar is flat until it is solved",
    tries=(
        "see whether anything can be learned here: rlx check env RUN",
        "start from a tuned config, where there is one: rlx train catalog:NAME",
        "train longer, or explore more",
    ),
    changes=(Change("algo.learning_rate", to=1e-3), Change("algo.total_timesteps", times=3.0)),
)
