"""Returns stay where no training leaves them."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the level of a flat curve that does not stand above what no training scores."""
    found = case.shapes[seed.seed]
    if found.answer != "flat" or not case.is_begun(seed) or case.is_above_floor(seed):
        return None
    floor = case.floor(seed)
    beside = "" if floor is None else f", {floor:.4g} without training"
    return Evidence(f"return, flat{beside}: now", found.end, None, (0, seed.step))


RULE = Rule(
    id="no_learning",
    kind="symptom",
    severity="high",
    says="it does not learn",
    look=by_seed(see),
    needs=("rollout/return_mean|evaluations",),
    source="no change that noise could not make, three standard errors; not above the random policy",
    cannot_see="whether more steps would do: MountainCar is flat until it is solved",
    tries=(
        "see whether anything can be learned here: rlx check env RUN",
        "start from a tuned config, where there is one: rlx train catalog:NAME",
        "train longer, or explore more",
    ),
    changes=(Change("algo.learning_rate", to=1e-3), Change("algo.total_timesteps", times=3.0)),
)
