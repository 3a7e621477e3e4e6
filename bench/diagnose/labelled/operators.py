"""The fault operators: what each breaks, where it is planted, and which rules are right about it.

`right` lists the rules of `src/rlx/diagnose/rules` that are a correct first finding: those that name the fault, and
those that name a direct consequence (a run that learns too fast may first show a collapsed entropy). "It does not
learn" (`STUCK`) is right only if nothing in a run's files says more. A world that is merely slow lowers no return, so
it never counts; it shows which findings it gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labelled.tasks import Change, times

REWARDS, WORLDS = "labelled.broken_rewards", "labelled.broken_worlds"
STUCK = frozenset({"no_learning", "plateau", "getting_worse", "worse_than_random"})
"""What can be said of any run that does not learn."""
WILD = frozenset({"update_too_large", "learning_rate", "entropy_collapse", "value_explosion", "not_finite",
                  "instability", "collapse_after_peak"})  # fmt: skip
"""What updates that are too large look like."""


@dataclass(frozen=True)
class Operator:
    """One fault. `changes` are config changes; a wrapper that `shows` changes observations or actions, not the task."""

    says: str
    tasks: tuple[str, ...]
    right: frozenset[str]
    changes: Mapping[str, Change] = field(default_factory=dict)
    wrapper: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    special: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Arguments that differ in a task."""
    shows: bool = False
    patch: str = ""

    def wrappers(self, task: str) -> list[dict[str, Any]]:
        """Return the wrapper as a config names it."""
        return [{self.wrapper: {**self.arguments, **self.special.get(task, {})}}] if self.wrapper else []


