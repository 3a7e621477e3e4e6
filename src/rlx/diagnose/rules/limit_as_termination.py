"""All episodes end at one length as terminated: a time limit that is reported as termination."""

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import LATE, Advice, Limit, RunRule, by_seed

TRUNCATED = Limit("rollout/truncated_share", below=0.01, part=LATE, statistic="max")
SAME = 1e-6  # of the length
GREW = 0.02


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the share of truncated episodes if they grew to one length and stayed there."""
    share = TRUNCATED.measure(seed, case)
    lengths = seed.values("rollout/length_mean")
    if share is None or not TRUNCATED.is_crossed(share) or len(lengths) < 10:
        return None
    late = lengths[-max(5, len(lengths) // 10) :]
    top = float(late[-1])
    is_one_length = float(np.ptp(late)) <= SAME * top and top >= float(lengths.max())
    has_grown = float(lengths.min()) < (1 - GREW) * top
    return TRUNCATED.evidence(share, seed) if is_one_length and has_grown else None


RULE = RunRule(
    id="limit_as_termination",
    severity="medium",
    summary="all episodes end at the same length, as terminated",
    look=by_seed(look_at_seed),
    limits=(TRUNCATED,),
    needs=("rollout/truncated_share", "rollout/length_mean"),
    source="Pardo et al. 2018 (time limits): the learner takes the time limit for a failure",
    cannot_see="tasks that really end at a fixed time and show it in the observation",
    advice=(Advice("return truncated=True at the time limit", "check env {run}"),),
)
