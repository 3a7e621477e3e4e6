"""Every episode is truncated, but not at one length: its end is not reported as what it is."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Limit, Rule, by_seed, evidence

TRUNCATED = Limit("rollout/truncated_share", above=0.99, statistic="min")
VARIES = 0.02  # of the mean length


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of truncated episodes where their lengths differ: a time limit has one length."""
    share, lengths = TRUNCATED.measure(seed, case), seed.values("rollout/length_mean")
    if share is None or not TRUNCATED.is_crossed(share, TRUNCATED.value) or len(lengths) < 5:
        return None
    spread = float(np.ptp(lengths)) / float(np.mean(lengths))
    return evidence(TRUNCATED, seed, share) if spread > VARIES else None


RULE = Rule(
    id="failure_as_truncation",
    kind="cause",
    severity="high",
    says="every episode ends as truncated, at different lengths",
    look=by_seed(see),
    limits=(TRUNCATED,),
    needs=("rollout/truncated_share", "rollout/length_mean"),
    source="Pardo et al. 2018 (time limits): values are bootstrapped beyond an end that is final",
    cannot_see="single endings that are reported wrongly",
    tries=("return terminated=True where an episode really ends: rlx check env RUN",),
)
