"""The environments as the fast trainer steps them: features in place, rewards on their scale, episodes accounted."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.config.schema import Experiment
from rlx.envs.ending import last_observation, was_success
from rlx.envs.spaces import normalised_keys
from rlx.envs.terms import TermSums
from rlx.envs.vector import SyncVector, env_seeds, make_vector
from rlx.envs.worlds import resets_late
from rlx.train import health, signals
from rlx.train.backends.fast_features import Features
from rlx.train.backends.fast_normalizer import Normalizer
from rlx.train.signals import EnvClock

Array = NDArray[Any]
EPISODES_KEPT = 100


class Stage:
    """One seed's vector environment, its normaliser and the accounts of its episodes."""

    def __init__(self, experiment: Experiment, *, root: Path, clock: EnvClock | None = None) -> None:
        self.env = make_vector(experiment.env, root=root, takes_late=True)
        self.is_late = resets_late(self.env)
        if isinstance(self.env, SyncVector):
            self.env.keeps_infos = False
        self.num_envs = self.env.num_envs
        self.observation_space = self.env.single_observation_space
        self.action_space = self.env.single_action_space
        self.features = Features(self.observation_space)
        self.normalizer = normalizer_for(experiment, self.observation_space, num_envs=self.num_envs)
        self.is_masked = experiment.algo.name == "maskable_ppo"
        self.steps = self.episodes = 0
        self.recent: deque[tuple[float, int]] = deque(maxlen=EPISODES_KEPT)
        self.truncations: deque[float] = deque(maxlen=EPISODES_KEPT)
        self.successes: deque[float] = deque(maxlen=EPISODES_KEPT)
        self.terms = TermSums()
        self.clock = clock or EnvClock()
        self.rewards: Array = np.zeros(self.num_envs)  # of the last step, as the environment gave them
        self.returns: NDArray[np.float64] = np.zeros(self.num_envs)
        self.lengths: NDArray[np.int64] = np.zeros(self.num_envs, dtype=np.int64)
        self.idle: NDArray[np.bool_] = np.zeros(self.num_envs, dtype=np.bool_)  # those a late reset is due for

    def reset(self, seeds: list[int], out: Array) -> None:
        """Start all environments from these seeds and write what they show."""
        observations, _ = self.env.reset(seed=seeds)  # type: ignore[arg-type]
        self.returns[:] = 0
        self.lengths[:] = 0
        self.idle[:] = False
        health.check_observations(observations, step=self.steps)
        if self.normalizer:
            self.normalizer.returns[:] = 0
        self._show(observations, out)

    def step(self, actions: Array, out: Array) -> tuple[Array, Array, list[tuple[int, Array]]]:
        """Act; write what is seen next; return rewards, where an episode ended, and what the cut ones saw last."""
        started = time.perf_counter()
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self.clock.seconds += time.perf_counter() - started
        if self.is_late:
            rewards, terminated, truncated = (np.where(self.idle, 0, each) for each in (rewards, terminated, truncated))
        self.steps += self.num_envs - int(np.count_nonzero(self.idle))
        if not math.isfinite(np.add.reduce(rewards)):
            health.check_rewards(rewards, step=self.steps)
        self.rewards = rewards
        self.returns += rewards
        self.lengths += ~self.idle
        self._show(observations, out)
        ended = np.logical_or(terminated, truncated)
        if infos:
            self.terms.add(infos, ended, self.idle)
        if self.normalizer:
            rewards = self.normalizer.rewards(rewards.astype(np.float32), ended, self.idle)
        if self.is_late:
            self.idle = ended
        return rewards, ended, self._finish(ended, terminated, infos, out) if ended.any() else []

    def closed(self) -> Array:
        """Return the actions that are not allowed now, (environments, outputs)."""
        masks = self.env.call("action_masks")  # type: ignore[attr-defined]
        return np.logical_not(np.asarray(masks, dtype=np.bool_).reshape(self.num_envs, -1))

    def document(self) -> dict[str, Any]:
        """Return the accounts as a checkpoint keeps them."""
        return {
            "steps": self.steps,
            "episodes": self.episodes,
            "recent": [list(episode) for episode in self.recent],
            "truncations": list(self.truncations),
            "successes": list(self.successes),
            "terms": self.terms.document(),
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "idle": self.idle.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what `document` returned."""
        self.steps, self.episodes = state["steps"], state["episodes"]
        self.recent = deque([tuple(episode) for episode in state["recent"]], maxlen=EPISODES_KEPT)
        self.truncations = deque(state.get("truncations", ()), maxlen=EPISODES_KEPT)  # absent in older checkpoints
        self.successes = deque(state["successes"], maxlen=EPISODES_KEPT)
        if "terms" in state:
            self.terms.restore(state["terms"])
        self.returns[:] = state["returns"]
        self.lengths[:] = state["lengths"]
        self.idle = np.array(state["idle"])

    def metrics(self) -> dict[str, float]:
        """Return the recent episodes' means and how many episodes have ended so far."""
        row = {"rollout/episodes": float(self.episodes)}
        returns, lengths = [total for total, _ in self.recent], [length for _, length in self.recent]
        row |= signals.episodes(returns, lengths, self.truncations)
        if self.successes:
            row["rollout/success_rate"] = math.fsum(self.successes) / len(self.successes)
        return row

    def _show(self, observations: Any, out: Array) -> None:
        if self.normalizer:
            self.normalizer.observe(observations)
        self.features.write(observations, out, self.normalizer.scale if self.normalizer else None)
        if not math.isfinite(np.add.reduce(out, axis=None)):
            health.check_observations(observations, step=self.steps)

    def _finish(self, ended: Array, terminated: Array, infos: Mapping[str, Any], out: Array) -> list[tuple[int, Array]]:
        cut: list[tuple[int, Array]] = []
        for index in np.flatnonzero(ended).tolist():
            self.recent.append((float(self.returns[index]), int(self.lengths[index])))
            self.truncations.append(float(not terminated[index]))
            self.episodes += 1
            self.returns[index] = self.lengths[index] = 0
            success = was_success(infos, index)
            if success is not None:
                self.successes.append(success)
            if not terminated[index]:
                cut.append((index, out[index].copy() if self.is_late else self._last(infos, index, out)))
        return cut

    def _last(self, infos: Mapping[str, Any], index: int, like: Array) -> Array:
        row = np.empty((1, self.features.size), dtype=like.dtype)
        batch = _as_batch(last_observation(infos, index))
        self.features.write(batch, row, self.normalizer.scale if self.normalizer else None)
        last: Array = row[0]
        return last


def normalizer_for(experiment: Experiment, space: spaces.Space[Any], *, num_envs: int) -> Normalizer | None:
    """Return the normaliser a config asks for, if any."""
    settings = experiment.env.normalize
    if not (settings.obs or settings.reward):
        return None
    keys = normalised_keys(space) if settings.obs else []
    shapes: dict[str, Any] = {key: (space[key] if key else space).shape for key in keys}  # type: ignore[index]
    return Normalizer(
        shapes, num_envs=num_envs, has_reward=settings.reward, gamma=experiment.algo.gamma, clip=settings.clip
    )


def seeds_for(seed: int, num_envs: int, attempt: int) -> list[int]:
    """Return the environments' seeds; an attempt that must start them anew gets starts nobody had before."""
    return env_seeds(seed, num_envs * (attempt + 1))[-num_envs:]


def _as_batch(observation: Any) -> Any:
    if isinstance(observation, dict):
        return {key: _as_batch(part) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return tuple(_as_batch(part) for part in observation)
    return np.asarray(observation)[None]
