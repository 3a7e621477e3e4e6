"""Measure large stores: index build, list, find, page, tag and rm at 1,000, 10,000 and more runs, with their growth.

    python bench/scale.py [--sizes 1000,10000,100000] [--simulate 1000000] [--trials 10000] [--peers VENV]

The whole answer counts, with the start of the process: wall time, and the CPU time of all its processes. `growth` is
the ratio of CPU times to the size before. `--simulate` fills the index alone, without run folders, to see how far one
SQLite file goes; `docs/concepts/scale.md` builds on it. MLflow and TensorBoard list `--peer-runs` runs, made through
their own API; more take too long to make. A sweep of `--trials` trials searches and keeps its log, without training.
The script writes bench/scale.md, with the load of the machine.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from listing import mlflow_list, tensorboard_list
from rig import measure, peers
from rig.synthetic import make_runs

from rlx.loop.sweep import run_sweep, sweep_log
from rlx.loop.sweep.sweep_file import SweepRequest, plan_for, read_parameters
from rlx.loop.sweep.sweep_log import TrialScore
from rlx.loop.sweep.sweep_plan import SweepBudget
from rlx.search.auto import TrialJob

PAGE = Path(__file__).with_suffix(".md")
ROWS = 10
AIM_SECONDS = {10_000: 1.5}
UI_PAGE = """
import sys; from pathlib import Path; from rlx.runs.index import LiveIndex
index = LiveIndex(Path.cwd()); index.page(limit=50)
print(index.page(limit=50, offset=int(sys.argv[1]), sort="return").total)
"""
FIND = "import rlx; print(len(rlx.find(env='Cart', tag='baseline', name='synthetic_*7')))"


@dataclass(frozen=True)
class Cost:
    """The wall time and the CPU time of a command, in seconds."""

    wall: float
    cpu: float


def main() -> None:
    parser = peers.parser(__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of runs")
    parser.add_argument("--peer-runs", type=int, default=1000, metavar="N", help="runs that the peers list")
    parser.add_argument("--simulate", type=int, default=1_000_000, metavar="N", help="rows of the simulated index")
    parser.add_argument("--trials", type=int, default=10_000, metavar="N", help="trials of the sweep")
    args = parser.parse_args()
    before: dict[str, Cost] = {}
    rows: list[list[str]] = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        for count in map(int, args.sizes.split(",")):
            root = Path(place) / str(count)
            make_runs(root, count, rows=ROWS)
            figures = _figures(root, count)
            rows += [_row(name, count, figure, before.get(name)) for name, figure in figures.items()]
            before = figures
            shutil.rmtree(root)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        header = ["action", "runs", "wall s", "CPU s", "growth", "aim"]
        tables = {
            "One project, process start included": (header, rows),
            "The lists of others, process start included": (header[:4], _theirs(Path(place), args)),
            "The index alone, simulated": (
                ["action", "rows", "seconds"],
                _simulation(Path(place) / "i.db", args.simulate),
            ),
            "A sweep without its trainings": (
                ["trials", "CPU s", "CPU ms per trial"],
                _sweeps(Path(place), args.trials),
            ),
        }
    for title, (columns, table) in tables.items():
        measure.show(title, columns, table)
    load = max(load, os.getloadavg()[0])
    _write(tables, machine=f"{os.cpu_count()} cores, load {load:.0f}; the largest rlx process held {peak:.0f} MB")


Tables = Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]


def _write(tables: Tables, *, machine: str) -> None:
    lines = [
        "# Large stores\n",
        f"For anyone with thousands of runs. Written by `python bench/scale.py` ({machine}).",
        "`growth` is the ratio of CPU times to the row with fewer runs. On a busy machine, only CPU seconds compare.",
    ]
    for title, (header, rows) in tables.items():
        lines += [f"\n## {title}\n", _table_row(header), _table_row(["---"] * len(header))]
        lines += [_table_row(row) for row in rows]
    PAGE.write_text("\n".join(lines) + "\n")


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _sweeps(place: Path, most: int) -> list[list[str]]:
    """Search, race and keep the log of sweeps whose trials are scored by a formula."""
    rows = []
    root = place / "sweeps"
    (root / "configs").mkdir(parents=True)
    (root / "configs" / "c.yaml").write_text("env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 1000}\n")
    for trials in (most // 10, most):
        space = read_parameters(["algo.learning_rate=log:1e-5:1e-1"])
        request = SweepRequest(
            str(root / "configs" / "c.yaml"), space, name=f"s{trials}", budget=SweepBudget(trials=trials),
            options={"confirm": 0},
        )  # fmt: skip
        began = time.process_time()
        log = sweep_log.create(plan_for(request, root=root), root=root)
        sweep = run_sweep._Sweep(log, log.state(), root=root, report=lambda _: None, vote=None)
        sweep.trials = ScoredTrials(log, sweep.state)  # type: ignore[assignment]
        sweep._search()
        seconds = time.process_time() - began
        rows.append([f"{len(sweep.state.trials):,}", f"{seconds:.1f}", f"{1000 * seconds / trials:.1f}"])
    return rows


class ScoredTrials:
    """Scores trials by a formula, in the place of `TrialRuns`."""

    def __init__(self, log: sweep_log.SweepLog, state: sweep_log.SweepState) -> None:
        self.log = log
        self.state = state

    def train(self, jobs: Sequence[TrialJob]) -> dict[TrialJob, float | None]:
        for job in jobs:
            if job not in self.state.scores:
                rate = float(self.state.trials[job.trial]["algo.learning_rate"])
                score = TrialScore(job.share - abs(math.log10(rate) + 3) + 0.01 * job.seed, cpu_seconds=1.0, steps=100)
                self.log.add_score(job, score)
                self.state.scores[job] = score
        return {job: self.state.scores[job].score for job in jobs}


def _figures(root: Path, count: int) -> dict[str, Cost]:
    rlx = Path(sys.executable).with_name("rlx")
    middle = str(count // 2)
    commands: dict[str, measure.Command] = {
        "rlx ls, cold (index build)": [rlx, "ls"],
        "rlx ls, warm": [rlx, "ls"],
        "rlx ls --env Cart --tag baseline": [rlx, "ls", "--env", "Cart", "--tag", "baseline"],
        "rlx ls --sort return --offset half (a page)": [rlx, "ls", "--sort", "return", "--offset", middle],
        "two pages of rlx ui": [sys.executable, "-c", UI_PAGE, middle],
        "rlx.find(env, tag, name)": [sys.executable, "-c", FIND],
        "rlx tag": [rlx, "tag", "synthetic_001", "good"],
        "rlx rm": [rlx, "rm", "synthetic_002", "--yes"],
    }
    return {name: _cost(argv, root) for name, argv in commands.items()}


def _cost(argv: measure.Command, root: Path, env: Mapping[str, str] | None = None) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = measure.seconds(argv, cwd=root, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _theirs(place: Path, args: argparse.Namespace) -> list[list[str]]:
    """Return the rows of MLflow and TensorBoard."""
    installed = peers.Peers(args.peers)
    rows = []
    for name, prepare in {"mlflow": mlflow_list, "tensorboard": tensorboard_list}.items():
        if not installed.has(name):
            rows.append([name, f"{args.peer_runs:,}", "not installed", ""])
            continue
        folder = place / name
        folder.mkdir()
        label, argv, env = prepare(installed, folder, args.peer_runs)
        rows.append(_row(label, args.peer_runs, _cost(argv, folder, {**peers.QUIET, **env}), None)[:4])
    return rows


def _row(name: str, count: int, took: Cost, before: Cost | None) -> list[str]:
    growth = ""
    if before:
        growth = f"× {took.cpu / before.cpu:.1f}"
    aim = ""
    if name.startswith("rlx ls, cold"):
        aim = _verdict(took, AIM_SECONDS.get(count))
    return [name, f"{count:,}", f"{took.wall:.3f}", f"{took.cpu:.3f}", growth, aim]


def _verdict(took: Cost, aim_seconds: float | None) -> str:
    """Judge the wall time. On a busy machine, print the CPU time per core instead: the least that is possible."""
    cores = os.cpu_count() or 1
    if aim_seconds is None or os.getloadavg()[0] < cores:
        return measure.verdict(took.wall, aim_seconds)
    return f"≤ {aim_seconds:g}: busy machine, {took.cpu / cores:.2f} s of CPU per core"


def _simulation(path: Path, count: int) -> list[list[str]]:
    """Fill a table like the index's, and ask it what lists ask."""
    from rlx.runs import index

    connection = sqlite3.connect(path)
    connection.executescript(index._SCHEMA)
    document = "x" * 600
    began = time.perf_counter()
    row = ("?," * 16).rstrip(",")
    connection.executemany(
        f"INSERT INTO run VALUES ({row})",
        (
            (f"run_{n:08d}", n, n, 1, "completed", f"Env{n % 50}-v1", "ppo", "\n", float(n), 10, 1000, "0",
             n % 997, n % 997, 1.0, document)
            for n in range(count)
        ),
    )  # fmt: skip
    connection.commit()
    rows = [["fill", f"{count:,}", f"{time.perf_counter() - began:.3f}"]]
    questions = {
        "newest page": "SELECT document FROM run ORDER BY created DESC LIMIT 50",
        "best page": "SELECT document FROM run ORDER BY metric, score DESC LIMIT 50",
        "find by a part of a name": "SELECT count(*) FROM run WHERE instr(name, '0042')",
        "stamps of all runs (what a warm list compares)": "SELECT name, mtime, inode FROM run",
    }
    for name, question in questions.items():
        began = time.perf_counter()
        connection.execute(question).fetchall()
        rows.append([name, f"{count:,}", f"{time.perf_counter() - began:.3f}"])
    connection.close()
    return [*rows, [f"size {path.stat().st_size / 2**20:.0f} MB", f"{count:,}", ""]]


if __name__ == "__main__":
    main()
