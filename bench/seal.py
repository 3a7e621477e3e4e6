"""What sealing costs: ten checkpoints measured in a box beside the same ten measured plainly; a few minutes.

    python bench/seal.py [TASK ...] [--rounds 5] [--episodes 20]

*Plain* is what `rlx eval` does with a checkpoint (read, rebuild, retrace, play), in a process that has everything
imported: the least it can cost. *Sealed* is one call of `sealed`, as a study makes it: it verifies the pinned tree,
stages and hashes the checkpoints, starts the evaluator's own process in its box and measures there. The start of that
process is shared by a side's ten checkpoints. Both play the same episodes, take turns, and must find the same returns.
*Served* is the same policy as a foreign one, a process of its own for each checkpoint: shown, not promised.

One policy is trained for each task (in bench/.seal, not committed) and copied ten times. Exits 1 where a promise is
broken.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rig import measure

from rlx.config.load import parse
from rlx.evaluate.measure import fitting
from rlx.evaluate.pin import Pin, pin
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator
from rlx.evaluate.seal import Seal, Subject, sealed
from rlx.runs import checkpoint as checkpoints
from rlx.runs.run import Run

HERE = Path(__file__).parent / ".seal"
CHECKPOINTS = 10
Returns = list[float]


@dataclass(frozen=True)
class Task:
    """A catalog config, for how many steps it is trained, and what sealing it may cost."""

    config: str
    steps: int
    limit: float


TASKS = {"CartPole-v1": Task("cartpole", 60_000, 1.3), "Hopper-v5": Task("hopper", 200_000, 1.1)}


@dataclass(frozen=True)
class Side:
    """Ten checkpoints and how they are measured."""

    run: Run
    paths: tuple[Path, ...]
    pinned: Pin
    episodes: int
    folder: Path

    def plain(self) -> Returns:
        experiment = parse(self.run.config)
        protocol = Protocol.of(experiment, root=self.pinned.folder, purpose="search", episodes=self.episodes, first=7)
        found: Returns = []
        with Evaluator(protocol) as evaluator:
            for path in self.paths:
                policy, _ = fitting(evaluator, checkpoints.read(path, with_replay=False), named=())
                found += evaluator.evaluate(policy).returns.tolist()
        return found

    def sealed(self, policy: str | None = None) -> Returns:
        seal = Seal(
            self.run.config, self.pinned, "search", 7, self.episodes, policy=policy,
            policy_root=self.folder / "worktree" if policy else None,
        )  # fmt: skip
        subjects = [Subject(path, None, self.folder / f"{index}.json") for index, path in enumerate(self.paths)]
        documents = [one.required() for one in sealed(seal, subjects)]
        return [row["return"] for document in documents for row in document["episodes"]]

    def served(self) -> Returns:
        return self.sealed("rlx")


def trained(task: Task) -> Run:
    """Return the run that a task's policy comes from, training it where it is not there."""
    root = HERE / task.config
    root.mkdir(parents=True, exist_ok=True)
    (root / "rlx.toml").touch()
    if not (root / "runs" / f"{task.config}_001").exists():
        print(f"training {task.config} ({task.steps:,} steps) ...", flush=True)
        settings = [f"algo.total_timesteps={task.steps}", f"run_name={task.config}"]
        subprocess.run(
            [sys.executable, "-m", "rlx", "train", f"catalog:{task.config}", *settings],
            cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return Run(root / "runs" / f"{task.config}_001")


def side(task: Task, folder: Path, episodes: int) -> Side:
    """Lay a side out: a tree that is pinned, and a policy ten times."""
    run = trained(task)
    source = next(iter(run.seeds)).checkpoints / "latest"
    paths = tuple(folder / f"checkpoint_{index}" for index in range(CHECKPOINTS))
    for path in paths:
        shutil.copytree(source, path)
    (folder / "worktree").mkdir()
    (folder / "worktree" / "rlx.toml").touch()
    return Side(run, paths, pin(folder / "worktree", folder / "evaluator"), episodes, folder)


def timed(action: Callable[[], Returns]) -> tuple[float, Returns]:
    start = time.perf_counter()
    found = action()
    return time.perf_counter() - start, found


def compare(task: Task, *, rounds: int, episodes: int) -> tuple[list[str], float]:
    """Return a row of the table, and the median ratio of sealed to plain."""
    with tempfile.TemporaryDirectory() as name:
        asked = side(task, Path(name).resolve(), episodes)
        times: dict[str, list[float]] = {"plain": [], "sealed": [], "served": []}
        steps = 0.0
        for number in range(rounds + 1):  # the first one fills caches and does not count
            found = {}
            for kind in times:
                took, found[kind] = timed(getattr(asked, kind))
                if number:
                    times[kind].append(took)
            if not found["plain"] == found["sealed"] == found["served"]:
                raise SystemExit(f"{task.config}: the three do not find the same returns")
            steps = statistics.fmean(found["plain"])
    ratios = [one / other for one, other in zip(times["sealed"], times["plain"], strict=True)]
    served = [one / other for one, other in zip(times["served"], times["plain"], strict=True)]
    ratio = statistics.median(ratios)
    spread = f"{ratio:.2f} ({min(ratios):.2f} – {max(ratios):.2f})"
    seconds = [f"{statistics.median(times[kind]):.1f} s" for kind in ("plain", "sealed")]
    row = [f"{steps:.0f}", *seconds, spread, measure.verdict(ratio, task.limit), f"{statistics.median(served):.2f}"]
    return row, ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=20)
    args = parser.parse_args()
    rows, is_kept = [], True
    for name in args.tasks:
        row, ratio = compare(TASKS[name], rounds=args.rounds, episodes=args.episodes)
        rows.append([name, *row])
        is_kept = is_kept and ratio <= TASKS[name].limit
    header = ["task", "return", "plain", "sealed", "sealed : plain", "promise", "served : plain"]
    measure.show(f"{CHECKPOINTS} checkpoints, {args.episodes} episodes each, one process start", header, rows)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
