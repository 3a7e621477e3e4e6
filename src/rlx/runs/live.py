"""A seed in training: the only writer of its metrics, events and heartbeat."""

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
from rlx.runs.run import HEARTBEAT, LEASE
from rlx.runs.status import COMPLETED, FAILED, HEARTBEAT_SECONDS, INTERRUPTED

TRACEBACK_LINES = 30
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class LiveSeed:
    """The files of a seed, opened by the process that trains it; a second process is refused."""

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
        self._touch_run()  # before and after: wherever this process dies, the index reads the run again
        self.event("started", process=process.current().document())
        self._touch_run()
        self._heartbeat = (folder / HEARTBEAT).open("w+b", buffering=0)
        self.beat()
        threading.Thread(target=self._keep_beating, daemon=True, name="heartbeat").start()

    def _claim(self) -> None:
        try:
            self._lease.enter_context(files.locked(self.folder / LEASE, wait=False))
        except BlockingIOError:
            run = self.folder.parent.name
            message = f"another process is training seed {self.number} of {run}"
            raise Refused(message, hint=f"rlx info {run}") from None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append one metrics row; it survives kill -9 once this returns."""
        self._metrics.write(step, values)

    def log_resume(self, step: int) -> None:
        """Record that training continues from `step`."""
        self._metrics.write_resume(step)

    def forget_rows(self) -> None:
        """Record that training begins again: rows of an attempt that never saved a checkpoint do not count."""
        if self._metrics.is_used:
            self._metrics.write_resume(-1)

    def event(self, kind: str, /, **fields: Any) -> None:
        """Append one event and sync it to disk."""
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
        """Record an error: a user's mistake as one line, anything else with the end of its traceback."""
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            error = store.write_error(error, self.folder)
        if isinstance(error, RlxError):
            reason = error.message
            detail: dict[str, Any] = {"hint": error.hint, "kind": type(error).__name__}
        else:
            lines = traceback.format_exception(error)
            reason = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
            detail = {"traceback": "".join(lines).splitlines()[-TRACEBACK_LINES:], "kind": type(error).__name__}
        if step is not None:
            detail["step"] = step
        self._end(FAILED, reason=reason, **detail)

    def _end(self, state: str, /, **fields: Any) -> None:
        self._heart.set()
        self.event(state, **fields)
        self._touch_run()

    def _touch_run(self) -> None:
        """Change the run folder's modification time: that is all the index checks."""
        with contextlib.suppress(OSError):
            os.utime(self.folder.parent)

    def close(self) -> None:
        """Stop the heartbeat and close the files."""
        self._heart.set()
        self._metrics.close()
        self._heartbeat.close()
        self._lease.close()

    def beat(self, **progress: Any) -> None:
        """Write a heartbeat, with the progress if it is known."""
        with contextlib.suppress(OSError, ValueError):  # a full disk must not end the run because of its heartbeat
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
