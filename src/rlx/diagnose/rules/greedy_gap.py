"""The greedy policy scores far less than the sampled one did in training."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import RunRule, by_seed, evaluation_gap


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the gap if evaluation differs from training only in acting greedily."""
    is_greedy = seed.report is not None and seed.report.is_greedy
    return evaluation_gap(seed, case) if is_greedy and not case.setting("eval.env") else None


RULE = RunRule(
    id="greedy_gap",
    kind="symptom",
    severity="medium",
    summary="the greedy policy scores far less than the sampled one did in training",
    look=by_seed(look_at_seed),
    needs=("rollout/return_mean",),
    source="half of the training gain, by at least 2 pooled standard errors",
    cannot_see="which of the two you want: that depends on how the policy is used",
    advice=(
        "evaluate as it is trained: eval.deterministic false",
        "train until the policy is more certain: lower algo.entropy_coef",
        "check whether the state is complete: a policy that must guess acts better at random",
    ),
)
