"""Signals: the facts on which cards are chosen, as numbers. A signal is measured, or it is absent.

`finding_RULE` is 1 if a rule of `rlx diagnose`, `check env`, `review` or `check spec` found something, and 0 if the
rule looked and found nothing. `task_…` and `stack_…` come from words. All other names are listed in `MEANINGS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlx.diagnose.rule import RuleReport
    from rlx.diagnose.run_case import RunCase

Signals = dict[str, float]

FROM_ENV = {
    "is_discrete": "the action is one choice",
    "is_continuous": "the action is a box of numbers",
    "action_values": "number of discrete actions",
    "action_size": "numbers in an action",
    "action_bound": "largest bound of a continuous action",
    "is_vector": "the observation is a vector",
    "is_image": "the observation is an image",
    "is_dict": "the observation has named parts",
    "has_image_part": "a part of the observation is an image",
    "is_goal_based": "the observation has an achieved and a desired goal",
    "observation_size": "numbers in an observation",
    "observation_range": "largest size of a number in played observations",
    "has_masks": "the environment offers action masks",
    "horizon": "steps of the longest episode",
    "step_microseconds": "measured time of one step",
    "is_deterministic": "seeds make no difference",
    "reward_density": "share of steps with another reward than the usual one",
    "reward_size": "mean size of a paid step",
    "largest_term_share": "share of the largest reward term",
    "reward_terms": "number of reward terms",
}
FROM_CONFIG = {
    **{f"algo_{name}": f"the algorithm is {name}" for name in
       ("ppo", "a2c", "trpo", "dqn", "sac", "td3", "ddpg", "tqc", "qrdqn", "ars", "recurrent_ppo", "maskable_ppo")},
    "is_on_policy": "the algorithm learns from fresh data only",
    "is_off_policy": "the algorithm reuses a replay buffer",
    "gamma": "discount",
    "gae_lambda": "λ of the advantage estimate",
    "horizon_in_discounts": "episode length × (1 − γ)",
    "num_envs": "parallel environments",
    "rollout_steps": "steps per environment and rollout",
    "rollout_size": "steps per rollout of all environments",
    "batch_size": "samples per minibatch",
    "batch_remainder": "samples of a rollout that do not fill a minibatch",
    "update_epochs": "passes over a rollout",
    "learning_rate": "learning rate at the start",
    "entropy_coef": "weight of the entropy bonus",
    "clip_range": "PPO's clip",
    "max_grad_norm": "gradient clip",
    "normalize_advantage": "advantages are normalised",
    "buffer_size": "transitions in the replay buffer",
    "learning_starts": "steps before the first update",
    "update_ratio": "gradient steps per environment step",
    "tau": "rate of the target network",
    "total_timesteps": "steps of the run",
    "normalize_obs": "observations are normalised",
    "normalize_reward": "rewards are normalised",
    "hidden_size": "width of the widest layer",
    "policy_cnn": "the network is a CNN",
    "policy_multi": "the network encodes a dict",
    "frames": "stacked frames",
    "has_action_repeat": "a wrapper repeats actions",
    "is_sde": "exploration depends on the state",
    "training_seeds": "training seeds",
    "eval_episodes": "episodes per evaluation",
    "is_eval_greedy": "the evaluation switches exploration off",
    "checkpoints_kept": "older checkpoints that are kept",
    "has_own_script": "your own program trains",
}  # fmt: skip
FROM_SPEC = {
    "privileged_inputs": "inputs that the deployed policy will not have",
    "is_for_robot": "the policy will run on hardware",
    "trains_on_robot": "training happens on hardware",
    "has_environment": "an environment can be stepped",
    "is_partially_observable": "one observation does not determine the state",
    "has_gpu_simulator": "the simulator runs on a GPU",
    "learner_on_gpu": "the learner runs on a GPU",
    "machines": "machines",
    "policy_lag": "updates by which actors lag",
    "has_importance_correction": "importance weights correct the lag",
    "agents": "number of agents",
    "is_cooperative": "agents share a reward",
    "is_competitive": "agents compete",
    "are_agents_alike": "agents have equal roles",
    "shares_parameters": "agents share a network",
    "is_ctde": "training is central, acting is local",
    "is_qmix": "values are mixed",
    "has_independent_baseline": "independent learners are the baseline",
    "has_turns": "the API is turn-based",
    "is_simultaneous": "agents act at the same time",
    "agents_end_apart": "agents can end at different times",
    "has_cross_play": "agents of different seeds play together",
    "manager_period": "steps between two decisions of the manager",
    "demonstrations": "expert episodes",
    "is_expert_queryable": "the expert answers queries",
    "is_dagger": "the expert labels the learner's states",
    "is_irl": "a reward is recovered from demonstrations",
    "discriminator_accuracy": "accuracy of the discriminator",
    "offline_episodes": "episodes of a fixed dataset",
    "behaviour_policies": "policies that made the dataset",
    "has_bc_baseline": "cloning is the baseline",
    "is_conservative": "unseen actions are valued low",
    "tunes_on_test": "settings are chosen in the test environment",
    "has_merged_ends": "the dataset does not separate terminated and truncated",
    "preference_pairs": "labelled pairs",
    "annotators": "people who label",
    "has_preference_hold_out": "pairs are held out",
    "refreshes_pairs": "pairs are drawn again from the new policy",
    "splits_by_episode": "pairs are split by episode",
    "randomised_factors": "randomised factors",
    "is_adr": "ranges grow with success",
    "curriculum_levels": "levels of the curriculum",
    "curriculum_by_success": "success advances the curriculum",
    "is_ued": "levels are generated",
    "is_regret": "levels are chosen by regret",
    "has_held_out_levels": "the evaluation uses other levels",
    "perturbed_conditions": "conditions of the robustness suite",
    "has_control_arm": "the suite has an unshifted arm",
    "adversary_budget": "largest size of an attack",
    "has_noise_control": "attacks are compared with noise of equal size",
    "worst_of_k": "episodes of which the worst is reported",
    "success_is_declared": "the environment reports success",
    "has_smoothness_term": "a reward term punishes changes of the action",
    "explains_inputs": "the inputs of the policy are to be explained",
    "is_recurrent": "the network has a hidden state",
    "critics": "number of critics",
    "has_batch_norm": "the network uses batch normalisation",
    "saves_optimizer": "checkpoints hold the optimiser's state",
    "trials": "trials of a search",
    "is_log_scale": "rates are searched on a log scale",
    "prune_after": "share of the budget before a trial may be pruned",
    "has_fresh_confirmation": "fresh seeds confirm the winner",
}
MEANINGS = {**FROM_ENV, **FROM_CONFIG, **FROM_SPEC}

WORDS = {
    "task_navigation": ("navigation", "navigate", "point goal", "pointgoal", "mapless"),
    "task_avoidance": ("avoid", "avoidance", "obstacle", "obstacles", "collision"),
    "task_social": ("social", "pedestrian", "pedestrians", "crowd"),
    "task_exploration": ("explore unknown", "exploration of", "mapping", "coverage"),
    "task_docking": ("dock", "docking", "charging station"),
    "task_local_planning": ("local planner", "local planning", "dwa", "teb"),
    "task_dexterous": ("dexterous", "in-hand", "hand", "fingers", "shadowhand", "allegro"),
    "task_grasp": ("grasp", "grasping", "lift", "pick", "place", "fetchpickandplace", "fetchpush", "fetchslide"),
    "task_insertion": ("insertion", "insert", "peg", "connector"),
    "task_assembly": ("assembly", "assemble", "screw", "nut", "gear"),
    "task_tactile": ("tactile", "touch", "contact sensor"),
    "task_bimanual": ("bimanual", "two arms", "dual-arm", "two-arm"),
    "task_deformable": ("deformable", "cloth", "rope", "cable", "fabric"),
    "task_humanoid": ("humanoid", "biped", "bipedal", "whole-body"),
    "task_quadruped": ("quadruped", "legged", "anymal", "unitree", "spot", "dog", "ant"),
    "task_tracking": ("command tracking", "velocity tracking", "velocity command", "track commands", "tracking"),
    "task_terrain": ("terrain", "stairs", "rough"),
    "task_sim_to_real": ("sim-to-real", "sim2real", "real robot", "deploy", "deployment", "hardware"),
    "explains_inputs": ("saliency", "attribution", "explain the inputs", "integrated gradients"),
    "has_batch_norm": ("batchnorm", "batch norm", "batch normalisation", "batch normalization"),
    "stack_isaaclab": ("isaaclab", "isaac lab", "isaac sim", "isaacgym"),
    "stack_mjlab": ("mjlab",),
    "stack_rsl_rl": ("rsl_rl", "rsl-rl"),
    "stack_sb3": ("sb3", "stable-baselines3", "stable baselines"),
    "stack_cleanrl": ("cleanrl",),
    "stack_rllib": ("rllib", "ray rl"),
    "stack_skrl": ("skrl",),
    "stack_rl_games": ("rl_games", "rl-games"),
    "stack_holosoma": ("holosoma",),
    "stack_lerobot": ("lerobot",),
}
"""A task or a stack, and the words that name it."""


def from_words(text: str) -> Signals:
    """Return the tasks and stacks that a text names. One that it does not name is 0."""
    lowered = f" {text.lower()} "
    found: Signals = {}
    for name, words in WORDS.items():
        pattern = "|".join(re.escape(word) for word in words)
        found[name] = float(bool(re.search(rf"(?<![a-z0-9])(?:{pattern})(?![a-z])", lowered)))
    if found["task_sim_to_real"]:
        found["is_for_robot"] = 1.0
    return found


def from_findings(found: Iterable[str], silent: Iterable[str] = ()) -> Signals:
    """Return the signals of findings (1) and of rules that looked and found nothing (0)."""
    quiet = {f"finding_{rule}": 0.0 for rule in silent}
    return {**quiet, **{f"finding_{rule}": 1.0 for rule in found}}


def from_report(report: RuleReport) -> Signals:
    """Return the signals of a diagnosis."""
    return from_findings((finding.rule for finding in report.findings), report.silent)


def from_run(case: RunCase, report: RuleReport) -> Signals:
    """Return the signals of a run: its config, its seeds and its findings."""
    signals = from_config(case.config)
    signals |= from_words(str(case.setting("env.id") or ""))
    signals["training_seeds"] = float(len(case.seeds))
    signals["has_own_script"] = float(case.is_script or case.config.get("command") is not None)
    return {**signals, **from_report(report)}


ON_POLICY = ("ppo", "a2c", "trpo", "recurrent_ppo", "maskable_ppo")
OFF_POLICY = ("dqn", "qrdqn", "sac", "tqc", "td3", "ddpg")
CRITICS = {"ddpg": 1.0, "td3": 2.0, "sac": 2.0, "tqc": 2.0}
_ALGO_KEYS = (
    "gamma", "gae_lambda", "rollout_steps", "batch_size", "update_epochs", "entropy_coef", "clip_range",
    "max_grad_norm", "normalize_advantage", "buffer_size", "learning_starts", "tau", "total_timesteps",
)  # fmt: skip


def from_config(config: Mapping[str, Any]) -> Signals:
    """Return the signals of a config as a mapping (a snapshot). Keys that it does not have give no signal."""
    algo = _section(config, "algo")
    env = _section(config, "env")
    policy = _section(config, "policy")
    evaluation = _section(config, "eval")
    name = str(algo.get("name", ""))
    signals: Signals = {f"algo_{known}": float(name == known) for known in (*ON_POLICY, *OFF_POLICY, "ars")}
    signals["algo_dqn"] = float(name in ("dqn", "qrdqn"))
    signals["is_on_policy"] = float(name in ON_POLICY)
    signals["is_off_policy"] = float(name in OFF_POLICY)
    signals["is_recurrent"] = float(name == "recurrent_ppo")
    signals["is_sde"] = float(bool(algo.get("use_sde")))
    if name in CRITICS:
        signals["critics"] = CRITICS[name]
    for key in _ALGO_KEYS:
        _put(signals, key, algo.get(key))
    _put(signals, "learning_rate", algo.get("learning_rate"))
    _put(signals, "num_envs", env.get("num_envs"))
    normalize = _section(env, "normalize")
    _put(signals, "normalize_obs", normalize.get("obs", False))
    _put(signals, "normalize_reward", normalize.get("reward", False))
    _put(signals, "eval_episodes", evaluation.get("episodes"))
    _put(signals, "is_eval_greedy", evaluation.get("deterministic"))
    _put(signals, "checkpoints_kept", _section(config, "checkpoint").get("keep"))
    sizes = policy.get("hidden_sizes")
    if isinstance(sizes, (list, tuple)) and sizes:
        signals["hidden_size"] = float(max(sizes))
    signals["policy_cnn"] = float(policy.get("type") == "cnn")
    signals["policy_multi"] = float(policy.get("type") == "multi")
    signals["learner_on_gpu"] = float(str(config.get("device", "")).startswith("cuda"))
    _put_wrappers(signals, env.get("wrappers"))
    _put_products(signals, algo)
    return signals


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    if isinstance(section, Mapping):
        return section
    return {}


def _put(signals: Signals, name: str, value: Any) -> None:
    """Keep a number or a flag; of a schedule, its first value."""
    if isinstance(value, Mapping):
        ends = value.get("linear") or value.get("cosine") or ()
        value = next(iter(ends), None)
    if isinstance(value, (bool, int, float)):
        signals[name] = float(value)


def _put_wrappers(signals: Signals, wrappers: Any) -> None:
    named: dict[str, Mapping[str, Any]] = {}
    for wrapper in wrappers or ():
        if isinstance(wrapper, str):
            named[wrapper] = {}
        elif isinstance(wrapper, Mapping) and "name" in wrapper:
            named[str(wrapper["name"])] = wrapper.get("kwargs") or {}
        elif isinstance(wrapper, Mapping):
            named |= {str(key): value or {} for key, value in wrapper.items()}
    signals["frames"] = 1.0
    if "frame_stack" in named:
        signals["frames"] = float(named["frame_stack"].get("size", 4))
    repeats = {"action_repeat", "max_skip", "atari"} & set(named)
    signals["has_action_repeat"] = float(bool(repeats))


def _put_products(signals: Signals, algo: Mapping[str, Any]) -> None:
    if {"num_envs", "rollout_steps"} <= set(signals):
        signals["rollout_size"] = signals["num_envs"] * signals["rollout_steps"]
        if signals.get("batch_size"):
            signals["batch_remainder"] = signals["rollout_size"] % signals["batch_size"]
    steps = algo.get("gradient_steps")
    every = algo.get("train_every")
    if isinstance(steps, int) and isinstance(every, int) and steps > 0 and every > 0:
        signals["update_ratio"] = steps / every
