"""SB3's log records under rlx's metric names, collected without printing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from rlx.train import rollout_metrics
from rlx.train.backends.sb3.update_metrics import newest, stored_observations

RENAMED = {
    "train/policy_gradient_loss": "train/policy_loss",
    "train/kl_divergence_loss": "train/approx_kl",
    "train/is_line_search_success": "train/line_search_success",
    "train/n_updates": "train/updates",
    "train/iterations": "train/updates",
    "rollout/exploration_rate": "train/exploration_rate",
}
NEGATED = {"train/entropy_loss": "train/entropy", "train/policy_objective": "train/policy_loss"}
SAMPLED_ROWS = 64


class SilentLogger:
    """Replaces SB3's logger: keeps the last value of every record and writes nothing."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    @property
    def name_to_value(self) -> dict[str, float]:
        return self.values

    def record(self, key: str, value: Any, exclude: Any = None) -> None:
        """Keep a number; text, images and figures do not belong in a metrics row."""
        if isinstance(value, (int, float, np.number)):
            self.values[key] = float(value)

    record_mean = record

    def log(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the session writes the row."""

    debug = info = warn = error = dump = close = log


def canonical(values: dict[str, float]) -> dict[str, float]:
    """Return SB3's records under rlx's names, without `time/*`, which the session measures."""
    row: dict[str, float] = {}
    for key, value in values.items():
        if key in NEGATED:
            row[NEGATED[key]] = -value
        elif not key.startswith("time/"):
            row[RENAMED.get(key, key)] = value
    return row


def rollout_row(algorithm: BaseAlgorithm, *, episodes: int) -> dict[str, float]:
    """Return the means of the recent episodes and the number of all episodes."""
    row = {"rollout/episodes": float(episodes)}
    recent = list(algorithm.ep_info_buffer or ())
    row |= rollout_metrics.episodes(
        [episode["r"] for episode in recent],
        [episode["l"] for episode in recent],
        [episode["truncated"] for episode in recent if "truncated" in episode],  # absent in older checkpoints
    )
    successes = list(algorithm.ep_success_buffer or ())
    if successes:
        row["rollout/success_rate"] = math.fsum(successes) / len(successes)
    return row


def q_row(algorithm: BaseAlgorithm) -> dict[str, float]:
    """Return the critic's values of the newest transitions; draws no random number."""
    if not isinstance(algorithm, OffPolicyAlgorithm) or algorithm.replay_buffer is None:
        return {}
    rows = newest(algorithm.replay_buffer, SAMPLED_ROWS)
    if not len(rows):
        return {}
    algorithm.policy.set_training_mode(False)
    with torch.no_grad():
        values = _q_values(algorithm, rows)
    if values is None:
        return {}
    return {"train/q_mean": float(values.mean()), "train/value_abs": float(values.abs().mean())}


def _q_values(algorithm: OffPolicyAlgorithm, rows: Any) -> torch.Tensor | None:
    buffer: Any = algorithm.replay_buffer
    observations = stored_observations(algorithm, (rows, 0))
    if isinstance(observations, dict):
        observations = {key: buffer.to_torch(part) for key, part in observations.items()}
    else:
        observations = buffer.to_torch(observations)
    policy: Any = algorithm.policy
    if hasattr(policy, "q_net"):
        return torch.amax(policy.q_net(observations), dim=1)
    if hasattr(policy, "quantile_net"):
        return torch.amax(policy.quantile_net(observations).mean(dim=1), dim=1)
    if not hasattr(policy, "critic"):
        return None
    values = policy.critic(observations, buffer.to_torch(buffer.actions[rows, 0]))
    return torch.cat([value.reshape(-1) for value in values]) if isinstance(values, tuple) else values
