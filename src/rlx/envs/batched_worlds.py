"""Adapts environments that step many worlds as one batch, in torch or NumPy, to Gymnasium's vector interface.

The style: `reset() → {"obs": T[N, …]}` and `step(actions) → obs, reward, done, info`, with automatic resets. `done`
does not tell a time limit from an end. If the class has `max_steps`, an episode of that length without a success was
truncated; `info["truncated"]` decides if it is there. The last observation of an episode is `info["final_obs"]`. A
class without it shows the one before the last step, which is the nearest that is known.

Not covered: several agents per world (rewards of `[N, A]` are summed), and observations of several parts.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rlx.errors import ConfigError

OBS = "obs"
COUNTS = ("num_envs", "n_envs", "num_worlds", "batch_size")
"""The names of the constructor's argument for the number of worlds."""
LIMITS = ("max_steps", "max_episode_steps", "horizon")
SUCCESS = ("success", "is_success", "solved")


def is_batched_class(creator: object) -> bool:
    """Return whether a class steps many worlds in this style: it is not Gymnasium's, and takes their number."""
    if not isinstance(creator, type) or issubclass(creator, (gymnasium.Env, VectorEnv)):
        return False
    has_methods = callable(getattr(creator, "reset", None)) and callable(getattr(creator, "step", None))
    return has_methods and count_argument(creator) is not None


def count_argument(creator: type) -> str | None:
    """Return the name of the argument that sets the number of worlds."""
    try:
        parameters = inspect.signature(creator).parameters
    except (TypeError, ValueError):
        return None
    return next((name for name in COUNTS if name in parameters), None)


