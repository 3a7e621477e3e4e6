"""The rules that diagnose a run, one file per failure. To add one, write a module with a `RULE` and name it here."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlx.diagnose.run_rule import RunRule

NAMES = (
    "not_finite", "crashed", "missing_metric", "cut_short", "observation_constant", "observation_scale",
    "no_signal", "learning_rate", "update_too_large", "value_explosion", "reward_scale", "policy_frozen",
    "entropy_collapse", "one_sided_action", "action_saturation", "exploration_never_annealed",
    "exploration_missing", "replay_too_small", "learning_starts_late", "few_updates", "stale_target",
    "short_sighted", "failure_as_truncation", "limit_as_termination", "reward_hacking", "task_not_done",
    "term_domination", "critic_uninformative", "term_saturation", "term_constant", "greedy_gap", "train_eval_gap",
    "worse_than_random",
    "collapse_after_peak", "getting_worse", "no_learning", "instability", "seeds_disagree", "plateau", "outdone",
    "selection_bias", "throughput_collapse", "env_bound",
)  # fmt: skip
"""The ids of the rules that `rlx diagnose` runs. Findings of the same kind and severity keep this order."""
TERM_NAMES = (
    "term_not_finite", "reward_hacking", "term_domination", "term_saturation", "term_constant", "term_zero",
)  # fmt: skip
"""The ids of the rules on reward terms that `rlx reflect` runs."""
MODULES = {
    "cut_short": "truncated_early",
    "no_signal": "constant_return",
    "one_sided_action": "action_collapse",
    "outdone": "beaten_by_other_run",
    "short_sighted": "gamma_too_small",
}
"""Modules that have another name than their rule's id, which must not change."""


@cache
def load(name: str) -> RunRule:
    """Return the rule with this id."""
    rule: RunRule = importlib.import_module(f"rlx.diagnose.rules.{MODULES.get(name, name)}").RULE
    return rule


def all_rules() -> tuple[RunRule, ...]:
    """Return all rules of `rlx diagnose` in their order."""
    return tuple(load(name) for name in NAMES)


def term_rules() -> tuple[RunRule, ...]:
    """Return the rules of `rlx reflect` in their order."""
    return tuple(load(name) for name in TERM_NAMES)
