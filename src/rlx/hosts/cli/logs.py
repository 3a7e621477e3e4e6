"""Print what a run's processes wrote, or follow it.

Example: rlx logs cartpole_ppo_001 --seed 0 -f
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rlx.errors import NotFound
from rlx.hosts.cli.output import harmless
from rlx.runs import project
from rlx.runs.run import Run, find
from rlx.runs.status import RUNNING

POLL_SECONDS = 0.3


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--seed", type=int, help="only this seed's log")
    parser.add_argument("--tail", type=int, default=200, metavar="LINES", help="how many last lines of each log (200)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")


def run(args: argparse.Namespace) -> dict[str, Any] | None:
    found = find(args.run, root=project.root())
    paths = [found.path / "logs" / f"seed_{args.seed}.log"] if args.seed is not None else _logs(found)
    absent = [path for path in paths if not path.is_file()]
    if absent:
        raise NotFound(f"{found.name} has no log {absent[0].name}", hint=f"rlx info {found.name}")
    if not args.follow:
        return {"run": found.name, "logs": {path.stem: _tail(path, args.tail) for path in paths}}
    _follow(found, paths)
    return None


def _logs(found: Run) -> list[Path]:
    return sorted((found.path / "logs").glob("*.log"))


def _tail(path: Path, lines: int) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _follow(found: Run, paths: list[Path]) -> None:
    offsets = dict.fromkeys(paths, 0)
    while True:
        is_running = Run(found.path).status == RUNNING
        for path in [*paths, *[new for new in _logs(found) if new not in offsets and len(paths) > 1]]:
            with path.open("rb") as stream:
                stream.seek(offsets.get(path, 0))
                content = stream.read()
            offsets[path] = offsets.get(path, 0) + len(content)
            sys.stdout.write(harmless(content.decode("utf-8", "replace")))
        sys.stdout.flush()
        if not is_running:
            return
        time.sleep(POLL_SECONDS)


def render(data: dict[str, Any]) -> str:
    shown = [f"== {name} ==\n{text}" for name, text in data["logs"].items() if text]
    return "\n".join(shown) or "(nothing was written)"
