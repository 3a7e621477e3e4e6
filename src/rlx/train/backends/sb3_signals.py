"""What SB3's buffers and optimizers say about the data and the update, for a metrics row."""

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
from rlx.train import signals

Array = NDArray[Any]
LEAST_STEPS = 1000  # that are looked at in a replay buffer: rows of a short run may be a handful of steps apart


class GradientNorms:
    """The norms of the gradients of an update, before they were scaled down, by optimizer."""

    def __init__(self) -> None:
        self._norms: dict[int, list[torch.Tensor]] = {}
        self._clipped: list[torch.Tensor] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what the optimizers step with, and what gradients were scaled down from."""
        self._norms.clear()
        handle, clip = register_optimizer_step_pre_hook(self._before_step), torch.nn.utils.clip_grad_norm_

        def recorded_clip(*arguments: Any, **options: Any) -> torch.Tensor:
            self._clipped[:] = [clip(*arguments, **options)]
            return self._clipped[0]

        torch.nn.utils.clip_grad_norm_ = recorded_clip
        try:
            yield
        finally:
            torch.nn.utils.clip_grad_norm_ = clip
            handle.remove()

    def row(self) -> dict[str, float]:
        """Return the norm of the whole gradient, the mean of the recorded update's."""
        return signals.joint_norm([float(norm) for norm in norms] for norms in self._norms.values())

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        gradients = [each.grad for group in optimizer.param_groups for each in group["params"] if each.grad is not None]
        if sum(gradient.numel() for gradient in gradients) > 1:  # the entropy coefficient is no network
            norm = self._clipped.pop() if self._clipped else torch.stack(torch._foreach_norm(gradients)).norm()
            self._norms.setdefault(id(optimizer), []).append(norm.detach())


def rollout_row(algorithm: BaseAlgorithm, *, entropy: float | None) -> dict[str, float]:
    """Return the figures of an on-policy algorithm's last rollout; rewards are not among them, here they are scaled."""
    buffer = getattr(algorithm, "rollout_buffer", None)
    if not isinstance(buffer, RolloutBuffer):
        return {}
    row = signals.observations(*_split(buffer.observation_space, buffer.observations))
    row |= signals.critic(buffer.values, buffer.returns)
    row |= _actions(algorithm.action_space, buffer.actions, is_scaled=algorithm.policy.squash_output)
    sizes = choice_sizes(algorithm.action_space, with_bits=True)
    if entropy is None or not sizes:
        return row
    masks = getattr(buffer, "action_masks", None)
    closed = None if masks is None else masks.reshape(-1, sum(sizes)) == 0
    return row | signals.entropy_share(entropy, sizes, closed)


def replay_row(algorithm: BaseAlgorithm, *, steps: int) -> dict[str, float]:
    """Return the figures of the newest steps in a replay buffer, and how full it is."""
    buffer = getattr(algorithm, "replay_buffer", None)
    if not isinstance(buffer, ReplayBuffer):
        return {}
    rows = newest(buffer, math.ceil(max(steps, LEAST_STEPS) / buffer.n_envs))
    stored: Any = buffer.observations
    raw = {key: part[rows] for key, part in stored.items()} if isinstance(stored, dict) else stored[rows]
    return {
        "replay/size": float(buffer.size() * buffer.n_envs),
        "replay/capacity": float(buffer.buffer_size * buffer.n_envs),
        **signals.observations(
            *_split(buffer.observation_space, buffer._normalize_obs(raw, algorithm._vec_normalize_env))
        ),
        **signals.rewards(buffer.rewards[rows]),
        **_actions(algorithm.action_space, buffer.actions[rows], is_scaled=True),
    }


def newest(buffer: ReplayBuffer, count: int) -> Array:
    """Return where the newest rows of a buffer are."""
    return (buffer.pos - 1 - np.arange(min(count, buffer.size()))) % buffer.buffer_size


def _split(space: spaces.Space[Any], stored: Any) -> tuple[Array, Array]:
    """Return the numbers and the choices that observations consist of, one row a step; images are left out."""
    parts = [(space[key], stored[key]) for key in space.spaces] if isinstance(space, spaces.Dict) else [(space, stored)]
    numbers: list[Array] = []
    choices: list[Array] = []
    for part, array in parts:
        sizes = choice_sizes(part)
        if not is_image(part):
            rows = array.reshape(-1, len(sizes) or math.prod(part.shape or ()))
            (choices if sizes else numbers).append(rows)
    return _beside(numbers), _beside(choices or [each[:, :0] for each in numbers])


def _beside(parts: list[Array]) -> Array:
    return np.concatenate(parts, axis=1) if parts else np.empty((0, 0))


def _actions(space: spaces.Space[Any], stored: Array, *, is_scaled: bool) -> dict[str, float]:
    sizes = choice_sizes(space, with_bits=True)
    if sizes:
        return signals.choices(stored.reshape(-1, len(sizes)), sizes)
    assert isinstance(space, spaces.Box)
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    if is_scaled:
        low, high = -np.ones_like(low), np.ones_like(high)
    return signals.box_actions(stored.reshape(-1, len(low)), low, high)
