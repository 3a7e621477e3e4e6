"""The healthy trainings: worlds, algorithms, tuned configs and sane variations of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Config = dict[str, Any]
Change = Any
"""A value, or a function of the value that is there."""
ROWS, EVALUATIONS = 32, 8
"""How often a run logs and evaluates itself."""


@dataclass(frozen=True)
class Task:
    """A world under an algorithm; `good` is a return that good policies reach."""

    world: str
    good: float
    config: Config
    variants: Mapping[str, Mapping[str, Change]]
    healthy_seeds: int = 5
    """Seeds of every variant: more for trainings that take two seconds."""

    @property
    def algorithm(self) -> str:
        return str(self.config["algo"]["name"])


def changed(config: Config, changes: Mapping[str, Change]) -> Config:
    """Return a config with some dotted keys changed; `env.wrappers` are added to those there."""
    new = deepcopy(config)
    for key, change in changes.items():
        *path, last = key.split(".")
        section = new
        for part in path:
            section = section.setdefault(part, {})
        if key == "env.wrappers":
            section[last] = [*section.get(last, []), *change]
        else:
            section[last] = change(section[last]) if callable(change) else change
    return new


def times(factor: float) -> Callable[[Any], Any]:
    """Return a function that multiplies a number and keeps integers integers."""
    return lambda value: type(value)(value * factor)


def _task(
    world: str, good: float, variants: Mapping[str, Mapping[str, Change]], /, *, seeds: int = 5, **config: Any
) -> Task:
    total = config["algo"]["total_timesteps"]
    cadence = {
        "log": {"every": total // ROWS},
        "eval": {"every": total // EVALUATIONS, "episodes": 10, "report_episodes": 20},
        "checkpoint": {"save_every": total, "keep": 0},
        "backend": "fast" if config["algo"]["name"] == "ppo" else "sb3",
    }
    return Task(world, good, {**config, **cadence}, variants, seeds)


def _ppo(total: int, *, rollout: int, batch: int, epochs: int, gamma: float, **more: Any) -> Config:
    return {
        "name": "ppo", "total_timesteps": total, "rollout_steps": rollout, "batch_size": batch,
        "update_epochs": epochs, "learning_rate": 1e-3, "gamma": gamma, "gae_lambda": 0.95, "entropy_coef": 0.0,
        "clip_range": 0.2, "max_grad_norm": 0.5, **more,
    }  # fmt: skip


ON_POLICY: dict[str, dict[str, Change]] = {
    "tuned": {},
    "slower": {"algo.learning_rate": times(0.6)},
    "faster": {"algo.learning_rate": times(1.5)},
    "annealed": {"algo.learning_rate": {"linear": [1.5e-3, 0.0]}},
    "explorative": {"algo.entropy_coef": 0.003},
    "small_net": {"policy.hidden_sizes": [32, 32]},
    "large_batch": {"algo.batch_size": times(2), "algo.update_epochs": lambda epochs: epochs + 4},
    "other_unit": {"env.wrappers": [{"scale_reward": {"scale": 20.0}}], "env.normalize.reward": True},
}
OFF_POLICY: dict[str, dict[str, Change]] = {
    "tuned": {},
    "slower": {"algo.learning_rate": times(0.7)},
    "faster": {"algo.learning_rate": times(1.3)},
    "small_net": {"policy.hidden_sizes": [48, 48]},
    "large_net": {"policy.hidden_sizes": [128, 128]},
    "large_batch": {"algo.batch_size": times(1.5)},
    "small_buffer": {"algo.buffer_size": times(0.4)},
    "late_start": {"algo.learning_starts": times(2)},
}
COSTLY = {name: OFF_POLICY[name] for name in ("tuned", "slower")}
"""For trainings that take twenty seconds."""
FEWER = ("tuned", "faster", "annealed", "other_unit")
CHEAP_SEEDS = 12
NORMALIZED = {"obs": True, "reward": True}
TOLD = {"env.wrappers": ["labelled.broken_worlds:Told"]}
CARTPOLE, ACROBOT, PENDULUM = {"id": "CartPole-v1"}, {"id": "Acrobot-v1"}, {"id": "Pendulum-v1"}
GRID = {"id": "labelled.grid:GoalGrid"}

TASKS: dict[str, Task] = {
    "cartpole_ppo": _task(
        "cartpole", 500.0, ON_POLICY, seeds=CHEAP_SEEDS,
        env={**CARTPOLE, "num_envs": 8},
        algo=_ppo(25_600, rollout=64, batch=128, epochs=10, gamma=0.98, gae_lambda=0.9),
    ),
    "acrobot_ppo": _task(
        "acrobot", -85.0, {name: ON_POLICY[name] for name in FEWER},
        env={**ACROBOT, "num_envs": 16, "normalize": NORMALIZED},
        algo=_ppo(61_440, rollout=128, batch=256, epochs=8, gamma=0.99),
    ),
    "pendulum_ppo": _task(
        "pendulum", -150.0, {**{name: ON_POLICY[name] for name in FEWER}, "told": TOLD},
        env={**PENDULUM, "num_envs": 8},
        algo=_ppo(61_440, rollout=128, batch=64, epochs=10, gamma=0.9),
    ),
    "grid_ppo": _task(
        "grid", 0.92, ON_POLICY, seeds=CHEAP_SEEDS,
        env={**GRID, "num_envs": 8},
        algo=_ppo(20_480, rollout=64, batch=128, epochs=8, gamma=0.95),
    ),
    "car_ppo": _task(
        "car", 93.0, ON_POLICY, seeds=CHEAP_SEEDS,
        env={"id": "MountainCarContinuous-v0", "num_envs": 16, "wrappers": [{"action_repeat": {"repeat": 8}}],
             "normalize": NORMALIZED},
        algo=_ppo(20_480, rollout=64, batch=256, epochs=8, gamma=0.99),
    ),
    "grid_dqn": _task(
        "grid", 0.92, {name: change for name, change in OFF_POLICY.items() if name not in ("large_net", "large_batch")},
        env={**GRID, "num_envs": 1},
        algo={"name": "dqn", "total_timesteps": 8_000, "learning_rate": 1e-3, "batch_size": 64, "gamma": 0.95,
              "buffer_size": 10_000, "learning_starts": 320, "train_every": 4, "gradient_steps": 1,
              "target_update_every": 200, "exploration_fraction": 0.4, "exploration_final": 0.05},
        policy={"hidden_sizes": [64, 64]},
    ),
    "pendulum_sac": _task(
        "pendulum", -150.0, COSTLY,
        env={**PENDULUM, "num_envs": 1},
        algo={"name": "sac", "total_timesteps": 5_000, "learning_rate": 1e-3, "batch_size": 128, "gamma": 0.98,
              "buffer_size": 20_000, "learning_starts": 200, "train_every": 1, "gradient_steps": 1, "tau": 0.01},
        policy={"hidden_sizes": [64, 64]},
    ),
}  # fmt: skip
