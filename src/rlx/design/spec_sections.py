"""Which rules speak about which section of a spec."""

from __future__ import annotations

SECTION_RULES = {
    "observation": ("spec_observation", "spec_leak", "spec_scale", "obs_outside_space", "obs_shape", "obs_aliased",
                    "obs_shuffled"),
    "action": ("spec_action", "dead_action", "action_bounds"),
    "reward": ("spec_reward_dominance", "spec_alive_bonus", "spec_sparse_reward", "reward_sign", "reward_sign_flips",
               "reward_type", "reward_unbounded", "alive_bonus_beats_finishing", "shaping_farmable",
               "shaping_not_potential"),
    "mdp": ("spec_horizon", "spec_discount", "spec_observability", "termination_as_truncation",
            "time_limit_as_termination", "never_ends", "spec_control_rate", "seed_ignored"),
    "strategy": ("spec_algorithm",),
    "architecture": ("spec_batch", "spec_buffer_kind", "spec_placement", "spec_policy_lag"),
    "multi_agent": ("spec_agents",),
    "hierarchy": ("spec_hierarchy",),
    "imitation": ("spec_demonstrations",),
    "offline": ("spec_offline",),
    "preferences": ("spec_preferences",),
    "randomisation": ("spec_randomisation",),
    "curriculum": ("spec_curriculum",),
    "evaluation": ("spec_evaluation",),
    "robustness": ("spec_robustness",),
}  # fmt: skip
"""The rules that speak about a section: those of the spec itself, and those of `rlx check env` and `rlx review`."""

DESIGN_RULES = frozenset(rule for rules in SECTION_RULES.values() for rule in rules)
