"""Environments that step many worlds as arrays (`VectorEnv` classes of one's own), and one such world by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

AnyVector = VectorEnv[Any, Any, Any]
AUTORESET = (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)
"""How a vector environment may begin the next episode within the step: by itself, or when told which to reset."""


def is_worlds(creator: object) -> bool:
    """Say whether a class makes many worlds at once."""
    return isinstance(creator, type) and issubclass(creator, VectorEnv)


def resets_late(env: AnyVector) -> bool:
    """Say whether the step after an episode's last one only resets it: its action and reward mean nothing."""
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
        first = seed if seed is None or isinstance(seed, int) else int(seed[0])
        observations, infos = self.env.reset(seed=first, options=options)
        self._to_tensor = _tensor_maker(observations)
        return as_arrays(observations), as_arrays(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        sent = self._to_tensor(actions) if self._to_tensor else actions
        observations, rewards, terminated, truncated, infos = as_arrays(self.env.step(sent))
        ended = np.logical_or(terminated, truncated)
        if self.resets_itself or not ended.any():
            return observations, rewards, terminated, truncated, infos
        final = deepcopy(observations), infos
        rewards, terminated, truncated = (np.array(each) for each in (rewards, terminated, truncated))
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
    """Return what makes tensors of arrays, where an environment speaks in tensors."""
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
        has_final = ends and "final_obs" in infos
        observation = infos["final_obs"][0] if has_final else self._only(observations)
        info = only_info(infos["final_info"]) if ends and "final_info" in infos else only_info(infos)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> Any:
        frames = self.worlds.render()
        return frames[0] if frames is not None and len(frames) else None

    def close(self) -> None:
        self.worlds.close()

    def _only(self, observations: Any) -> Any:
        return next(iter(iterate(self.worlds.observation_space, deepcopy(observations))))


def only_info(infos: dict[str, Any]) -> dict[str, Any]:
    """Return the first world's info: `key` where its mask `_key` says that it is set."""
    found: dict[str, Any] = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_obs", "final_info") or (mask is not None and not mask[0]):
            continue
        found[key] = only_info(values) if isinstance(values, dict) else values[0] if np.ndim(values) else values
    return found
