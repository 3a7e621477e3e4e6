"""The critic explains almost nothing of the returns."""

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import LATE, Advice, Limit, RunRule, SuggestedChange, by_seed

EXPLAINED = Limit("train/explained_variance", below=0.05, part=LATE)
EVER = Limit("train/explained_variance", below=0.05, statistic="high")
SPREAD = Limit("rollout/return_std", above=0.5, part=LATE, over="the gain over the floor")
ERROR = Limit("train/critic_loss", above=1.0, part=LATE, over="|Q|, of the root")


def look_at_seed(seed: SeedCase, case: RunCase) -> list[Evidence | None]:
    """Return how little is explained, and how large the critic's error is compared with its values."""
    error = 0.0
    loss = ERROR.measure(seed, case)
    values = seed.values("train/q_mean")
    size = float(np.median(np.abs(values))) if values.size else 0.0
    if loss is not None and loss >= 0 and size:
        error = loss**0.5 / size
    return [EXPLAINED.check(seed, case) or _never_explained(seed, case), ERROR.judge(error, seed, case)]


def _never_explained(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return how little was ever explained, if episodes differ as much as the gain: then there is much to explain."""
    most = EVER.measure(seed, case)
    spread = SPREAD.measure(seed, case)
    floor = case.curve_floor(seed)
    if most is None or spread is None or floor is None or not case.has_begun(seed):
        return None
    gain = abs(case.shapes[seed.seed].end - floor)
    if not gain or not SPREAD.is_crossed(spread / gain) or not EVER.is_crossed(most):
        return None
    return EVER.evidence(most, seed)


RULE = RunRule(
    id="critic_uninformative",
    severity="medium",
    summary="the critic explains almost nothing of the returns",
    look=by_seed(look_at_seed),
    limits=(EXPLAINED, EVER, SPREAD, ERROR),
    needs=("train/explained_variance|train/critic_loss",),
    source="CartPole prototypes; its false alarms there were runs at their ceiling, so the returns must be bad too",
    cannot_see="returns that are all alike: there is nothing to explain",
    advice=(
        Advice("the state may be incomplete, or the end of an episode reported wrongly", "check env {run}"),
        "use longer rollouts",
        "raise algo.value_coef, or normalise rewards",
    ),
    changes=(SuggestedChange("algo.rollout_steps", times=2.0), SuggestedChange("env.normalize.reward", to=True)),
)
