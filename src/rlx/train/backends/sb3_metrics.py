"""SB3's log records in rlx's vocabulary, collected without a logger that prints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from rlx.train import signals
from rlx.train.backends.sb3_signals import newest

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


class Values:
    """Takes the place of SB3's logger: keeps the last value of every record, writes nothing."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    @property
    def name_to_value(self) -> dict[str, float]:
        return self.values

    def record(self, key: str, value: Any, exclude: Any = None) -> None:
        """Keep a number; text, images and figures have no place in a metrics row."""
        if isinstance(value, (int, float, np.number)):
            self.values[key] = float(value)

    record_mean = record

    def dump(self, step: int = 0) -> None:
        """Write nothing: the session writes the row."""

    def log(self, *args: Any, **kwargs: Any) -> None:
        """Print nothing."""

    debug = info = warn = error = log

    def close(self) -> None:
        """Hold nothing."""


def canonical(values: dict[str, float]) -> dict[str, float]:
    """Return SB3's records under rlx's names; `time/*` is the session's."""
    row: dict[str, float] = {}
    for key, value in values.items():
        if key in NEGATED:
            row[NEGATED[key]] = -value
        elif not key.startswith("time/"):
            row[RENAMED.get(key, key)] = value
    return row


def rollout_row(algorithm: BaseAlgorithm, *, episodes: int) -> dict[str, float]:
    """Return the recent episodes' means and how many episodes have ended so far."""
    row = {"rollout/episodes": float(episodes)}
    recent = list(algorithm.ep_info_buffer or ())
    row |= signals.episodes(
        [episode["r"] for episode in recent],
        [episode["l"] for episode in recent],
        [episode["truncated"] for episode in recent if "truncated" in episode],  # absent in older checkpoints
    )
    successes = list(algorithm.ep_success_buffer or ())
    if successes:
        row["rollout/success_rate"] = math.fsum(successes) / len(successes)
    return row


def recent_return(algorithm: BaseAlgorithm) -> float | None:
    """Return the mean return of the recent episodes, for the live display."""
    recent = list(algorithm.ep_info_buffer or ())
    return math.fsum(episode["r"] for episode in recent) / len(recent) if recent else None


def q_row(algorithm: BaseAlgorithm) -> dict[str, float]:
    """Return the values that the critic gives the newest transitions; draws no random number."""
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
    buffer = algorithm.replay_buffer
    assert buffer is not None
    stored: Any = buffer.observations
    raw = {key: part[rows, 0] for key, part in stored.items()} if isinstance(stored, dict) else stored[rows, 0]
    normalised: Any = buffer._normalize_obs(raw, algorithm._vec_normalize_env)
    if isinstance(normalised, dict):
        observations: Any = {key: buffer.to_torch(part) for key, part in normalised.items()}
    else:
        observations = buffer.to_torch(normalised)
    policy: Any = algorithm.policy
    if hasattr(policy, "q_net"):
        return torch.amax(policy.q_net(observations), dim=1)
    if hasattr(policy, "quantile_net"):
        return torch.amax(policy.quantile_net(observations).mean(dim=1), dim=1)
    if hasattr(policy, "critic"):
        values = policy.critic(observations, buffer.to_torch(buffer.actions[rows, 0]))
        return torch.cat([value.reshape(-1) for value in values]) if isinstance(values, tuple) else values
    return None
