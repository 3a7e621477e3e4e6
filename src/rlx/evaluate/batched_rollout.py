"""Play all episodes of a protocol at once, in an environment that steps its worlds as arrays.

Each episode is the first of one world. All worlds start from one seed, the first of the protocol's. Episode i is the
one that world i plays, for every policy; the seed of an episode is only its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.vector.utils import iterate

from rlx.envs.native_vector import AnyVector
from rlx.evaluate.episode import Episode, success_of
from rlx.evaluate.foreign_code import ForeignCode, env_failure
from rlx.evaluate.policy import Policy
from rlx.evaluate.protocol import UNDECLARED_HORIZON, Protocol
from rlx.evaluate.trajectory import Trajectory, TrajectoryRecorder


class BatchedRollout:
    """The first episode of every world: sums of rewards, ends, and trajectories on request."""

    def __init__(self, worlds: AnyVector, protocol: Protocol, *, keeps_trajectories: bool) -> None:
        self._worlds = worlds
        self._protocol = protocol
        self._keeps_trajectories = keeps_trajectories
        self._recorders: list[TrajectoryRecorder] = []
        self._horizon = getattr(worlds.unwrapped, "max_episode_steps", None) or UNDECLARED_HORIZON
        self._length = 0
        self._playing = np.ones(worlds.num_envs, dtype=np.bool_)
        self._totals = np.zeros(worlds.num_envs)
        self._terms: dict[str, Any] = {}
        self._ends: dict[int, dict[str, Any]] = {}

    def play(
        self, policy: Policy, seeds: range, report: Callable[[int], None]
    ) -> tuple[list[Episode], list[Trajectory]]:
        """Return the episodes in order, and their trajectories. `report` gets how many episodes just ended."""

        def failure(error: Exception) -> Exception:
            return env_failure(error, self._protocol, f"step {self._length + 1} from seed {seeds.start}")

        policy.reset()
        with ForeignCode(failure):
            observations, _ = self._worlds.reset(seed=seeds.start)
            if self._keeps_trajectories:
                self._recorders = [TrajectoryRecorder(row) for row in self._rows(observations)]
            while self._playing.any():
                actions = policy.predict(observations, deterministic=self._protocol.deterministic)
                observations, rewards, terminated, truncated, infos = self._worlds.step(actions)
                ended = np.logical_or(terminated, truncated)
                if self._recorders:
                    self._record(actions, rewards, observations, infos, ended)
                finished = self._count(rewards, terminated, ended, infos)
                if finished.any():
                    report(int(finished.sum()))
                    policy.reset(finished)
        episodes = [self._episode(index, seed) for index, seed in enumerate(seeds)]
        return episodes, [recorder.trajectory(episodes[index]) for index, recorder in enumerate(self._recorders)]

    def _rows(self, observations: Any) -> list[Any]:
        return list(iterate(self._worlds.observation_space, observations))

    def _record(self, actions: Any, rewards: Any, observations: Any, infos: Mapping[str, Any], ended: Any) -> None:
        """Record a step of every world that still plays. A world that ended has been reset: take its final values."""
        observation_rows = self._rows(observations)
        action_rows = list(iterate(self._worlds.action_space, actions))
        for index in np.flatnonzero(self._playing).tolist():
            observation = observation_rows[index]
            info = infos
            if ended[index]:
                final = infos.get("final_obs")
                observation = observation if final is None else final[index]
                info = infos.get("final_info", infos)
            self._recorders[index].add(action_rows[index], float(rewards[index]), observation, _world_info(info, index))

    def _count(self, rewards: Any, terminated: Any, ended: Any, infos: Mapping[str, Any]) -> Any:
        """Count one step and return which episodes it ended."""
        self._length += 1
        self._totals += np.where(self._playing, rewards, 0.0)
        if "final_info" in infos and ended.any():
            infos = {**infos, **infos["final_info"]}
        for name, values in (infos.get("reward_terms") or {}).items():
            if not name.startswith("_"):
                sums = self._terms.setdefault(name, np.zeros(len(self._playing)))
                sums += np.where(self._playing, values, 0.0)
        finished = self._playing & (ended | (self._length >= self._horizon))
        for index in np.flatnonzero(finished).tolist():
            self._ends[index] = {
                "length": self._length,
                "success": success_of(_world_info(infos, index)),
                "is_cut": not ended[index],
                "terminated": bool(terminated[index]),
            }
        self._playing &= ~finished
        return finished

    def _episode(self, index: int, seed: int) -> Episode:
        terms = {name: float(sums[index]) for name, sums in self._terms.items()}
        return Episode(seed, float(self._totals[index]), terms=terms, **self._ends[index])


def _world_info(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the info of one world: each `key` for which the mask `_key`, if there is one, is set."""
    info: dict[str, Any] = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_obs", "final_info") or (mask is not None and not mask[index]):
            continue
        if isinstance(values, Mapping):
            info[key] = _world_info(values, index)
        elif np.ndim(values):
            info[key] = values[index]
    return info
