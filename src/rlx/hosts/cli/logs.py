"""Print the logs of a run's processes, or follow them.

Example: rlx logs cartpole_ppo_001 --seed 0 -f
"""

import sys
import time
from pathlib import Path

from rlx import files
from rlx.errors import NotFound
from rlx.hosts.cli.arguments import Args, Data, Parser, add_run, find_run
from rlx.hosts.cli.output import harmless
from rlx.runs.run import Run
from rlx.runs.status import RUNNING

POLL_SECONDS = 0.3
LARGEST_TAIL = 2**20
"""The most bytes that rlx prints of one log."""


def arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--seed", type=int, help="only this seed's log")
    parser.add_argument("--tail", type=int, default=200, metavar="LINES", help="last lines of each log (default: 200)")
    parser.add_argument("-f", "--follow", action="store_true", help="print new lines until the run ends")


def run(args: Args) -> Data | None:
    run = find_run(args.run)
    pattern = "*.log"
    if args.seed is not None:
        pattern = f"seed_{args.seed}.log"
        if not (run.path / "logs" / pattern).is_file():
            raise NotFound(f"{run.name} has no log {pattern}", hint=f"rlx info {run.name}")
    if args.follow:
        _follow(run, pattern)
        return None
    tails = {}
    for path in _logs(run, pattern):
        text = files.read_end(path, most=LARGEST_TAIL, within=run.path).decode("utf-8", "replace")
        tails[path.stem] = "\n".join(text.splitlines()[-args.tail :])
    return {"run": run.name, "logs": tails}


def _logs(run: Run, pattern: str) -> list[Path]:
    return sorted(path for path in (run.path / "logs").glob(pattern) if path.is_file())


def _follow(run: Run, pattern: str) -> None:
    offsets: dict[Path, int] = {}
    is_running = True
    while is_running:
        is_running = Run(run.path).status == RUNNING
        for path in _logs(run, pattern):
            size = path.stat().st_size
            new = min(size - offsets.get(path, 0), LARGEST_TAIL)
            offsets[path] = size
            if new > 0:
                content = files.read_end(path, most=new, within=run.path)
                sys.stdout.write(harmless(content.decode("utf-8", "replace")))
        sys.stdout.flush()
        if is_running:
            time.sleep(POLL_SECONDS)


def render(data: Data) -> str:
    logs = [f"== {name} ==\n{text}" for name, text in data["logs"].items() if text]
    return "\n".join(logs) or "(the logs are empty)"
