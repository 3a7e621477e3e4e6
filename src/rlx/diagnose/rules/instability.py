"""Returns swing between good and bad."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.curve import SWINGS
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return how often the curve swings by a large part of its height."""
    found = case.shapes[seed.seed]
    if found.answer != "unstable" or not case.is_begun(seed):
        return None
    return Evidence("swings by 0.4 of what was learned, and back", found.swings, SWINGS, (found.changed, seed.step))


RULE = Rule(
    id="instability",
    kind="symptom",
    severity="medium",
    says="returns swing between good and bad",
    look=by_seed(see),
    needs=("rollout/return_mean|evaluations",),
    source="Jones, Debugging RL (oscillation: lower the learning rate)",
    cannot_see="swings faster than the rows that were logged",
    tries=("lower the learning rate, or let it fall to 0", "larger batches", "a smaller algo.clip_range"),
    changes=(Change("algo.learning_rate", times=0.3), Change("algo.clip_range", times=0.5)),
)
