"""The rules, one file a failure mode: a table of names, in the order in which findings of a kind are ranked."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlx.diagnose.rule import Rule

NAMES = (
    "not_finite",
    "crashed",
    "missing_metric",
    "cut_short",
    "observation_constant",
    "observation_scale",
    "no_signal",
    "learning_rate",
    "update_too_large",
    "value_explosion",
    "reward_scale",
    "policy_frozen",
    "entropy_collapse",
    "one_sided_action",
    "action_saturation",
    "exploration_never_annealed",
    "exploration_missing",
    "replay_too_small",
    "learning_starts_late",
    "few_updates",
    "stale_target",
    "short_sighted",
    "failure_as_truncation",
    "limit_as_termination",
    "reward_hacking",
    "term_domination",
    "critic_uninformative",
    "term_saturation",
    "term_constant",
    "greedy_gap",
    "train_eval_gap",
    "worse_than_random",
    "collapse_after_peak",
    "getting_worse",
    "no_learning",
    "instability",
    "seeds_disagree",
    "plateau",
    "outdone",
    "selection_bias",
    "throughput_collapse",
    "env_bound",
)


@cache
def load(name: str) -> Rule:
    """Return one rule."""
    rule: Rule = importlib.import_module(f"rlx.diagnose.rules.{name}").RULE
    return rule


def every() -> tuple[Rule, ...]:
    """Return all rules in their order."""
    return tuple(load(name) for name in NAMES)
