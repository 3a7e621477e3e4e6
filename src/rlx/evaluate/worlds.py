"""Playing a protocol's episodes all at once, where the environment steps its worlds as arrays.

Each episode is the first of one world. All worlds start from one seed, the first of the episodes': episode i is what
world i plays, the same for every policy; an episode's own seed only names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector.utils import iterate

from rlx.envs.worlds import AnyVector
from rlx.evaluate.episode import Episode, env_failure, success_of
from rlx.evaluate.policy import Policy
from rlx.evaluate.protocol import UNDECLARED_HORIZON, Protocol
from rlx.evaluate.trajectory import Trail, Trajectory


def play(
    worlds: AnyVector,
    policy: Policy,
    protocol: Protocol,
    seeds: range,
    tell: Callable[[int], None],
    trajectories: list[Trajectory] | None = None,
) -> list[Episode]:
    """Play one episode in every world and return them in order; `tell` hears how many have just ended.

    Where there is a list for them, the episodes' trajectories are put into it.
    """
    count = _Account(worlds.num_envs, getattr(worlds.unwrapped, "max_episode_steps", None) or UNDECLARED_HORIZON)
    policy.reset()
    try:
        observations, _ = worlds.reset(seed=seeds.start)
        trails = None if trajectories is None else [Trail(one) for one in _rows(worlds, observations)]
        while count.playing.any():
            actions = policy.predict(observations, deterministic=protocol.deterministic)
            observations, rewards, terminated, truncated, infos = worlds.step(actions)
            if trails is not None:
                ended = np.logical_or(terminated, truncated)
                _follow(trails, worlds, (actions, rewards, observations, infos), count.playing, ended)
            finished = count.add(rewards, terminated, truncated, infos)
            if finished.any():
                tell(int(finished.sum()))
                policy.reset(finished)
    except Exception as error:  # the environment is other people's code, as a plug-in is
        raise env_failure(error, protocol, f"step {count.length + 1} from seed {seeds.start}") from error
    episodes = [count.episode(index, seed) for index, seed in enumerate(seeds)]
    if trajectories is not None and trails is not None:
        trajectories += [trail.trajectory(episode) for trail, episode in zip(trails, episodes, strict=True)]
    return episodes


def _rows(worlds: AnyVector, observations: Any) -> Iterator[Any]:
    return iterate(worlds.observation_space, observations)


def _follow(trails: Sequence[Trail], worlds: AnyVector, step: tuple[Any, ...], playing: Any, ended: Any) -> None:
    """Write a step of every world that still plays into its trail; where it ended, with its own last observation."""
    actions, rewards, observations, infos = step
    last, told = infos.get("final_obs"), infos.get("final_info")
    shown, taken = list(_rows(worlds, observations)), list(iterate(worlds.action_space, actions))
    for index in np.flatnonzero(playing).tolist():
        seen = last[index] if ended[index] and last is not None else shown[index]
        info = _info(told if ended[index] and told is not None else infos, index)
        trails[index].add(taken[index], float(rewards[index]), seen, info)


def _info(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return one world's own info: `key` where its mask `_key` says that it is set."""
    found: dict[str, Any] = {}
    for key, values in infos.items():
        mask = infos.get(f"_{key}")
        if key.startswith("_") or key in ("final_obs", "final_info") or (mask is not None and not mask[index]):
            continue
        if isinstance(values, Mapping):
            found[key] = _info(values, index)
        elif np.ndim(values):
            found[key] = values[index]
    return found


class _Account:
    """The returns and ends of the first episode of every world."""

    def __init__(self, worlds: int, horizon: int) -> None:
        self.playing = np.ones(worlds, dtype=np.bool_)
        self.length = 0
        self._horizon = horizon
        self._totals = np.zeros(worlds)
        self._terms: dict[str, Any] = {}
        self._ends: dict[int, dict[str, Any]] = {}

    def add(self, rewards: Any, terminated: Any, truncated: Any, infos: Mapping[str, Any]) -> Any:
        """Count one step and return which episodes it ended."""
        self.length += 1
        self._totals += np.where(self.playing, rewards, 0.0)
        ended = np.logical_or(terminated, truncated)
        told = {**infos, **infos["final_info"]} if "final_info" in infos and ended.any() else infos
        for name, values in (told.get("reward_terms") or {}).items():
            if not name.startswith("_"):
                sums = self._terms.setdefault(name, np.zeros(len(self.playing)))
                sums += np.where(self.playing, values, 0.0)
        finished = self.playing & (ended | (self.length >= self._horizon))
        for index in np.flatnonzero(finished).tolist():
            self._ends[index] = {
                "length": self.length,
                "success": success_of(_of_world(told, index)),
                "is_cut": not ended[index],
                "terminated": bool(terminated[index]),
            }
        self.playing &= ~finished
        return finished

    def episode(self, index: int, seed: int) -> Episode:
        """Return what a world played."""
        terms = {name: float(sums[index]) for name, sums in self._terms.items()}
        return Episode(seed, float(self._totals[index]), terms=terms, **self._ends[index])


def _of_world(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return a world's own marks of success."""
    found = {}
    for key in ("is_success", "success"):
        mask = infos.get(f"_{key}")
        if key in infos and (mask is None or mask[index]):
            found[key] = infos[key][index]
    return found
