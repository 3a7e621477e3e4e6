"""A wrapper for training scripts that records every episode: return, length, success and reward terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from rlx.envs.reward_terms import terms_of

SUCCESS_KEYS = ("is_success", "success")


@dataclass(frozen=True)
class RecordedEpisode:
    """One finished episode; `success` is None if the environment does not report it."""

    episode_return: float
    length: int
    success: bool | None
    terminated: bool
    truncated: bool
    terms: dict[str, float] = field(default_factory=dict)


class RecordEpisodes(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps every finished episode in `episodes`, and calls `on_episode` with it.

    Success is `info["is_success"]` or `info["success"]` of the last step; reward terms are summed over the episode from
    `info["reward_terms"]`, a mapping of names to numbers. Infos are passed on as they are. An episode that `reset`
    interrupts is not kept.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], on_episode: Callable[[RecordedEpisode], None] | None = None
    ) -> None:
        super().__init__(env)
        self.episodes: list[RecordedEpisode] = []
        self._on_episode = on_episode
        self._start()

    def _start(self) -> None:
        self._return = 0.0
        self._length = 0
        self._terms: dict[str, float] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._start()
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return += float(reward)
        self._length += 1
        for name, value in terms_of(info).items():
            self._terms[name] = self._terms.get(name, 0.0) + value
        if terminated or truncated:
            self._finish(info, terminated=bool(terminated), truncated=bool(truncated))
        return observation, reward, terminated, truncated, info

    def _finish(self, info: Mapping[str, Any], *, terminated: bool, truncated: bool) -> None:
        episode = RecordedEpisode(self._return, self._length, success(info), terminated, truncated, dict(self._terms))
        self.episodes.append(episode)
        self._start()
        if self._on_episode is not None:
            self._on_episode(episode)


def success(info: Mapping[str, Any]) -> bool | None:
    """Return whether an episode's last info reports a success; None if it reports neither."""
    for name in SUCCESS_KEYS:
        if info.get(name) is not None:
            return bool(info[name])
    return None
