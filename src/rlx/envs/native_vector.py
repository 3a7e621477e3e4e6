"""Environments that step many worlds as arrays (a project's `VectorEnv` classes), and one such world alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from rlx.envs.batched_worlds import is_batched_class

AnyVector = VectorEnv[Any, Any, Any]
AUTORESET = (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
"""How a vector environment may begin the next episode within a step: by itself, or with a reset mask."""


def is_worlds(creator: object) -> bool:
    """Return whether a class makes many worlds at once."""
    return isinstance(creator, type) and (issubclass(creator, VectorEnv) or is_batched_class(creator))


def resets_late(env: AnyVector) -> bool:
    """Return whether the step after an episode's last one only resets it, so that its action and reward are void."""
    return env.metadata.get("autoreset_mode") == AutoresetMode.NEXT_STEP


class NativeVector(VectorWrapper[Any, Any, Any, Any, Any]):
    """An environment's own vector version, in NumPy whatever it computes in; resets in the same step, unless late."""

    def __init__(self, env: AnyVector) -> None:
        super().__init__(env)
        mode = env.metadata["autoreset_mode"]
        self.resets_itself = mode != AutoresetMode.DISABLED
        self.metadata = {**env.metadata, "autoreset_mode": mode if self.resets_itself else AutoresetMode.SAME_STEP}
        self._to_tensor: Callable[[Any], Any] | None = None

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None and not isinstance(seed, int):
            seed = int(seed[0])
        observations, infos = self.env.reset(seed=seed, options=options)
        self._to_tensor = _tensor_maker(observations)
        return as_arrays(observations), as_arrays(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if self._to_tensor:
            actions = self._to_tensor(actions)
        observations, rewards, terminated, truncated, infos = as_arrays(self.env.step(actions))
        ended = np.logical_or(terminated, truncated)
        if self.resets_itself or not ended.any():
            return observations, rewards, terminated, truncated, infos
        final = deepcopy(observations), infos
        rewards, terminated, truncated = (np.array(column) for column in (rewards, terminated, truncated))
        observations, fresh = as_arrays(self.env.reset(options={"reset_mask": self._mask(ended)}))
        return observations, rewards, terminated, truncated, self._with_final(infos, fresh, ended, final)

    def _mask(self, ended: Any) -> Any:
        return self._to_tensor(ended.copy()) if self._to_tensor else ended.copy()

    def _with_final(
        self, infos: dict[str, Any], fresh: dict[str, Any], ended: Any, final: tuple[Any, dict[str, Any]]
    ) -> dict[str, Any]:
        last = np.full(self.num_envs, None, dtype=object)
        for index, observation in enumerate(iterate(self.observation_space, final[0])):
            if ended[index]:
                last[index] = observation
        merged = {**infos, **{key: _overlay(infos.get(key), value, ended) for key, value in fresh.items()}}
        return {**merged, "final_obs": last, "_final_obs": ended, "final_info": final[1], "_final_info": ended}


def as_arrays(value: Any) -> Any:
    """Return tensors, also those inside dicts and tuples, as NumPy arrays; everything else as it is."""
    if type(value) is dict:
        return {key: as_arrays(item) for key, item in value.items()}
    if type(value) is tuple:
        return tuple(as_arrays(item) for item in value)
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _tensor_maker(observations: Any) -> Callable[[Any], Any] | None:
    """Return a function that turns arrays into tensors, if the environment uses tensors."""
    leaf = observations
    while isinstance(leaf, (dict, tuple)):
        leaf = next(iter(leaf.values())) if isinstance(leaf, dict) else leaf[0]
    if not hasattr(leaf, "detach"):
        return None
    import torch

    device = leaf.device
    return lambda actions: torch.as_tensor(actions, device=device)


def _overlay(before: Any, after: Any, ended: Any) -> Any:
    """Take a reset's info for the environments that were reset, the step's for the others."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray) and before.shape == after.shape:
        merged = before.copy()
        merged[ended] = after[ended]
        return merged
    return after


class OneWorld(gymnasium.Env[Any, Any]):
    """A single world of a vector environment, as the plain environment that evaluation and video know."""

    def __init__(self, worlds: AnyVector) -> None:
        self.worlds = NativeVector(worlds)
        self.metadata = worlds.metadata
        self.spec = worlds.spec
        self.render_mode = worlds.render_mode
        self.observation_space = worlds.single_observation_space
        self.action_space = worlds.single_action_space
        self.max_episode_steps = getattr(worlds, "max_episode_steps", None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observations, infos = self.worlds.reset(seed=seed, options=options)
        return self._only(observations), only_info(infos)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        batch = np.expand_dims(np.asarray(action), 0)
        observations, rewards, terminated, truncated, infos = self.worlds.step(batch)
        ends = bool(terminated[0]) or bool(truncated[0])
        observation = self._only(observations)
        if ends and "final_obs" in infos:
            observation = infos["final_obs"][0]
        if ends:
            infos = infos.get("final_info", infos)
        info = only_info(infos)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> Any:
        frames = self.worlds.render()
        if frames is None or not len(frames):
            return None
        return frames[0]

    def close(self) -> None:
        self.worlds.close()

    def _only(self, observations: Any) -> Any:
        return next(iter(iterate(self.worlds.observation_space, deepcopy(observations))))


def only_info(infos: dict[str, Any]) -> dict[str, Any]:
    """Return the first world's info: each `key` that its mask `_key` marks as set."""
    info: dict[str, Any] = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_obs", "final_info") or (mask is not None and not mask[0]):
            continue
        if isinstance(values, dict):
            info[key] = only_info(values)
        else:
            info[key] = values[0] if np.ndim(values) else values
    return info
