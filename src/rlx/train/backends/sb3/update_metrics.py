"""Metrics about the data and the update, read from SB3's buffers and optimizers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from rlx.envs.spaces import choice_sizes, is_image
from rlx.train import rollout_metrics

Array = NDArray[Any]
LEAST_STEPS = 1000  # looked at in a replay buffer: the rows of a short run may be only a few steps apart


class GradientNorms:
    """The norms of an update's gradients before clipping, by optimizer."""

    def __init__(self) -> None:
        self._norms: dict[int, list[torch.Tensor]] = {}
        self._before_clipping: list[torch.Tensor] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the norms while the block runs, from optimizer steps and from calls of `clip_grad_norm_`."""
        self._norms.clear()
        handle = register_optimizer_step_pre_hook(self._before_step)
        clip = torch.nn.utils.clip_grad_norm_

        def recorded_clip(*arguments: Any, **options: Any) -> torch.Tensor:
            self._before_clipping[:] = [clip(*arguments, **options)]
            return self._before_clipping[0]

        torch.nn.utils.clip_grad_norm_ = recorded_clip
        try:
            yield
        finally:
            torch.nn.utils.clip_grad_norm_ = clip
            handle.remove()

    def row(self) -> dict[str, float]:
        """Return the norm of the whole gradient, averaged over the recorded update."""
        return rollout_metrics.joint_norm([float(norm) for norm in norms] for norms in self._norms.values())

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if sum(gradient.numel() for gradient in gradients) > 1:  # the entropy coefficient is not a network
            if self._before_clipping:
                norm = self._before_clipping.pop()
            else:
                norm = torch.stack(torch._foreach_norm(gradients)).norm()
            self._norms.setdefault(id(optimizer), []).append(norm.detach())


def rollout_row(algorithm: BaseAlgorithm, *, entropy: float | None) -> dict[str, float]:
    """Return the metrics of an on-policy algorithm's last rollout, without rewards, which are normalised here."""
    buffer = getattr(algorithm, "rollout_buffer", None)
    if not isinstance(buffer, RolloutBuffer):
        return {}
    row = rollout_metrics.observations(*_split(buffer.observation_space, buffer.observations))
    row |= rollout_metrics.critic(buffer.values, buffer.returns)
    row |= _action_row(algorithm.action_space, buffer.actions, is_scaled=algorithm.policy.squash_output)
    sizes = choice_sizes(algorithm.action_space, with_bits=True)
    if entropy is None or not sizes:
        return row
    masks = getattr(buffer, "action_masks", None)
    if masks is not None:
        masks = masks.reshape(-1, sum(sizes)) != 0
    return row | rollout_metrics.entropy_share(entropy, sizes, masks)


def replay_row(algorithm: BaseAlgorithm, *, steps: int) -> dict[str, float]:
    """Return the metrics of the newest steps in a replay buffer, and how full it is."""
    buffer = getattr(algorithm, "replay_buffer", None)
    if not isinstance(buffer, ReplayBuffer):
        return {}
    rows = newest(buffer, math.ceil(max(steps, LEAST_STEPS) / buffer.n_envs))
    return {
        "replay/size": float(buffer.size() * buffer.n_envs),
        "replay/capacity": float(buffer.buffer_size * buffer.n_envs),
        **rollout_metrics.observations(*_split(buffer.observation_space, stored_observations(algorithm, rows))),
        **rollout_metrics.rewards(buffer.rewards[rows]),
        **_action_row(algorithm.action_space, buffer.actions[rows], is_scaled=True),
    }


def newest(buffer: ReplayBuffer, count: int) -> Array:
    """Return the indices of the newest rows of a buffer."""
    return (buffer.pos - 1 - np.arange(min(count, buffer.size()))) % buffer.buffer_size


def stored_observations(algorithm: Any, rows: Any) -> Any:
    """Return some rows of the replay buffer's observations, normalised."""
    buffer = algorithm.replay_buffer
    observations = buffer.observations
    if isinstance(observations, dict):
        raw = {key: part[rows] for key, part in observations.items()}
    else:
        raw = observations[rows]
    return buffer._normalize_obs(raw, algorithm._vec_normalize_env)


def _split(space: spaces.Space[Any], stored: Any) -> tuple[Array, Array]:
    """Return the numbers and the choices of observations, one row per step; images are left out."""
    parts = [(space, stored)]
    if isinstance(space, spaces.Dict):
        parts = [(part, stored[key]) for key, part in space.spaces.items()]
    numbers: list[Array] = []
    choices: list[Array] = []
    for part, array in parts:
        sizes = choice_sizes(part)
        if sizes:
            choices.append(array.reshape(-1, len(sizes)))
        elif not is_image(part):
            numbers.append(array.reshape(-1, math.prod(part.shape or ())))
    rows = len((numbers or choices or [np.empty((0, 0))])[0])
    empty = np.empty((rows, 0))
    return np.concatenate(numbers or [empty], axis=1), np.concatenate(choices or [empty], axis=1)


def _action_row(space: spaces.Space[Any], stored: Array, *, is_scaled: bool) -> dict[str, float]:
    sizes = choice_sizes(space, with_bits=True)
    if sizes:
        return rollout_metrics.choices(stored.reshape(-1, len(sizes)), sizes)
    assert isinstance(space, spaces.Box)
    low = space.low.reshape(-1)
    high = space.high.reshape(-1)
    if is_scaled:  # SB3 stores actions scaled to [-1, 1]
        high = np.ones_like(high)
        low = -high
    return rollout_metrics.box_actions(stored.reshape(-1, len(low)), low, high)
