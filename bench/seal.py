"""Measure the cost of sealing: ten checkpoints evaluated in a sandbox and without one; a few minutes.

    python bench/seal.py [TASK ...] [--rounds 5] [--episodes 20]

Both are whole commands. *Plain* does what `rlx eval` does with a checkpoint (read, rebuild, check parity, play),
without the reference policies. *Sealed* is one call of `sealed`, as a study makes it: it tests the sandbox, verifies
the pinned tree, stages and hashes the checkpoints, starts the evaluator's process in its sandbox and measures there.
The ten checkpoints of a side share that start. Both play the same episodes, take turns, and must find the same
returns. The best round of each counts. Also shown, without a promise: the ratio of *CPU* seconds of all processes;
*without starts*, the call alone over the plain work alone in a process that has imported everything; and *served*,
the same policy as a foreign one, in its own process for each checkpoint.

One policy is trained per task (in bench/.seal, not committed) and copied ten times. Exits with 1 if a promise is
broken.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / ".seal"
CHECKPOINTS = 10
FIRST = 7
Returns = list[float]


@dataclass(frozen=True)
class Task:
    """A catalog config, its training steps, and the promised cost of sealing."""

    config: str
    steps: int
    limit: float


TASKS = {"CartPole-v1": Task("cartpole", 60_000, 1.3), "Hopper-v5": Task("hopper", 200_000, 1.1)}


@dataclass(frozen=True)
class Taken:
    """One command: wall and CPU seconds in all, wall seconds of the measuring alone, and the returns."""

    seconds: float
    cpu: float
    inner: float
    returns: Returns


def plain(folder: Path, config: dict[str, Any], episodes: int) -> Returns:
    from rlx.config.load import parse
    from rlx.evaluate.measure import rebuild_fitting
    from rlx.evaluate.protocol import Protocol
    from rlx.evaluate.rollout import Evaluator
    from rlx.runs.checkpoints import checkpoint

    def measured() -> Returns:
        root = folder / "evaluator"
        protocol = Protocol.of(parse(config), root=root, purpose="search", episodes=episodes, first=FIRST)
        found: Returns = []
        with Evaluator(protocol) as evaluator:
            for path in paths(folder):
                policy, _ = rebuild_fitting(evaluator, checkpoint.read(path, with_replay=False), named=())
                found += evaluator.evaluate(policy).returns.tolist()
        return found

    return timed(measured)


def sealed(folder: Path, config: dict[str, Any], episodes: int, policy: str | None = None) -> Returns:
    from rlx.evaluate.checkpoint_evaluation import Subject
    from rlx.evaluate.sealed.pinned_tree import PinnedTree
    from rlx.evaluate.sealed.sealed_evaluation import SealedEvaluation
    from rlx.evaluate.sealed.sealed_evaluation import evaluate_sealed as seal_and_measure

    def measured() -> Returns:
        worktree = folder / "worktree" if policy else None
        pinned = PinnedTree.open(folder / "evaluator")
        seal = SealedEvaluation(config, pinned, "search", FIRST, episodes, policy=policy, policy_root=worktree)
        subjects = [Subject(path, None, path.with_suffix(".json")) for path in paths(folder)]
        documents = [one.require_document() for one in seal_and_measure(seal, subjects)]
        return [row["return"] for document in documents for row in document["episodes"]]

    return timed(measured)


def served(folder: Path, config: dict[str, Any], episodes: int) -> Returns:
    return sealed(folder, config, episodes, policy="rlx")


KINDS: dict[str, Callable[[Path, dict[str, Any], int], Returns]] = {
    "plain": plain,
    "sealed": sealed,
    "served": served,
}


def timed(measured: Callable[[], Returns]) -> Returns:
    """Do it, and report duration and returns to the parent command."""
    start = time.perf_counter()
    found = measured()
    print(json.dumps({"inner": time.perf_counter() - start, "returns": found}))
    return found


def paths(folder: Path) -> list[Path]:
    return [folder / f"checkpoint_{index}" for index in range(CHECKPOINTS)]


def trained(task: Task) -> Path:
    """Return the run that a task's policy comes from, training it if it is missing."""
    root = HERE / task.config
    root.mkdir(parents=True, exist_ok=True)
    (root / "rlx.toml").touch()
    if not (root / "runs" / f"{task.config}_001").exists():
        print(f"training {task.config} ({task.steps:,} steps) ...", flush=True)
        settings = ["-s", f"algo.total_timesteps={task.steps}", "-s", f"run_name={task.config}"]
        subprocess.run(
            [sys.executable, "-m", "rlx", "train", f"catalog:{task.config}", *settings],
            cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return root / "runs" / f"{task.config}_001"


def lay_out(task: Task, folder: Path) -> None:
    """Prepare one side: a pinned tree, ten copies of a policy, and its config."""
    from rlx.evaluate.sealed.pinned_tree import pin_tree
    from rlx.runs.run import Run

    run = Run(trained(task))
    for path in paths(folder):
        shutil.copytree(next(iter(run.seeds)).checkpoints / "latest", path)
    (folder / "worktree").mkdir()
    (folder / "worktree" / "rlx.toml").touch()
    pin_tree(folder / "worktree", folder / "evaluator")
    (folder / "config.json").write_text(json.dumps(run.config))


def take(kind: str, folder: Path, episodes: int) -> Taken:
    start, used = time.perf_counter(), _cpu()
    done = subprocess.run(
        [sys.executable, __file__, "--only", kind, "--folder", str(folder), "--episodes", str(episodes)],
        capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{kind} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    return Taken(seconds, _cpu() - used, told["inner"], told["returns"])


def _cpu() -> float:
    """Return the CPU seconds of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(task: Task, *, rounds: int, episodes: int) -> tuple[list[str], float]:
    """Return a row of the table, and the ratio of sealed to plain."""
    from rig import measure

    taken: list[dict[str, Taken]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        lay_out(task, folder)
        for _ in range(rounds + 1):
            taken.append({kind: take(kind, folder, episodes) for kind in KINDS})
            if len({json.dumps(one.returns) for one in taken[-1].values()}) > 1:
                raise SystemExit(f"{task.config}: the three do not find the same returns")
    counted = taken[1:]  # the first round fills the disk's cache

    def best(kind: str, figure: str) -> float:
        return min(getattr(one[kind], figure) for one in counted)

    ratio = best("sealed", "seconds") / best("plain", "seconds")
    others = [
        best("sealed", "cpu") / best("plain", "cpu"),
        best("sealed", "inner") / best("plain", "inner"),
        best("served", "seconds") / best("plain", "seconds"),
    ]
    seconds = [f"{best(kind, 'seconds'):.1f} s" for kind in ("plain", "sealed")]
    score = statistics.fmean(counted[0]["plain"].returns)
    promise = measure.verdict(ratio, task.limit)
    return [f"{score:.0f}", *seconds, f"{ratio:.2f}", promise, *(f"{one:.2f}" for one in others)], ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)}; default all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--only", choices=list(KINDS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        KINDS[args.only](args.folder, json.loads((args.folder / "config.json").read_text()), args.episodes)
        return 0
    from rig import measure

    rows, is_kept = [], True
    for name in args.tasks or TASKS:
        row, ratio = compare(TASKS[name], rounds=args.rounds, episodes=args.episodes)
        rows.append([name, *row])
        is_kept = is_kept and ratio <= TASKS[name].limit
    header = [
        "task",
        "return",
        "plain",
        "sealed",
        "sealed : plain",
        "promise",
        "CPU",
        "without starts",
        "served : plain",
    ]
    measure.show(f"{CHECKPOINTS} checkpoints, {args.episodes} episodes each, one start of the evaluator", header, rows)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
