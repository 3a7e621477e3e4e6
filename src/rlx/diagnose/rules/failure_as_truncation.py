"""Every episode is truncated, at different lengths: failures are reported as truncations."""

import numpy as np

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import Advice, Limit, RunRule, by_seed

TRUNCATED = Limit("rollout/truncated_share", above=0.99, statistic="min")
VARIES = 0.02  # of the mean length


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the share of truncated episodes if their lengths differ. A time limit has one length."""
    share = TRUNCATED.measure(seed, case)
    lengths = seed.values("rollout/length_mean")
    if share is None or not TRUNCATED.is_crossed(share) or len(lengths) < 5:
        return None
    spread = float(np.ptp(lengths)) / float(np.mean(lengths))
    return TRUNCATED.evidence(share, seed) if spread > VARIES else None


RULE = RunRule(
    id="failure_as_truncation",
    severity="high",
    summary="every episode ends as truncated, at different lengths",
    look=by_seed(look_at_seed),
    limits=(TRUNCATED,),
    needs=("rollout/truncated_share", "rollout/length_mean"),
    source="Pardo et al. 2018 (time limits): values are bootstrapped beyond a final state",
    cannot_see="single episodes that are reported wrongly",
    advice=(Advice("return terminated=True if an episode really ends", "check env {run}"),),
)
