"""A seed while it is being trained: the one writer of its metrics, events and heartbeat."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import Refused, RlxError
from rlx.runs import process, store
from rlx.runs.metrics import MetricsWriter
from rlx.runs.provenance import provenance, save_diff
from rlx.runs.status import COMPLETED, FAILED, HEARTBEAT_SECONDS, INTERRUPTED

TRACEBACK_LINES = 30
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class LiveSeed:
    """Opened by the process that trains the seed; a second one is refused while the first lives."""

    def __init__(self, folder: Path, *, root: Path, origin: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.number = int(folder.name.removeprefix("seed_"))
        self.root = root
        self._lease = contextlib.ExitStack()
        self._claim()
        self._metrics = MetricsWriter(folder / "metrics.jsonl")
        self._stop_reason: str | None = None
        self._heart = threading.Event()
        row = {"schema": 1, "time": time.time(), **(origin or provenance(root))}
        files.append_line(folder / "attempts.jsonl", files.encode(row))
        save_diff(root, folder.parent / "logs")
        self._touch_run()  # before and after: wherever this process dies, the index looks again
        self.event("started", process=process.current().document())
        self._touch_run()
        self._heartbeat = (folder / "heartbeat").open("w+b", buffering=0)
        self.beat()
        threading.Thread(target=self._keep_beating, daemon=True, name="heartbeat").start()

    def _claim(self) -> None:
        try:
            self._lease.enter_context(files.locked(self.folder / "seed", wait=False))
        except BlockingIOError:
            raise Refused(f"seed {self.number} of {self.folder.parent.name} is being trained by another process",
                          hint=f"rlx info {self.folder.parent.name}") from None  # fmt: skip

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append one metrics row; it survives kill -9 once this returns."""
        self._metrics.write(step, values)

    def log_resume(self, step: int) -> None:
        """Say that training continues from `step`."""
        self._metrics.write_resume(step)

    def event(self, kind: str, /, **fields: Any) -> None:
        """Append one event, durably."""
        files.append_line(self.folder / "events.jsonl", files.encode({"event": kind, "time": time.time(), **fields}))

    @property
    def stop_requested(self) -> bool:
        return self._stop_reason is not None

    @property
    def stop_reason(self) -> str:
        return self._stop_reason or ""

    def request_stop(self, reason: str) -> None:
        """Ask the trainer to save and end at its next boundary; safe inside a signal handler."""
        self._stop_reason = reason

    def completed(self, step: int) -> None:
        self._end(COMPLETED, step=step)

    def interrupted(self, step: int) -> None:
        self._end(INTERRUPTED, step=step, reason=self.stop_reason)

    def failed(self, error: BaseException, *, step: int | None = None) -> None:
        """Record an error; a user's mistake as its line, anything else with the end of its traceback."""
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            error = store.write_error(error, self.folder)
        if isinstance(error, RlxError):
            reason = error.message
            detail: dict[str, Any] = {"hint": error.hint, "kind": type(error).__name__}
        else:
            lines = traceback.format_exception(error)
            reason = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
            detail = {"traceback": "".join(lines).splitlines()[-TRACEBACK_LINES:], "kind": type(error).__name__}
        self._end(FAILED, reason=reason, **({"step": step} if step is not None else {}), **detail)

    def _end(self, state: str, /, **fields: Any) -> None:
        self._heart.set()
        self.event(state, **fields)
        self._touch_run()

    def _touch_run(self) -> None:
        """Change the run folder's time, the one thing the index looks at."""
        with contextlib.suppress(OSError):
            os.utime(self.folder.parent)

    def close(self) -> None:
        """Stop the heartbeat and let go of the files."""
        self._heart.set()
        self._metrics.close()
        self._heartbeat.close()
        self._lease.close()

    def beat(self, **progress: Any) -> None:
        """Leave a sign of life, with the progress made where it is known."""
        with contextlib.suppress(OSError, ValueError):  # a full disk must not end the run through its heartbeat
            if progress:
                content = files.encode(progress)
                self._heartbeat.seek(0)
                self._heartbeat.write(content)
                self._heartbeat.truncate()
            else:
                os.utime(self._heartbeat.fileno())

    def _keep_beating(self) -> None:
        while not self._heart.wait(HEARTBEAT_SECONDS):
            self.beat()
