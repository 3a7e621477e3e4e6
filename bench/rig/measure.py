"""Time commands next to each other: every round runs each of them once, and the best round counts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

Command = Sequence[str | Path]


def seconds(argv: Command, *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> float:
    """Return the wall time of one command; a failing command ends the benchmark with its output."""
    environment = {**os.environ, **(env or {})}
    start = time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, stdin=subprocess.DEVNULL)
    took = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{argv} ended with {done.returncode}:\n{done.stderr.decode(errors='replace')[-2000:]}")
    return took


def best(commands: Mapping[str, Command], *, rounds: int, cwd: Path | None = None) -> dict[str, float]:
    """Return each command's best wall time over interleaved rounds."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            times[name].append(seconds(argv, cwd=cwd))
    return {name: min(measured) for name, measured in times.items()}


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        first, *rest = (cell.ljust(width) if not index else cell.rjust(width)
                        for index, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        print("  " + "  ".join([first, *rest]).rstrip())


def verdict(ratio: float, limit: float | None) -> str:
    """Say whether a ratio keeps its promise."""
    return "" if limit is None else f"≤ {limit:g}: {'kept' if ratio <= limit else 'BROKEN'}"
