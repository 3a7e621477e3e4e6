"""Sends metrics to TensorBoard and W&B in a background thread; a failure there never ends a run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.errors import MissingExtra, RlxError

if TYPE_CHECKING:
    from rlx.config.schema import Log, Wandb

T = TypeVar("T")
Write = Callable[[int, Mapping[str, float]], None]
BACKLOG_ROWS = 10_000
CLOSE_SECONDS = 10.0


class Sinks:
    """Writes rows in one background thread; a sink that fails is dropped with one line in the log."""

    def __init__(self, log: Log, *, folder: Path, name: str) -> None:
        openers: list[Callable[[], tuple[Write, Callable[[], None]]]] = []
        if log.tensorboard:
            openers.append(lambda: _tensorboard(folder / "tensorboard"))
        if log.wandb:
            settings = log.wandb
            openers.append(lambda: _wandb(settings, folder=folder, name=name))
        self._rows: queue.Queue[tuple[int, Mapping[str, float]] | None] = queue.Queue(maxsize=BACKLOG_ROWS)
        self._thread = threading.Thread(target=self._work, args=(openers,), daemon=True, name="sinks")
        self._is_on = bool(openers)
        if self._is_on:
            self._thread.start()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Queue a row; a full backlog drops it (the run folder has it)."""
        if self._is_on and not self._rows.full():
            self._rows.put((step, values))

    def close(self) -> None:
        """Write the queued rows and close the sinks, within ten seconds."""
        if self._is_on:
            self._rows.put(None)
            self._thread.join(CLOSE_SECONDS)

    def _work(self, openers: list[Callable[[], tuple[Write, Callable[[], None]]]]) -> None:
        sinks = [sink for opener in openers if (sink := _attempt(opener))]
        while (row := self._rows.get()) is not None:
            for sink in list(sinks):
                write = sink[0]
                if _attempt(lambda: write(*row) or True) is None:  # noqa: B023
                    sinks.remove(sink)
        for _, close in sinks:
            _attempt(close)


def _attempt(action: Callable[[], T]) -> T | None:
    """Call a sink; if it fails, print one line to the seed's log and go on training."""
    try:
        return call_foreign(action)
    except (ForeignError, RlxError) as error:
        print(f"log sink dropped: {error}", flush=True)
        return None


def _tensorboard(folder: Path) -> tuple[Write, Callable[[], None]]:
    from rlx.runs.tensorboard_writer import EventWriter

    writer = EventWriter(folder)
    return writer.write, writer.close


def _wandb(settings: bool | Wandb, *, folder: Path, name: str) -> tuple[Write, Callable[[], None]]:
    try:
        import wandb
    except ImportError:
        raise MissingExtra("wandb", extra="wandb", why="log.wandb") from None
    options: dict[str, str | None] = {"project": "rlx"}
    if not isinstance(settings, bool):
        options = {"project": settings.project, "entity": settings.entity}
    run = wandb.init(dir=folder, name=name, **options)
    return lambda step, values: run.log(dict(values), step=step), run.finish
