"""The best checkpoint was chosen by luck."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, by_seed

ERRORS = 3.0
LOST = 0.25  # of what was claimed above the floor


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the share of `best`'s claim that other episodes do not show."""
    floor = case.floor(seed)
    if seed.best is None or seed.claimed is None or floor is None:
        return None
    claimed, lost = seed.claimed.mean - floor, seed.claimed.mean - seed.best.mean
    error = float((seed.best.error**2 + seed.claimed.error**2) ** 0.5)
    if claimed <= 0 or not lost > ERRORS * error or lost < LOST * claimed:
        return None
    return Evidence("share of what `best` claimed that other episodes do not show", lost / claimed, LOST)


RULE = Rule(
    id="selection_bias",
    kind="symptom",
    severity="low",
    says="`best` was chosen by luck",
    look=by_seed(see),
    needs=("evaluations",),
    source="the highest of many evaluations is high by skill and by luck (winner's curse)",
    cannot_see="anything before `best` is evaluated on other episodes: rlx eval RUN:best",
    tries=("claim the score on fresh episodes: rlx eval RUN:best --fresh 50", "choose by more episodes: eval.episodes"),
)
