"""Watching a rollout: progress is shown, and a long rollout ends when a stop is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

PROGRESS_SECONDS = 0.5
WORTH = 50  # a mark is taken where a rollout lasts this many times as long as taking it: 2 % at most


class Learner(Protocol):
    """What is watched."""

    @property
    def step(self) -> int:
        """Environment steps taken so far."""
        ...

    def mark(self) -> Any:
        """Return all that a rollout changes, as it is now."""
        ...

    def recent_return(self) -> float | None:
        """Return the mean return of the recent episodes."""
        ...


class Audience(Protocol):
    """Who is told, and may ask for a stop: a session, or several."""

    @property
    def stop_requested(self) -> bool:
        """Whether training is to end."""
        ...

    def progress(self, step: int, episode_return: float | None = None) -> None:
        """Take note of a sign of life."""
        ...


class Watch:
    """Asked at every step of a rollout whether it goes on.

    Weights do not change during a rollout, so the state marked at its start is still a whole boundary. Where
    a rollout is too short to be worth a mark, it is simply finished.
    """

    def __init__(self, learner: Learner, session: Audience) -> None:
        self.mark: Any = {}
        self._learner = learner
        self._session = session
        self._is_marked = False
        self._mark_seconds = 0.0
        self._rollout_seconds = float("inf")
        self._next_progress = 0.0

    @contextmanager
    def rollout(self) -> Iterator[None]:
        """Mark the boundary a rollout starts from, if that is worth it, and time the rollout."""
        started = time.perf_counter()
        self._is_marked = self._rollout_seconds >= WORTH * self._mark_seconds
        if self._is_marked:
            self.mark = self._learner.mark()
            self._mark_seconds = time.perf_counter() - started
        started = time.perf_counter()
        yield
        self._rollout_seconds = time.perf_counter() - started

    def on_step(self) -> bool:
        """Say whether the rollout goes on."""
        now = time.monotonic()
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_SECONDS
            self._session.progress(self._learner.step, self._learner.recent_return())
        return not self._session.stop_requested or not self._is_marked
