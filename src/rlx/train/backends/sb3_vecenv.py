"""A Gymnasium vector environment with same-step resets, as the VecEnv that SB3 expects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from rlx.envs.ending import last_observation, was_success
from rlx.envs.terms import TermSums
from rlx.train import health
from rlx.train.signals import EnvClock

Indices = int | Iterable[int] | None


class SameStepVecEnv(VecEnv):
    """Hands SB3 terminal observations, truncations and finished episodes; counts its own steps and returns."""

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], *, seeds: Sequence[int], keep_infos: bool = False
    ) -> None:
        self.env = env
        self.steps = 0  # of all environments together
        self.episodes = 0
        self.returns: NDArray[np.float64] = np.zeros(env.num_envs)
        self.lengths: NDArray[np.int64] = np.zeros(env.num_envs, dtype=np.int64)
        self.rewards: list[NDArray[np.float32]] = []  # of this rollout, as the environment gave them
        self.terms = TermSums()
        self.clock = EnvClock()
        self._next_seeds: list[int] | None = list(seeds)
        self._keep_infos = keep_infos
        self._actions: Any = None
        self._dtype = env.single_action_space.dtype
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Keep the seeds that were given: SB3 would hand out s, s+1, …, which neighbouring training seeds share."""
        return self._next_seeds or [None] * self.num_envs

    def reseed(self, seeds: Sequence[int] | None) -> None:
        """Use these seeds at the next reset; None lets the environments' generators run on."""
        self._next_seeds = None if seeds is None else list(seeds)

    def reset(self) -> Any:
        observations, _ = self.env.reset(seed=self._next_seeds)  # type: ignore[arg-type]
        self._next_seeds = None
        self.returns[:] = 0
        self.lengths[:] = 0
        health.check_observations(observations, step=self.steps)
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions.astype(self._dtype, copy=False)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        started = time.perf_counter()
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        self.clock.seconds += time.perf_counter() - started
        self.steps += self.num_envs
        health.check_rewards(rewards, step=self.steps)
        health.check_observations(observations, step=self.steps)
        self.returns += rewards
        self.lengths += 1
        finished = terminated | truncated
        if infos:
            self.terms.add(infos, finished)
        given = rewards.astype(np.float32)
        self.rewards.append(given)
        rows = self._rows(infos)
        if finished.any():
            for index in np.flatnonzero(finished):
                self._finish(int(index), infos, rows[index], is_cut=bool(truncated[index] and not terminated[index]))
        return observations, given, finished, rows

    def _finish(self, index: int, infos: dict[str, Any], row: dict[str, Any], *, is_cut: bool) -> None:
        row["terminal_observation"] = last_observation(infos, index)
        row["TimeLimit.truncated"] = is_cut
        account = {"r": float(self.returns[index]), "l": int(self.lengths[index])}
        row["episode"] = {**account, "truncated": float(is_cut)}
        success = was_success(infos, index)
        if success is not None:
            row["is_success"] = success
        self.episodes += 1
        self.returns[index] = 0
        self.lengths[index] = 0

    def _rows(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        if not self._keep_infos:
            return [{} for _ in range(self.num_envs)]
        return [_single(infos, index) for index in range(self.num_envs)]

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        if attr_name == "render_mode":
            return [self.env.render_mode] * self.num_envs
        values = _method(self.env, "get_attr", attr_name)(attr_name)
        return [values[index] for index in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        if attr_name != "action_masks":
            return super().has_attr(attr_name)
        try:  # calling it works across processes, where the bound method itself cannot be sent
            self.env_method(attr_name)
        except AttributeError:
            return False
        return True

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        _method(self.env, "set_attr", attr_name)(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        results = _method(self.env, "call", method_name)(method_name, *method_args, **method_kwargs)
        return [results[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Indices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


class SpacesOnly(VecEnv):
    """Stands for environments where only their spaces are needed: to rebuild a policy."""

    def __init__(self, observation_space: Any, action_space: Any, *, num_envs: int = 1) -> None:
        super().__init__(num_envs, observation_space, action_space)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        return [None] * self.num_envs

    def reset(self) -> Any:
        raise NotImplementedError

    def step_async(self, actions: NDArray[Any]) -> None:
        raise NotImplementedError

    def step_wait(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        """Hold nothing."""

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Indices = None) -> list[bool]:
        return [False]


def _method(env: Any, name: str, wanted: str) -> Any:
    """Return how a vector environment reaches into its single ones; a native vector has none inside."""
    method = getattr(env, name, None)
    if method is None:
        raise AttributeError(f"{type(env).__name__} has no single environments with `{wanted}`")
    return method


def _single(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """Return one environment's info out of the vectorised ones (`key` and its mask `_key`)."""
    found: dict[str, Any] = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_obs", "final_info") or mask is None or not mask[index]:
            continue
        found[key] = _single(values, index) if isinstance(values, dict) else values[index]
    return found