CONFIG: dict[str, Operator] = {
    "rate_high": Operator(
        "learning rate × 100",
        ("cartpole_ppo", "acrobot_ppo", "pendulum_ppo", "grid_ppo", "pendulum_sac"),
        WILD | {"action_saturation"},
        {"algo.learning_rate": times(100.0)},
    ),
    "rate_low": Operator(
        "learning rate × 1e-4",
        ("cartpole_ppo", "grid_ppo", "car_ppo"),
        frozenset({"policy_frozen", "learning_rate"}),
        {"algo.learning_rate": times(1e-4)},
    ),
    "unclipped": Operator(
        "no clipping of ratio or gradient, twice the epochs and ten times the learning rate",
        ("cartpole_ppo", "grid_ppo"),
        WILD,
        {"algo.clip_range": 1e3, "algo.max_grad_norm": 1e9, "algo.update_epochs": times(2),
         "algo.learning_rate": times(10.0)},
    ),
    "entropy_high": Operator(
        "entropy coefficient 3",
        ("cartpole_ppo", "grid_ppo", "car_ppo"),
        frozenset({"exploration_never_annealed", "action_saturation"}),
        {"algo.entropy_coef": 3.0},
    ),
    "gamma_small": Operator(
        "discount 0.05", ("cartpole_ppo", "grid_dqn"),
        frozenset({"short_sighted", "critic_uninformative"}), {"algo.gamma": 0.05},
    ),
    "normalisation_off": Operator(
        "no normalisation where the world needs it", ("acrobot_ppo", "car_ppo"),
        frozenset({"observation_scale", "reward_scale", "critic_uninformative"}),
        {"env.normalize.obs": False, "env.normalize.reward": False},
    ),
    "batch_tiny": Operator(
        "an eighth of the minibatch at ten times the learning rate", ("cartpole_ppo",),
        WILD | {"critic_uninformative"},
        {"algo.batch_size": times(1 / 8), "algo.learning_rate": times(10.0)},
    ),
    "critic_untrained": Operator(
        "value coefficient 0", ("cartpole_ppo",),
        frozenset({"critic_uninformative", "reward_scale"}), {"algo.value_coef": 0.0},
    ),
    "gradient_cut": Operator(
        "gradients clipped to 1e-9", ("cartpole_ppo", "grid_ppo"),
        frozenset({"policy_frozen"}), {"algo.max_grad_norm": 1e-9},
    ),
    "net_tiny": Operator(
        "one hidden unit", ("cartpole_ppo",),
        STUCK | {"critic_uninformative"}, {"policy.hidden_sizes": [1]},
    ),
    "exploration_endless": Operator(
        "DQN acts at random for ever", ("grid_dqn",),
        frozenset({"exploration_never_annealed"}),
        {"algo.exploration_final": 1.0},
    ),
    "exploration_none": Operator(
        "DQN never tries anything", ("grid_dqn",),
        STUCK | {"exploration_missing", "one_sided_action", "instability"},
        {"algo.exploration_initial": 0.0, "algo.exploration_final": 0.0, "algo.learning_starts": 1},
    ),
    "replay_tiny": Operator(
        "a replay buffer of little more than a batch", ("grid_dqn",),
        frozenset({"replay_too_small"}),
        {"algo.buffer_size": 150},
    ),
    "target_never": Operator(
        "the target network is never updated", ("grid_dqn",),
        frozenset({"stale_target", "critic_uninformative"}), {"algo.target_update_every": 10_000_000},
    ),
    "learning_never": Operator(
        "learning starts when the run is all but over", ("grid_dqn", "pendulum_sac"),
        frozenset({"learning_starts_late"}),
        {"algo.learning_starts": times(23.9)},
    ),
    "temperature_huge": Operator(
        "SAC's entropy coefficient fixed at 50", ("pendulum_sac",),
        frozenset({"exploration_never_annealed"}),
        {"algo.entropy_coef": 50.0},
    ),
    "training_rare": Operator(
        "one update in 500 steps", ("grid_dqn",),
        STUCK | {"policy_frozen"}, {"algo.train_every": 500, "algo.gradient_steps": 1},
    ),
}  # fmt: skip
REWARD: dict[str, Operator] = {
    "reward_large": Operator(
        "rewards × 1000", ("cartpole_ppo", "pendulum_ppo"),
        frozenset({"reward_scale", "value_explosion", "critic_uninformative"}),
        wrapper="scale_reward", arguments={"scale": 1e3},
    ),
    "reward_flipped": Operator(
        "the reward's sign is wrong", ("cartpole_ppo", "pendulum_ppo", "grid_ppo"),
        STUCK | {"train_eval_gap", "greedy_gap", "reward_hacking", "collapse_after_peak"},
        wrapper="scale_reward", arguments={"scale": -1.0},
    ),
    "reward_delayed": Operator(
        "rewards are paid every 100 steps, all at once", ("cartpole_ppo", "pendulum_ppo"),
        STUCK | {"critic_uninformative"},
        wrapper=f"{REWARDS}:Delayed", arguments={"every": 100},
    ),
    "reward_noisy": Operator(
        "noise 100 times a step's reward", ("acrobot_ppo", "grid_ppo"),
        STUCK | {"critic_uninformative", "instability"},
        wrapper=f"{REWARDS}:Noisy", arguments={"std": 100.0},
        special={"grid_ppo": {"std": 10.0}},
    ),
    "reward_nan": Operator(
        "one reward in 3000 is not a number", ("cartpole_ppo", "grid_ppo"),
        frozenset({"not_finite"}), wrapper=f"{REWARDS}:NotANumber", arguments={"chance": 1 / 3000},
    ),
    "reward_gone": Operator(
        "the reward is clipped to nothing", ("cartpole_ppo", "grid_dqn"),
        frozenset({"no_signal"}),
        wrapper=f"{REWARDS}:Constant",
    ),
}  # fmt: skip
WORLD: dict[str, Operator] = {
    "obs_shuffled": Operator(
        "the observation's parts change places every episode", ("cartpole_ppo", "acrobot_ppo", "pendulum_ppo"),
        STUCK | {"critic_uninformative", "instability"}, wrapper=f"{WORLDS}:Shuffled", shows=True,
    ),
    "obs_constant": Operator(
        "half of the observation never changes", ("cartpole_ppo", "pendulum_ppo", "grid_ppo"),
        frozenset({"observation_constant"}),
        wrapper=f"{WORLDS}:Frozen", arguments={"parts": [0, 1]}, shows=True,
        special={"cartpole_ppo": {"parts": [2, 3]}, "grid_ppo": {"parts": [2, 3]}},
    ),
    "obs_large": Operator(
        "observations × 1000", ("cartpole_ppo",),
        frozenset({"observation_scale"}),
        wrapper=f"{WORLDS}:Scaled", arguments={"scale": 1e3}, shows=True,
    ),
    "obs_noisy": Operator(
        "noise of ten times the signal on what is seen", ("cartpole_ppo", "grid_ppo"),
        STUCK | {"critic_uninformative", "instability"},
        wrapper=f"{WORLDS}:Noisy", arguments={"std": 5.0}, shows=True,
    ),
    "action_dead": Operator(
        "one action does nothing of its own", ("cartpole_ppo",),
        STUCK | {"one_sided_action", "action_saturation", "critic_uninformative"},
        wrapper=f"{WORLDS}:DeadAction", shows=True,
    ),
    "action_ignored": Operator(
        "90 % of the actions are replaced by random ones", ("cartpole_ppo", "grid_ppo"),
        STUCK | {"one_sided_action", "critic_uninformative"},
        wrapper=f"{WORLDS}:Disobedient", arguments={"chance": 0.9}, shows=True,
    ),
    "end_called_cut": Operator(
        "true ends are reported as truncation", ("cartpole_ppo",),
        frozenset({"failure_as_truncation"}),
        wrapper=f"{WORLDS}:EndsCalledCuts",
    ),
    "end_random": Operator(
        "episodes end at any step, one in four", ("cartpole_ppo",),
        STUCK | {"critic_uninformative"},
        wrapper=f"{WORLDS}:EndsAtRandom", arguments={"chance": 0.25},
    ),
    "limit_short": Operator(
        "the time limit ends episodes before anything is reached", ("acrobot_ppo", "car_ppo", "grid_ppo"),
        STUCK | {"cut_short", "no_signal", "limit_as_termination", "critic_uninformative"},
        wrapper="time_limit", arguments={"max_steps": 8},
        special={"acrobot_ppo": {"max_steps": 30}, "car_ppo": {"max_steps": 5}, "grid_ppo": {"max_steps": 2}},
    ),
    "bribe": Operator(
        "a reward term can be farmed without doing the task", ("grid_ppo", "acrobot_ppo", "pendulum_ppo", "car_ppo"),
        frozenset({"reward_hacking", "term_domination"}),
        wrapper=f"{WORLDS}:Bribed", arguments={"pay": 0.1, "part": 0, "at": "edge"},
        special={"acrobot_ppo": {"pay": 1.0, "part": 4, "at": "speed"},
                 "pendulum_ppo": {"pay": 2.0, "part": 2, "at": "speed"},
                 "car_ppo": {"pay": 100.0, "part": 1, "at": "speed"}},
    ),
    "slow": Operator(
        "every step takes a millisecond more", ("cartpole_ppo",),
        frozenset({"env_bound", "throughput_collapse"}),
        wrapper=f"{WORLDS}:Slow", arguments={"seconds": 1e-3},
    ),
}  # fmt: skip
ALGORITHM: dict[str, Operator] = {
    "advantage_flipped": Operator(
        "PPO ascends where it should descend", ("cartpole_ppo", "pendulum_ppo", "grid_ppo"),
        STUCK | {"entropy_collapse", "collapse_after_peak", "update_too_large"}, patch="advantage_flipped",
    ),
    "actor_frozen": Operator(
        "PPO's policy gets no gradient", ("cartpole_ppo", "car_ppo"),
        frozenset({"policy_frozen"}), patch="advantage_erased",
    ),
    "advantage_misaligned": Operator(
        "advantages belong to other samples", ("cartpole_ppo", "grid_ppo"),
        STUCK | {"critic_uninformative", "instability"}, patch="advantage_misaligned",
    ),
    "ends_ignored": Operator(
        "PPO's advantages run on into the next episode", ("cartpole_ppo", "grid_ppo"),
        STUCK | {"critic_uninformative", "value_explosion", "instability"},
        patch="ends_ignored",
    ),
    "ends_lost": Operator(
        "DQN's replay buffer forgets ends", ("grid_dqn",),
        STUCK | {"critic_uninformative", "value_explosion", "instability"},
        patch="ends_lost",
    ),
}  # fmt: skip
OPERATORS: dict[str, Operator] = {**CONFIG, **REWARD, **WORLD, **ALGORITHM}
