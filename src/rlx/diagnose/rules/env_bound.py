"""Most of the time goes into the environment."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Change, Limit, Rule, by_seed, evidence

SHARE = Limit("time/env_share", above=0.8)


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of the time that stepping takes, whatever the returns."""
    share = SHARE.measure(seed, case)
    return evidence(SHARE, seed, share) if share is not None and SHARE.is_crossed(share, SHARE.value) else None


RULE = Rule(
    id="env_bound",
    kind="cost",
    severity="low",
    says="most of the time goes into the environment",
    look=by_seed(see),
    limits=(SHARE,),
    needs=("time/env_share",),
    source="at 80 % a learner that costs nothing saves a fifth",
    cannot_see="what in a step is slow",
    tries=("step environments side by side: env.vectorization async", "profile a step: rlx check env ENV"),
    changes=(Change("env.vectorization", to="async"),),
)
