"""The rows of the index, read from run folders: one summary per run, and the columns by which lists filter and sort.

Very many folders are read with all cores: forked processes read a share each and send their rows through a pipe. Only a
process with one thread forks, and only on Linux. Any other process reads them itself, one after the other. If a forked
process dies, the caller reads its runs.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx import files

IndexRow = tuple[Any, ...]
Stamp = tuple[int, int]
"""Modification time and inode of a run's folder."""
LEAST = 1500
"""With fewer folders, a process more costs as much as it saves."""
PER_PROCESS = 750
MOST_PROCESSES = 8
BATCH = 200
Rows = list[Any]
ReadSome = Callable[[Sequence[int]], Rows]
Watch = Callable[[int, int], None]


def read_rows(runs: Path, folders: Mapping[str, Stamp], *, watch: Watch | None) -> Iterator[tuple[IndexRow, bool]]:
    """Yield the row of every folder, and whether the run is settled; very many are read with all cores."""
    names = list(folders)

    def read(numbers: Sequence[int]) -> list[Any]:
        return [[number, *_row(runs / names[number], folders[names[number]])] for number in numbers]

    missing = set(range(len(names)))
    for number, row, is_settled in read_shares(len(names), read, watch=watch):
        missing.discard(number)
        yield tuple(row), is_settled
    for number in missing:  # a process that read some of them was killed
        yield _row(runs / names[number], folders[names[number]])


def _row(path: Path, stamp: Stamp) -> tuple[IndexRow, bool]:
    from rlx.runs.run import is_run_folder
    from rlx.runs.summary import BROKEN, UNREADABLE, broken, summarize

    summary = summarize(path)
    is_settled = bool(summary.pop("is_settled"))
    try:
        encoded = files.encode(summary).decode()
    except UNREADABLE as error:  # nested too deeply, or a number that is too large
        summary = broken(path, reason=str(error))
        is_settled = bool(summary.pop("is_settled"))
        encoded = files.encode(summary).decode()
    score = summary["return"] or {}
    is_run = summary["status"] != BROKEN or is_run_folder(path)
    row = (
        summary["name"], *stamp, is_run, summary["status"], summary["env"], summary["algo"],
        "\n" + "".join(f"{tag}\n" for tag in summary["tags"]), summary["created"], summary["seeds"], summary["steps"],
        _metric_order(summary["return"]), _sortable(score.get("mean")), _sortable(score.get("best")),
        summary["seconds"], encoded,
    )  # fmt: skip
    return row, is_settled


def _metric_order(score: Mapping[str, Any] | None) -> str:
    """Return a text that orders runs by what was measured: returns first, runs without a score last."""
    if not score:
        return "2"
    if score["metric"] == "return":
        return "0"
    return f"1 {score['metric']}"


def _sortable(value: float | None) -> float | None:
    """Return a number that SQL orders: none for NaN, and the largest finite number for infinity."""
    if value is None or value != value:
        return None
    return max(-sys.float_info.max, min(sys.float_info.max, value))


def read_shares(count: int, read: ReadSome, *, watch: Watch | None = None) -> Rows:
    """Return what `read` returns for the numbers below `count`, in any order; rows are JSON-able lists.

    `read` gets some of the numbers at once. `watch(done, total)` is called as the answers arrive.
    """
    processes = _processes(count)
    if processes < 2:
        return list(_read_here(range(count), read, watch, count))
    rows: Rows = []
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(_reader(range(share, count, processes), read)) for share in range(processes)]
        tails = dict.fromkeys(pipes, b"")
        while tails:
            ready, _, _ = select.select(list(tails), [], [])
            for pipe in ready:
                content = os.read(pipe, files.READ_BYTES)
                if not content:
                    del tails[pipe]
                    continue
                *lines, tails[pipe] = (tails[pipe] + content).split(b"\n")
                for line in lines:
                    rows += files.decode(line)
            if watch:
                watch(min(len(rows), count - 1), count)
    return rows


def _processes(count: int) -> int:
    if count < LEAST or sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return min(MOST_PROCESSES, len(os.sched_getaffinity(0)), count // PER_PROCESS)


def _read_here(numbers: range, read: ReadSome, watch: Watch | None, count: int) -> Iterator[Any]:
    was_collecting = gc.isenabled()
    gc.disable()  # thousands of small rows, and no cycles among them
    try:
        for first in range(0, len(numbers), BATCH):
            if watch:
                watch(first, count)
            yield from read(numbers[first : first + BATCH])
    finally:
        if was_collecting:
            gc.enable()


@contextlib.contextmanager
def _reader(numbers: range, read: ReadSome) -> Iterator[int]:
    """Fork a process that reads a share; yield the pipe with its rows, one JSON line per batch."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(source)
            gc.disable()
            for first in range(0, len(numbers), BATCH):
                _write(sink, files.encode(read(numbers[first : first + BATCH])) + b"\n")
            code = 0
        finally:  # never return into the parent's code
            os._exit(code)
    os.close(sink)
    try:
        yield source
    finally:
        os.close(source)  # a child that still writes gets an error and ends
        os.waitpid(child, 0)


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
