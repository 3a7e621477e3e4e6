"""Most of the time goes into the environment."""

from __future__ import annotations

from rlx.diagnose.rule import Change, Limit, Rule, any_of

SHARE = Limit("time/env_share", above=0.8, strong=0.8)


RULE = Rule(
    id="env_bound",
    kind="cost",
    severity="low",
    says="most of the time goes into the environment",
    look=any_of(SHARE),
    limits=(SHARE,),
    needs=("time/env_share",),
    source="at 80 % a learner that costs nothing saves a fifth",
    cannot_see="what in a step is slow",
    tries=("step environments side by side: env.vectorization async", "profile a step: rlx check env RUN"),
    changes=(Change("env.vectorization", to="async"),),
)
