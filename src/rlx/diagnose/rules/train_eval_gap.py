"""The policy scores far less in evaluation than in training."""

from rlx.diagnose.finding import Evidence
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.diagnose.run_rule import RunRule, by_seed, evaluation_gap


def look_at_seed(seed: SeedCase, case: RunCase) -> Evidence | None:
    """Return the gap if evaluation has its own environment, or does not act greedily."""
    is_greedy = seed.report is not None and seed.report.is_greedy
    return evaluation_gap(seed, case) if case.setting("eval.env") or not is_greedy else None


RULE = RunRule(
    id="train_eval_gap",
    kind="symptom",
    severity="high",
    summary="it scores far less in evaluation than in training",
    look=by_seed(look_at_seed),
    needs=("rollout/return_mean",),
    source="half of the training gain, by at least 2 pooled standard errors",
    cannot_see="which difference between the environments causes it",
    advice=(
        "evaluate in the training environment too: the difference is in wrappers, arguments or time limits",
        "train on the environment that you evaluate on",
    ),
)