class BatchedWorlds(VectorEnv[Any, Any, Any]):
    """Worlds of a batched class as a Gymnasium vector with resets in the same step, in NumPy."""

    def __init__(self, worlds: Any, count: int, *, label: str) -> None:
        self.worlds = worlds
        self.num_envs = count
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, **(getattr(worlds, "metadata", None) or {})}
        self.render_mode = getattr(worlds, "render_mode", None)
        self.single_observation_space = _space(worlds, "observation_space", label)
        self.single_action_space = _space(worlds, "action_space", label)
        self.observation_space = batch_space(self.single_observation_space, count)
        self.action_space = batch_space(self.single_action_space, count)
        self.max_episode_steps = next((int(getattr(worlds, name)) for name in LIMITS if hasattr(worlds, name)), None)
        self.spec = None
        self._label = label
        self._takes_seed = "seed" in inspect.signature(worlds.reset).parameters
        self._torch = _torch_of(worlds)
        self._device: Any = None
        self._lengths = np.zeros(count, np.int64)
        self._last: Any = None

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        del options
        if seed is not None and not isinstance(seed, int):
            seed = int(seed[0])
        with self._computing():
            if seed is not None:
                self._seed(seed)
            answer = self.worlds.reset(seed=seed) if self._takes_seed else self.worlds.reset()
        self._lengths[:] = 0
        self._last = self._observations(answer[0] if isinstance(answer, tuple) else answer)
        return self._last, {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        with self._computing():
            answer = self.worlds.step(self._as_input(actions))
        if not isinstance(answer, tuple) or len(answer) not in (4, 5):
            raise ConfigError(f"{self._label}: step does not return (obs, reward, done, info)")
        observations = self._observations(answer[0])
        rewards = _array(answer[1], np.float64)
        if rewards.ndim > 1:
            rewards = rewards.reshape(self.num_envs, -1).sum(1)
        done = _array(answer[2], np.bool_).reshape(self.num_envs, -1).any(1)
        info = {key: _plain(value) for key, value in (answer[-1] or {}).items()}
        self._lengths += 1
        terminated, truncated = self._ends(done, info, answer)
        infos = self._infos(done, info)
        self._lengths[done] = 0
        self._last = observations
        return observations, rewards, terminated, truncated, infos

    def _ends(self, done: Any, info: dict[str, Any], answer: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return which worlds ended by themselves, and which were cut off by a limit."""
        if len(answer) == 5:
            truncated = _array(answer[3], np.bool_).reshape(self.num_envs)
            return done, truncated
        if "truncated" in info:
            truncated = np.asarray(info["truncated"], np.bool_).reshape(self.num_envs) & done
        else:
            truncated = np.zeros(self.num_envs, np.bool_)
            if self.max_episode_steps is not None:
                truncated = done & (self._lengths >= self.max_episode_steps) & ~self._success(info)
        return done & ~truncated, truncated

    def _success(self, info: dict[str, Any]) -> Any:
        for name in SUCCESS:
            value = info.get(name)
            if isinstance(value, np.ndarray) and value.shape[:1] == (self.num_envs,):
                return value.reshape(self.num_envs, -1).any(1)
        return np.zeros(self.num_envs, np.bool_)

    def _infos(self, done: Any, info: dict[str, Any]) -> dict[str, Any]:
        """Return Gymnasium's infos; rlx reads only success from them, never a return."""
        if not done.any():
            return {}
        final = info.get("final_obs")
        if final is None:
            final = self._last
        is_success = self._success(info)
        known = any(name in info for name in SUCCESS)
        ended = {"is_success": is_success, "_is_success": done} if known else {}
        return {"final_obs": final, "_final_obs": done, "final_info": ended, "_final_info": done}

    def _observations(self, value: Any) -> Any:
        if isinstance(value, dict):
            value = value.get(OBS)
        shape = (self.num_envs, *(self.single_observation_space.shape or ()))
        array = _plain(value)
        if not isinstance(array, np.ndarray) or array.shape != shape:
            got = getattr(array, "shape", type(array).__name__)
            raise ConfigError(f"{self._label}: observations have shape {got}, not {shape}", hint='return {"obs": …}')
        # Worlds often write into one buffer; the learner must keep what it has seen.
        return np.array(array, dtype=self.single_observation_space.dtype)

    def _as_input(self, actions: Any) -> Any:
        if self._torch is None:
            return np.asarray(actions)
        if self._device is None:
            self._device = _device_of(self.worlds, self._torch)
        return self._torch.as_tensor(np.ascontiguousarray(actions), device=self._device)

    def _computing(self) -> contextlib.AbstractContextManager[Any]:
        if self._torch is None:
            return contextlib.nullcontext()
        manager: contextlib.AbstractContextManager[Any] = self._torch.inference_mode()
        return manager

    def _seed(self, seed: int) -> None:
        """Seed worlds that cannot be seeded by `reset`: their own `seed` method, and the global generators."""
        own = getattr(self.worlds, "seed", None)
        if callable(own):
            own(seed)
        if not self._takes_seed:
            np.random.seed(seed % 2**32)  # the class draws from the global generator
            if self._torch is not None:
                self._torch.manual_seed(seed)

    def close_extras(self, **kwargs: Any) -> None:
        del kwargs
        close = getattr(self.worlds, "close", None)
        if callable(close):
            close()

    def render(self) -> Any:
        draw = getattr(self.worlds, "render", None)
        return draw() if callable(draw) else None


def _space(worlds: Any, name: str, label: str) -> gymnasium.Space[Any]:
    space = getattr(worlds, f"single_{name}", None) or getattr(worlds, name, None)
    if not isinstance(space, gymnasium.Space):
        raise ConfigError(f"{label} has no `{name}`", hint=f"set self.{name} to the gymnasium.Space of one world")
    return space


def _torch_of(worlds: Any) -> Any:
    """Return torch if the worlds compute in it; a NumPy class never imports torch."""
    import sys

    torch = sys.modules.get("torch")
    if torch is None:
        return None
    is_module = isinstance(worlds, torch.nn.Module)
    return torch if is_module or any(isinstance(value, torch.Tensor) for value in vars(worlds).values()) else None


def _device_of(worlds: Any, torch: Any) -> Any:
    declared = getattr(worlds, "device", None)
    if declared is not None:
        return declared
    tensors = [value for value in vars(worlds).values() if isinstance(value, torch.Tensor)]
    if isinstance(worlds, torch.nn.Module):
        tensors += list(worlds.buffers())
    return tensors[0].device if tensors else torch.device("cpu")


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _array(value: Any, dtype: Any) -> Any:
    return np.asarray(_plain(value), dtype)
