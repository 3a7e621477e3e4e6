"""Episodes end at one length, and it is called termination: a time limit in disguise."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import LATE, Limit, Rule, by_seed, evidence

TRUNCATED = Limit("rollout/truncated_share", below=0.01, part=LATE, statistic="max")
SAME = 1e-6  # of the length
GREW = 0.02


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of truncated episodes where they grew to one length and stayed there."""
    share, lengths = TRUNCATED.measure(seed, case), seed.values("rollout/length_mean")
    if share is None or not TRUNCATED.is_crossed(share, TRUNCATED.value) or len(lengths) < 10:
        return None
    late = lengths[-max(5, len(lengths) // 10) :]
    top = float(late[-1])
    is_one = float(np.ptp(late)) <= SAME * top and top >= float(lengths.max())
    return evidence(TRUNCATED, seed, share) if is_one and float(lengths.min()) < (1 - GREW) * top else None


RULE = Rule(
    id="limit_as_termination",
    kind="cause",
    severity="medium",
    says="all episodes end at the same length, as terminated",
    look=by_seed(see),
    limits=(TRUNCATED,),
    needs=("rollout/truncated_share", "rollout/length_mean"),
    source="Pardo et al. 2018 (time limits): the end of time is taken for a failure",
    cannot_see="tasks that really end at a fixed time and show it in the observation",
    tries=("return truncated=True at the time limit: rlx check env RUN",),
)
