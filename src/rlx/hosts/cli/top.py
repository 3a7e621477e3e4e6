"""Show the runs of a project on a terminal, live: progress, return, curve and time left, and what this machine does.

Runs in training come first, then waiting ones, then the newest that ended. Keys: j and k (or the arrows) move, Enter
shows the seeds of a run, Esc goes back, q or Ctrl-C leaves. Runs are never changed. It needs 80 × 24 characters, so it
works over ssh. Without a terminal it prints the table once.

Example: rlx top
         rlx top --interval 5
         rlx top --once
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import NOTHING, duration, figure, size, spread, steps
from rlx.hosts.cli.output import harmless
from rlx.runs import index, project
from rlx.runs.metric_columns import ColumnCursors
from rlx.runs.run import Run
from rlx.runs.summary import UNREADABLE, position

if TYPE_CHECKING:
    from rlx.runs.index import LiveIndex

BLOCKS = "▁▂▃▄▅▆▇█"
CURVE = 12
WIDE = 100
"""The columns of a terminal that also shows the steps."""
METRIC = "rollout/return_mean"
SHORTEST = 0.5
MOST_RUNS = 100
KEYS = {"\x1b[A": "k", "\x1b[B": "j", "\r": "\n", "\x7f": "\x1b"}
ENTER_SCREEN = "\x1b[?1049h\x1b[?25l"
LEAVE_SCREEN = "\x1b[?25h\x1b[?1049l"


def arguments(parser: Parser) -> None:
    parser.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="read again (default: 2)")
    parser.add_argument("--once", action="store_true", help="print the table once and end")


def run(args: Args) -> Data | None:
    if not args.interval >= SHORTEST:
        raise UsageError(f"--interval {args.interval}: at least {SHORTEST} seconds", hint="rlx top --interval 2")
    root = project.root()
    view = TopView(root, index.LiveIndex(root))
    if args.once or args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return view.document()
    follow(view, args.interval)
    return None


def render(data: Data) -> str:
    return "\n".join(overview(data, width=shutil.get_terminal_size().columns, height=10**6)).rstrip()


@dataclass
class TopView:
    """What is shown: the runs as they were read last, which one is selected, and whether its seeds are shown."""

    root: Path
    live: LiveIndex
    selected: int = 0
    is_open: bool = False
    cursors: ColumnCursors = field(default_factory=ColumnCursors)

    def document(self) -> Data:
        """Return the machine and the runs, those in training first."""
        rows = [
            row for status in ("running", *_waiting()) for row in self.live.page(status=status, limit=MOST_RUNS).rows
        ]
        known = {row["name"] for row in rows}
        rows += [row for row in self.live.page(limit=MOST_RUNS).rows if row["name"] not in known]
        shown = rows[:MOST_RUNS]
        for row in shown:
            if row["status"] == "running":
                row["curve"] = self._curve(row["name"])
        return {"project": self.root.name, "machine": machine(), "runs": shown}

    def _curve(self, name: str) -> list[float]:
        """Return a few values of the first seed's return, evenly spread over its steps."""
        try:
            columns = self.cursors.read(Run(project.runs_folder(self.root) / name))
            _, values = next(iter(columns.values())).values(METRIC)
        except (*UNREADABLE, StopIteration):
            return []
        places = [round(place * (len(values) - 1) / (CURVE - 1)) for place in range(CURVE)]
        return [float(values[place]) for place in places] if len(values) else []

    def lines(self, data: Data, width: int, height: int) -> list[str]:
        """Return the screen."""
        rows = data["runs"]
        self.selected = max(0, min(self.selected, len(rows) - 1))
        if self.is_open and rows:
            return seeds_of(self.root, rows[self.selected], width, height)
        return overview(data, width=width, height=height, selected=self.selected)

    def press(self, key: str) -> bool:
        """React to a key; False ends the view."""
        if key == "j":
            self.selected += 1
        elif key == "k":
            self.selected -= 1
        elif key == "\n":
            self.is_open = not self.is_open
        elif key == "\x1b":
            self.is_open = False
        return key != "q"


def _waiting() -> tuple[str, ...]:
    return tuple(status for status in ("queued", "prepared") if status in index.STATES)


def machine() -> Data:
    """Return the load and the memory of this machine."""
    lines = Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").is_file() else []
    memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if len(line.split()) > 1}
    return {"cores": os.cpu_count(), "load": list(os.getloadavg()), "memory_bytes": memory.get("MemTotal"),
            "available_bytes": memory.get("MemAvailable")}  # fmt: skip


