"""The best checkpoint was chosen by luck."""

import math

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, RunRule, by_seed

ERRORS = 3.0
LOST = 0.25  # of the claimed gain over the floor


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the share of the gain claimed for `best` that other episodes do not show."""
    floor = case.floor(seed)
    if seed.best is None or seed.claimed is None or floor is None:
        return None
    claimed = seed.claimed.mean - floor
    lost = seed.claimed.mean - seed.best.mean
    error = math.hypot(seed.best.error, seed.claimed.error)
    if claimed <= 0 or not lost > ERRORS * error or lost < LOST * claimed:
        return None
    return Evidence("share of the gain claimed for `best` that other episodes do not show", lost / claimed, LOST)


RULE = RunRule(
    id="selection_bias",
    kind="symptom",
    severity="low",
    summary="`best` was chosen by luck",
    look=by_seed(look_at_seed),
    needs=("evaluations",),
    source="the highest of many evaluations is high by skill and by luck (winner's curse)",
    cannot_see="anything before `best` is evaluated on other episodes: rlx eval RUN:best",
    advice=(
        Advice("report the score on fresh episodes", "eval {run}:best --fresh 50"),
        "choose by more episodes: eval.episodes",
    ),
)
