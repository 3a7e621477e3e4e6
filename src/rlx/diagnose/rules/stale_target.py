"""A target network that is hardly ever updated."""

from __future__ import annotations

from rlx.diagnose.case import Case
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Q_LEARNING, Change, Rule, Sight

SELDOM = 0.25  # of the planned steps between two updates


def look(case: Case) -> Sight | None:
    """Return the share of the run that goes by between two updates of the target."""
    every = case.setting("algo.target_update_every")
    if not isinstance(every, int) or not case.planned_steps or not any(map(case.is_harmed, case.seeds)):
        return None
    share = every / case.planned_steps
    return Sight((Evidence("algo.target_update_every / steps", share, SELDOM),)) if share >= SELDOM else None


RULE = Rule(
    id="stale_target",
    kind="cause",
    severity="medium",
    says="the target network is hardly ever updated",
    look=look,
    algorithms=Q_LEARNING,
    source="the config; the default of 10,000 steps is meant for millions of steps (Mnih et al. 2015)",
    cannot_see="a target that is updated too often",
    tries=("lower algo.target_update_every",),
    changes=(Change("algo.target_update_every", to=250),),
)
