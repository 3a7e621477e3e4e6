"""The policy scores far less in evaluation than it does in training."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.gap import gap
from rlx.diagnose.rule import Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the gap where evaluation has an environment of its own, or does not act greedily."""
    is_greedy = seed.report is not None and seed.report.is_greedy
    return gap(seed, case) if case.setting("eval.env") or not is_greedy else None


RULE = Rule(
    id="train_eval_gap",
    kind="symptom",
    severity="high",
    says="it scores far less in evaluation than in training",
    look=by_seed(see),
    needs=("rollout/return_mean",),
    source="evidence of 2 and more pooled standard errors; half of what was learned",
    cannot_see="which difference between the environments does it",
    tries=(
        "evaluate in the training environment too: the difference is in wrappers, arguments or time limits",
        "train on what it will be evaluated on",
    ),
)
