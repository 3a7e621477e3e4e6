"""Watches a rollout: reports progress, and ends a long rollout when training has to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PROGRESS_SECONDS = 0.5
WORTH = 50  # a rollout is marked if it lasts this many times as long as taking the mark: it costs at most 2 %


class RolloutWatch:
    """Decides at every step of a rollout whether it goes on.

    Weights do not change during a rollout. The state that was marked at its start, with the current weights, is
    therefore a complete checkpoint. A rollout that is too short to be worth a mark is simply finished.
    """

    def __init__(
        self, *, take_mark: Callable[[], Any], show_progress: Callable[[], None], is_stop_requested: Callable[[], bool]
    ) -> None:
        self.mark: Any = {}
        self._take_mark = take_mark
        self._show_progress = show_progress
        self._is_stop_requested = is_stop_requested
        self._is_marked = False
        self._mark_seconds = 0.0
        self._rollout_seconds = float("inf")
        self._next_progress = 0.0

    @contextmanager
    def rollout(self) -> Iterator[None]:
        """Mark the state at the start of a rollout, if that is worth it, and time the rollout."""
        started = time.perf_counter()
        self._is_marked = self._rollout_seconds >= WORTH * self._mark_seconds
        if self._is_marked:
            self.mark = self._take_mark()
            self._mark_seconds = time.perf_counter() - started
        started = time.perf_counter()
        yield
        self._rollout_seconds = time.perf_counter() - started

    def on_step(self) -> bool:
        """Return whether the rollout goes on."""
        now = time.monotonic()
        if now >= self._next_progress:
            self._next_progress = now + PROGRESS_SECONDS
            self._show_progress()
        return not self._is_stop_requested() or not self._is_marked