def overview(data: Data, *, width: int, height: int, selected: int | None = None) -> list[str]:
    """Return the table of runs as lines of at most `width` characters."""
    rows = data["runs"]
    running = sum(row["status"] == "running" for row in rows)
    load = " ".join(f"{value:.2f}" for value in data["machine"]["load"])
    head = f"rlx top · {data['project']} · {running} training · load {load} on {data['machine']['cores']} cores"
    if data["machine"]["available_bytes"]:
        head += f" · {size(data['machine']['available_bytes'])} free"
    lines = [head, "", _row(("run", "status", "steps", "done", "return", "curve", "left"), width)]
    room = max(1, height - len(lines) - 2)
    first = 0 if selected is None else max(0, min(selected - room // 2, len(rows) - room))
    for number, row in enumerate(rows[first : first + room], start=first):
        line = _cells(row, width)
        lines.append(f"\x1b[7m{line.ljust(width)}\x1b[0m" if number == selected else line)
    if not rows:
        lines.append("no run yet: rlx train CONFIG")
    if selected is None:
        return [_clip(line, width) for line in lines]
    lines += [""] * (height - 1 - len(lines))
    lines.append("j/k move · Enter seeds · q leave · runs are never changed")
    return [_clip(line, width) for line in lines]


def _cells(row: Data, width: int) -> str:
    planned = row["planned_steps"]
    share = min(1.0, row["steps"] / planned) if planned else 0.0
    left = NOTHING
    if row["status"] == "running" and row["steps"] and planned:
        left = duration(row["seconds"] * max(0.0, planned - row["steps"]) / row["steps"])
    name = harmless(row["name"]).replace("\n", " ")
    curve = sparkline(row.get("curve") or ())
    step = steps(row["steps"], planned)
    return _row((name, row["status"], step, f"{share:.0%}", spread(row["return"]), curve, left), width)


def _row(cells: Sequence[str], width: int) -> str:
    """Lay the columns out; the name gets what the others leave. A narrow terminal has no column of steps."""
    name, status, step, done, score, curve, left = cells
    others = f"{done:>5}{score:>16} {curve:<{CURVE}}{left:>8}"
    if width >= WIDE:
        others = f"{step:>20}{others}"
    room = max(10, width - len(others) - 13)
    if len(name) > room:
        name = f"{name[: room - 5]}…{name[-4:]}"  # the number at its end tells runs apart
    return f"{name:<{room}} {status:<12}{others}"


def sparkline(values: Sequence[float]) -> str:
    """Draw values as a row of blocks; a value that is not finite is a gap."""
    finite = [value for value in values if value - value == 0]
    if not finite:
        return ""
    low = min(finite)
    span = (max(finite) - low) or 1.0
    return "".join(BLOCKS[int((value - low) / span * 7.999)] if value - value == 0 else " " for value in values)


def seeds_of(root: Path, row: Data, width: int, height: int) -> list[str]:
    """Return one run with its seeds."""
    name = harmless(row["name"]).replace("\n", " ")
    lines = [f"{name} · {row['status']} · {row['env'] or NOTHING} · {row['algo'] or NOTHING}", "",
             f"{'seed':>5} {'status':<12}{'step':>12}{'return':>12}  reason"]  # fmt: skip
    try:
        for seed in Run(project.runs_folder(root) / row["name"]).seeds[: height - 6]:
            step, score = position(seed)
            reason = harmless(str(seed.status.reason or "")).replace("\n", " ")
            lines.append(f"{seed.number:>5} {seed.status.state:<12}{step:>12,}{figure(score):>12}  {reason}")
    except UNREADABLE as error:
        lines.append(harmless(str(error)))
    lines += [""] * (height - 1 - len(lines))
    lines.append("Esc back · q leave · more: rlx info, rlx watch, rlx ui")
    return [_clip(line, width) for line in lines]


def _clip(line: str, width: int) -> str:
    if line.startswith("\x1b[7m"):
        return line[: width + len("\x1b[7m")].removesuffix("\x1b[0m") + "\x1b[0m"
    return line[:width]


def follow(view: TopView, interval: float) -> None:
    """Draw the view until q or Ctrl-C; the terminal is as it was afterwards."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    sys.stdout.write(ENTER_SCREEN)
    try:
        tty.setcbreak(terminal)
        data = view.document()
        due = time.monotonic() + interval
        while True:
            _draw(view.lines(data, *shutil.get_terminal_size()))
            ready, _, _ = select.select([terminal], [], [], max(0.0, due - time.monotonic()))
            if ready and not all(view.press(key) for key in _keys(os.read(terminal, 64))):
                return
            if time.monotonic() >= due:
                data = view.document()
                due = time.monotonic() + interval
    except KeyboardInterrupt:
        return
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        sys.stdout.write(LEAVE_SCREEN)
        sys.stdout.flush()


def _keys(typed: bytes) -> list[str]:
    """Return the keys of one read; an arrow comes as three bytes."""
    text = typed.decode("utf-8", "replace")
    if text in KEYS:
        return [KEYS[text]]
    return [KEYS.get(sign, sign) for sign in text] or ["q"]  # nothing: the terminal is gone


def _draw(lines: Sequence[str]) -> None:
    sys.stdout.write("\x1b[H" + "\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
    sys.stdout.flush()
