"""Steps one seed's environments: writes features in place, normalises rewards, and counts episodes."""

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
from rlx.envs.native_vector import resets_late
from rlx.envs.reward_terms import TermSums
from rlx.envs.spaces import normalised_keys
from rlx.envs.vector import SyncVector, env_seeds, last_observation, make_vector, was_success
from rlx.train import finite_checks, rollout_metrics
from rlx.train.backends.fast.features import Features
from rlx.train.backends.fast.normalizer import Normalizer
from rlx.train.rollout_metrics import EnvClock

Array = NDArray[Any]
EPISODES_KEPT = 100


class EpisodeStats:
    """The last episodes of one seed, and how many episodes ended so far."""

    def __init__(self) -> None:
        self.count = 0
        self.recent: deque[tuple[float, int]] = deque(maxlen=EPISODES_KEPT)  # return and length
        self.truncated: deque[float] = deque(maxlen=EPISODES_KEPT)
        self.successes: deque[float] = deque(maxlen=EPISODES_KEPT)

    def add(self, episode_return: float, length: int, *, truncated: bool, success: float | None) -> None:
        """Add an episode that has just ended."""
        self.count += 1
        self.recent.append((episode_return, length))
        self.truncated.append(float(truncated))
        if success is not None:
            self.successes.append(success)

    def metrics(self) -> dict[str, float]:
        """Return the means of the recent episodes and the number of all episodes."""
        row = {"rollout/episodes": float(self.count)}
        if self.recent:
            returns, lengths = zip(*self.recent, strict=True)
            row |= rollout_metrics.episodes(returns, lengths, self.truncated)
        if self.successes:
            row["rollout/success_rate"] = math.fsum(self.successes) / len(self.successes)
        return row

    def document(self) -> dict[str, Any]:
        """Return everything in the form that a checkpoint stores."""
        return {
            "episodes": self.count,
            "recent": [list(episode) for episode in self.recent],
            "truncations": list(self.truncated),
            "successes": list(self.successes),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `document` returned."""
        self.count = state["episodes"]
        self.recent.extend(tuple(episode) for episode in state["recent"])
        self.truncated.extend(state.get("truncations", ()))  # absent in older checkpoints
        self.successes.extend(state["successes"])


class EnvRunner:
    """One seed's vector environment, its normaliser and the statistics of its episodes."""

    def __init__(self, experiment: Experiment, *, root: Path, clock: EnvClock | None = None) -> None:
        self.env = make_vector(experiment.env, root=root, takes_late=True)
        if isinstance(self.env, SyncVector):
            self.env.keeps_infos = False
        self.num_envs = self.env.num_envs
        self.observation_space = self.env.single_observation_space
        self.action_space = self.env.single_action_space
        self.features = Features(self.observation_space)
        self.normalizer = normalizer_for(experiment, self.observation_space, num_envs=self.num_envs)
        self.scale = self.normalizer.scale if self.normalizer else None
        self.has_masks = experiment.algo.name == "maskable_ppo"
        self.steps = 0
        self.episodes = EpisodeStats()
        self.terms = TermSums()
        self.clock = clock or EnvClock()
        self.raw_rewards: Array = np.zeros(self.num_envs)  # of the last step, before normalisation
        self.returns: NDArray[np.float64] = np.zeros(self.num_envs)
        self.lengths: NDArray[np.int64] = np.zeros(self.num_envs, dtype=np.int64)
        self.idle: NDArray[np.bool_] = np.zeros(self.num_envs, dtype=np.bool_)
        """Environments whose next step only resets them; always False unless the vector resets late."""
        self._resets_late = resets_late(self.env)

    def reset(self, seeds: list[int], out: Array) -> None:
        """Reset all environments with these seeds and write their features."""
        observations, _ = self.env.reset(seed=seeds)  # type: ignore[arg-type]
        self.returns[:] = 0
        self.lengths[:] = 0
        self.idle[:] = False
        finite_checks.check_observations(observations, step=self.steps)
        if self.normalizer:
            self.normalizer.returns[:] = 0
        self._write_features(observations, out)

    def step(self, actions: Array, out: Array) -> tuple[Array, Array, list[tuple[int, Array]]]:
        """Step all environments, write the next features, and return rewards, dones and the truncated episodes.

        A truncated episode is the index of its environment with the features of its final observation.
        """
        started = time.perf_counter()
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self.clock.seconds += time.perf_counter() - started
        if self._resets_late:
            rewards, terminated, truncated = (
                np.where(self.idle, 0, column) for column in (rewards, terminated, truncated)
            )
        self.steps += self.num_envs - int(np.count_nonzero(self.idle))
        if not math.isfinite(np.add.reduce(rewards)):
            finite_checks.check_rewards(rewards, step=self.steps)
        self.raw_rewards = rewards
        self.returns += rewards
        self.lengths += ~self.idle
        self._write_features(observations, out)
        dones = np.logical_or(terminated, truncated)
        if infos:
            self.terms.add(infos, dones, self.idle)
        if self.normalizer:
            rewards = self.normalizer.rewards(rewards.astype(np.float32), dones, self.idle)
        if self._resets_late:
            self.idle = dones
        truncations: list[tuple[int, Array]] = []
        if dones.any():
            truncations = self._end_episodes(dones, terminated, infos, out)
        return rewards, dones, truncations

    def action_masks(self) -> Array:
        """Return the masks of the actions that are allowed now, (environments, outputs)."""
        masks = self.env.call("action_masks")  # type: ignore[attr-defined]
        return np.asarray(masks, dtype=np.bool_).reshape(self.num_envs, -1)

    def document(self) -> dict[str, Any]:
        """Return the counters and sums in the form that a checkpoint stores."""
        return {
            "steps": self.steps,
            **self.episodes.document(),
            "terms": self.terms.document(),
            "returns": self.returns.copy(),
            "lengths": self.lengths.copy(),
            "idle": self.idle.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `document` returned."""
        self.steps = state["steps"]
        self.episodes.restore(state)
        if "terms" in state:  # absent in older checkpoints
            self.terms.restore(state["terms"])
        self.returns[:] = state["returns"]
        self.lengths[:] = state["lengths"]
        self.idle = np.array(state["idle"])

    def _write_features(self, observations: Any, out: Array) -> None:
        if self.normalizer:
            self.normalizer.observe(observations)
        self.features.write(observations, out, self.scale)
        if not math.isfinite(np.add.reduce(out, axis=None)):
            finite_checks.check_observations(observations, step=self.steps)

    def _end_episodes(
        self, dones: Array, terminated: Array, infos: Mapping[str, Any], out: Array
    ) -> list[tuple[int, Array]]:
        truncations: list[tuple[int, Array]] = []
        for index in np.flatnonzero(dones).tolist():
            truncated = not terminated[index]
            self.episodes.add(
                float(self.returns[index]),
                int(self.lengths[index]),
                truncated=truncated,
                success=was_success(infos, index),
            )
            self.returns[index] = self.lengths[index] = 0
            if truncated:
                truncations.append((index, self._final_features(infos, index, out)))
        return truncations

    def _final_features(self, infos: Mapping[str, Any], index: int, out: Array) -> Array:
        features: Array = out[index].copy()
        if not self._resets_late:  # the environment already shows the next episode
            self.features.write(_as_batch(last_observation(infos, index)), features[None], self.scale)
        return features


def normalizer_for(experiment: Experiment, space: spaces.Space[Any], *, num_envs: int) -> Normalizer | None:
    """Return the normaliser that a config asks for, if any."""
    settings = experiment.env.normalize
    if not (settings.obs or settings.reward):
        return None
    keys = normalised_keys(space) if settings.obs else []
    shapes: dict[str, Any] = {key: (space[key] if key else space).shape for key in keys}  # type: ignore[index]
    return Normalizer(
        shapes, num_envs=num_envs, has_reward=settings.reward, gamma=experiment.algo.gamma, clip=settings.clip
    )


def seeds_for(seed: int, num_envs: int, attempt: int) -> list[int]:
    """Return the environments' reset seeds. An attempt that has to reset them gets seeds that no earlier one had."""
    return env_seeds(seed, num_envs * (attempt + 1))[-num_envs:]


def _as_batch(observation: Any) -> Any:
    if isinstance(observation, dict):
        return {key: _as_batch(part) for key, part in observation.items()}
    if isinstance(observation, tuple):
        return tuple(_as_batch(part) for part in observation)
    return np.asarray(observation)[None]
