"""Copies a program's output to the seed's log, up to a size, and always keeps its end."""

from __future__ import annotations

import os
import threading
from typing import IO

from rlx.runs.failure_line import failure_line

MOST_BYTES = 16 * 2**20
TAIL_BYTES = 64 * 2**10
LONGEST_WAITING = 4 * 2**20
_PIECE = 65536


class Output:
    """Reads a program's output in a thread, so that the program never waits for rlx."""

    def __init__(self, stream: IO[bytes], *, log: int, keeps_lines: bool, most_bytes: int = MOST_BYTES) -> None:
        self._stream = stream
        self._log = log
        self._keeps_lines = keeps_lines
        self._most_bytes = most_bytes
        self._written = 0
        self._left_out = 0
        self._tail = b""
        self._waiting = b""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._pump, daemon=True, name="output")
        self._thread.start()

    def lines(self, *, is_last: bool = False) -> list[str]:
        """Return the complete lines that were printed since the last call; with `is_last`, also an incomplete one."""
        with self._lock:
            end = len(self._waiting) if is_last else self._waiting.rfind(b"\n") + 1
            taken = self._waiting[:end]
            self._waiting = self._waiting[end:]
        return taken.decode("utf-8", "replace").split("\n")

    def failure_line(self) -> str:
        """Return the line that explains why the program failed."""
        return failure_line(self._tail.decode("utf-8", "replace"))

    def close(self, *, wait_seconds: float) -> None:
        """Wait for the end of the output, and write the last part that was left out."""
        self._thread.join(wait_seconds)
        if self._left_out:
            kept = self._tail[-min(self._left_out, TAIL_BYTES) :]
            self._write(b"\n[rlx: %d bytes of output left out here]\n" % max(0, self._left_out - len(kept)) + kept)

    def _pump(self) -> None:
        with self._stream:
            while piece := os.read(self._stream.fileno(), _PIECE):
                room = max(0, self._most_bytes - self._written)
                self._write(piece[:room])
                self._written += len(piece[:room])
                self._left_out += len(piece[room:])
                self._tail = (self._tail + piece)[-TAIL_BYTES:]
                if self._keeps_lines:
                    with self._lock:
                        self._waiting = (self._waiting + piece)[-LONGEST_WAITING:]

    def _write(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            try:
                view = view[os.write(self._log, view) :]
            except OSError:  # the disk is full: go on without the output
                return
