"""A Gymnasium vector environment with same-step resets, as the VecEnv that SB3 expects."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rlx.envs.reward_terms import TermSums
from rlx.envs.vector import last_observation, was_success
from rlx.train import finite_checks
from rlx.train.rollout_metrics import EnvClock

Indices = int | Iterable[int] | None


class SameStepVecEnv(VecEnv):
    """Gives SB3 final observations, truncations and finished episodes; counts steps and returns itself."""

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], *, seeds: Sequence[int], keep_infos: bool = False
    ) -> None:
        self.env = env
        self.steps = 0  # of all environments together
        self.episodes = 0
        self.returns: NDArray[np.float64] = np.zeros(env.num_envs)
        self.lengths: NDArray[np.int64] = np.zeros(env.num_envs, dtype=np.int64)
        self.raw_rewards: list[NDArray[np.float32]] = []  # of this rollout, before normalisation
        self.terms = TermSums()
        self.clock = EnvClock()
        self._next_seeds: list[int] | None = list(seeds)
        self._keep_infos = keep_infos
        self._actions: Any = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def document(self) -> dict[str, Any]:
        """Return the counters and sums of unfinished episodes in the form that a checkpoint stores."""
        return {
            "steps": self.steps,
            "episodes": self.episodes,
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "terms": self.terms.document(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `document` returned."""
        self.steps = state["steps"]
        self.episodes = state["episodes"]
        self.returns[:] = state["returns"]
        self.lengths[:] = state["lengths"]
        if "terms" in state:  # absent in older checkpoints
            self.terms.restore(state["terms"])

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Keep the seeds from `__init__`: SB3 would use s, s+1, …, which neighbouring training seeds share."""
        return self._next_seeds or [None] * self.num_envs

    def reseed(self, seeds: Sequence[int] | None) -> None:
        """Use these seeds at the next reset; with None, the environments' generators continue."""
        self._next_seeds = None if seeds is None else list(seeds)

    def reset(self) -> Any:
        observations, _ = self.env.reset(seed=self._next_seeds)  # type: ignore[arg-type]
        self._next_seeds = None
        self.returns[:] = 0
        self.lengths[:] = 0
        finite_checks.check_observations(observations, step=self.steps)
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions.astype(self.action_space.dtype, copy=False)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        started = time.perf_counter()
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        self.clock.seconds += time.perf_counter() - started
        self.steps += self.num_envs
        finite_checks.check_rewards(rewards, step=self.steps)
        finite_checks.check_observations(observations, step=self.steps)
        self.returns += rewards
        self.lengths += 1
        dones = terminated | truncated
        if infos:
            self.terms.add(infos, dones)
        rewards = rewards.astype(np.float32)
        self.raw_rewards.append(rewards)
        rows: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self._keep_infos:
            rows = [_single(infos, index) for index in range(self.num_envs)]
        if dones.any():
            for index in np.flatnonzero(dones).tolist():
                self._finish(index, infos, rows[index], truncated=bool(truncated[index] and not terminated[index]))
        return observations, rewards, dones, rows

    def _finish(self, index: int, infos: dict[str, Any], row: dict[str, Any], *, truncated: bool) -> None:
        row["terminal_observation"] = last_observation(infos, index)
        row["TimeLimit.truncated"] = truncated
        row["episode"] = {
            "r": float(self.returns[index]),
            "l": int(self.lengths[index]),
            "truncated": float(truncated),
        }
        success = was_success(infos, index)
        if success is not None:
            row["is_success"] = success
        self.episodes += 1
        self.returns[index] = 0
        self.lengths[index] = 0

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        if attr_name == "render_mode":
            return [self.env.render_mode] * self.num_envs
        values = self._method("get_attr", attr_name)(attr_name)
        return [values[index] for index in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        if attr_name != "action_masks":
            return super().has_attr(attr_name)
        try:  # a call works across processes, but the bound method itself cannot be sent
            self.env_method(attr_name)
        except AttributeError:
            return False
        return True

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        self._method("set_attr", attr_name)(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        results = self._method("call", method_name)(method_name, *method_args, **method_kwargs)
        return [results[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Indices = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def _method(self, name: str, attribute: str) -> Any:
        """Return the method that reaches the single environments; a native vector has none."""
        method = getattr(self.env, name, None)
        if method is None:
            raise AttributeError(f"{type(self.env).__name__} has no single environments with `{attribute}`")
        return method


class SpacesOnly(DummyVecEnv):
    """Environments that have only spaces, which is enough to rebuild a policy."""

    def __init__(self, observation_space: Any, action_space: Any, *, num_envs: int = 1) -> None:
        super().__init__([lambda: _SpacesEnv(observation_space, action_space)] * num_envs)


class _SpacesEnv(gymnasium.Env[Any, Any]):
    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space = observation_space
        self.action_space = action_space


def _single(infos: dict[str, Any], index: int) -> dict[str, Any]:
    """Return one environment's info from the vectorised ones (`key` and its mask `_key`)."""
    single: dict[str, Any] = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_obs", "final_info") or mask is None or not mask[index]:
            continue
        single[key] = _single(values, index) if isinstance(values, dict) else values[index]
    return single
