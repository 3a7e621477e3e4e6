"""The policy scores far less greedily than it does in training."""

from __future__ import annotations

from rlx.diagnose.case import Case, SeedCase
from rlx.diagnose.finding import Evidence
from rlx.diagnose.gap import gap
from rlx.diagnose.rule import Rule, by_seed


def see(seed: SeedCase, case: Case) -> Evidence | None:
    """Return the gap where evaluation differs from training in nothing but acting greedily."""
    is_greedy = seed.report is not None and seed.report.is_greedy
    return gap(seed, case) if is_greedy and not case.setting("eval.env") else None


RULE = Rule(
    id="greedy_gap",
    kind="symptom",
    severity="medium",
    says="the greedy policy scores far less than the sampled one did in training",
    look=by_seed(see),
    needs=("rollout/return_mean",),
    source="evidence of 2 and more pooled standard errors; half of what was learned",
    cannot_see="which of the two is what you want: it depends on how the policy is used",
    tries=(
        "evaluate as it is trained: eval.deterministic false",
        "train on until it is sure: lower algo.entropy_coef",
        "is the state complete? a policy that must guess acts better by chance",
    ),
    changes=(),
)
