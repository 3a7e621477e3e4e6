"""Most of the budget is spent before the first update."""

from collections.abc import Iterator

from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Sighting
from rlx.diagnose.run_case import RunCase
from rlx.diagnose.run_rule import OFF_POLICY, RunRule, SuggestedChange

SPENT = 0.4  # of the planned steps


def look(case: RunCase) -> Iterator[Sighting]:
    """Find the share of the steps before learning starts."""
    starts = case.setting("algo.learning_starts")
    if isinstance(starts, int) and case.planned_steps and any(map(case.is_harmed, case.seeds)):
        share = starts / case.planned_steps
        if share > SPENT:
            yield Sighting((Evidence("algo.learning_starts / steps", share, SPENT),))


RULE = RunRule(
    id="learning_starts_late",
    severity="medium",
    summary="learning starts late in the run",
    look=look,
    algorithms=OFF_POLICY,
    source="the config; RL Baselines3 Zoo's configs start within the first tenth",
    cannot_see="too few updates for another reason",
    advice=("lower algo.learning_starts", "train longer"),
    changes=(SuggestedChange("algo.learning_starts", times=0.1),),
)
