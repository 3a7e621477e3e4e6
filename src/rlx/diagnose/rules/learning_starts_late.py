"""Most of the budget is spent before the first update."""

from __future__ import annotations

from rlx.diagnose.case import Case
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import OFF_POLICY, Change, Rule, Sight

SPENT = 0.4  # of the planned steps


def look(case: Case) -> Sight | None:
    """Return the share of the steps before learning starts."""
    starts = case.setting("algo.learning_starts")
    if not isinstance(starts, int) or not case.planned_steps or not any(map(case.is_harmed, case.seeds)):
        return None
    share = starts / case.planned_steps
    return Sight((Evidence("algo.learning_starts / steps", share, SPENT),)) if share > SPENT else None


RULE = Rule(
    id="learning_starts_late",
    kind="cause",
    severity="medium",
    says="learning starts late in the run",
    look=look,
    algorithms=OFF_POLICY,
    source="the config; RL Baselines3 Zoo's configs start within the first tenth",
    cannot_see="updates that are too few for another reason",
    tries=("lower algo.learning_starts", "train longer"),
    changes=(Change("algo.learning_starts", times=0.1),),
)
