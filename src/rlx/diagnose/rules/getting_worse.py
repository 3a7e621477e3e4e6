"""Returns fall from where they began."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return where the curve began, and where it ends."""
    found = case.shapes[seed.seed]
    if found.answer != "declining" or not case.is_begun(seed):
        return None
    high, share = max(found.start, found.peak), max(found.loss, -found.gain)
    return Evidence(
        f"loss ({high:.4g}, now {found.end:.4g}), share of the range", share, None, (found.changed, seed.step)
    )


RULE = Rule(
    id="getting_worse",
    kind="symptom",
    severity="high",
    says="returns fall",
    look=by_seed(see),
    needs=("rollout/return_mean|evaluations",),
    source="three standard errors sure, in the curve's own range",
    cannot_see="why; findings above it may say",
    tries=("the reward may have the wrong sign: rlx check env RUN", "lower the learning rate"),
    changes=(Change("algo.learning_rate", times=0.3),),
)
