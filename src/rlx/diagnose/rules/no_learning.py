"""Returns stay at the level of an untrained policy."""

from collections.abc import Iterator
from dataclasses import replace

from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import BY_CHANCE, RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, SuggestedChange, advised_commands, by_seed, seed_count, spell

BY_RANDOM = "standard errors between the final evaluation and the random policy"
UNCONFIRMED = f"{BY_RANDOM}, while the training returns rise"
UNCONFIRMED_ADVICE = (
    Advice("measure it on more episodes before you believe either", "eval {run} --episodes 100"),
    "check that evaluation and training see the same observations",
    "train longer",
)


def look(case: RunCase) -> Iterator[Sighting]:
    """Find seeds without a gain. If their training returns rise, say only that no evaluation confirms it."""
    for sighting in by_seed(look_at_seed)(case):
        if not all(evidence.what == UNCONFIRMED for evidence in sighting.evidence):
            yield sighting
            continue
        where = f"{spell(sighting.evidence)}{seed_count(sighting.evidence, case)}"
        tries = tuple(item if isinstance(item, str) else item.fill(case) for item in UNCONFIRMED_ADVICE)
        yield replace(
            sighting, claim=f"no evaluation confirms that it learns: {where}", severity="medium", tries=tries,
            commands=advised_commands(UNCONFIRMED_ADVICE, case), has_own_advice=True,
        )  # fmt: skip


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
        what = UNCONFIRMED if case.returns_rise(seed) else BY_RANDOM
        return Evidence(what, above, BY_CHANCE)
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
    look=look,
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
