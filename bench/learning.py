"""The learning gate: does backend `fast` learn as well as Stable-Baselines3? Populations of PPO trainings, resumable.

    python bench/learning.py [TASK ...] [--side sb3|fast] [--count]

Trains the seeds that bench/learning.jsonl lacks, one process and one thread, a line a seed; the other side can run in
another process at the same time, and another machine can go on with the file. With nothing left to train it judges,
writes bench/learning.md and ends with 1 where a task fails.

The plan, written before the first run and kept:

- Both sides have the same hyperparameters and the same training seeds, far apart. SB3 itself is the peer
  (`PPO.learn`, one thread), not rlx's backend for it; `fast` is trained through its own `train`.
- Score of a seed: the mean over its last 10 iterations of the greedy policy's return from the same fixed start states.
  The last policy alone is a poor measure: single updates drop a good one by hundreds.
- Nothing is judged before both sides have every seed of a look; until then only counts are shown.
- *Mean*: non-inferior, a one-sided permutation test that `fast` is better than SB3 minus a margin. The margin is a
  share of the SB3 seeds' standard deviation (0.5 where there are 100 seeds a side, 0.75 where there are 30), at least
  1 % of SB3's mean.
- *Tail*, only from 100 seeds a side, below that it is reported: at most 25 % of `fast`'s seeds fall below SB3's worst
  decile (of equals 10 % do), one-sided bootstrap.
- Two looks a task (100 and 200 seeds, or 30 and 60), each at .0294 (Pocock), which keeps .05 for both; a task that
  passes at the first ends there, one that does not is extended once, and fails if the second does not pass either.
  Equal learners of normal returns pass the mean's first look 95 % (100 seeds) or 84 % (30) of the time, the second
  99 %.
- Where a defect of `fast` is found and mended, its side of the affected tasks is trained again from nothing, and the
  table says so. Nothing is tuned after a look.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from statistics import fmean
from typing import Any

from rig import learners
from rig.gate import Judgement, judge

import rlx
from rlx import files
from rlx.config.schema import Env

HERE = Path(__file__).parent
FILE = HERE / "learning.jsonl"
TABLE = HERE / "learning.md"
SIDES = ("sb3", "fast")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LAST = 10
MANY, FEW = (100, 200), (30, 60)


@dataclass(frozen=True)
class Task:
    """One task of the gate: what is trained, from how many start states it is scored, how many seeds a look has."""

    env: dict[str, Any]
    algo: dict[str, Any]
    starts: int
    looks: tuple[int, int]

    @property
    def spec(self) -> dict[str, Any]:
        return {"env": self.env, "algo": {"name": "ppo", **self.algo}}

    @cached_property
    def plan(self) -> str:
        """A hash of all that a score depends on; scores of another plan are not counted."""
        return files.sha256(files.encode([self.spec, self.starts, LAST]))[:12]


NORMALIZED = {"obs": True, "reward": True}
TASKS = {
    "cartpole": Task(
        {"id": "CartPole-v1", "num_envs": 8},
        {"total_timesteps": 15_360, "rollout_steps": 64, "batch_size": 128, "update_epochs": 10, "learning_rate": 1e-3,
         "gamma": 0.98, "gae_lambda": 0.9},
        starts=5, looks=MANY,
    ),
    "acrobot": Task(
        {"id": "Acrobot-v1", "num_envs": 16},
        {"total_timesteps": 40_960, "rollout_steps": 64, "batch_size": 256, "update_epochs": 6, "learning_rate": 1e-3,
         "gamma": 0.99, "gae_lambda": 0.95},
        starts=5, looks=FEW,
    ),
}  # fmt: skip
"""In the order they are trained."""

HEADER = """\
# Does `fast` learn as well as Stable-Baselines3?

Written by `python bench/learning.py`, which has the plan; every seed's score is in `learning.jsonl`. Scores are means
of greedy returns over a seed's last 10 iterations. *Bound* is the one-sided lower bound of the difference of the means
(`fast` − SB3) at the level of the look; it must lie above minus the *margin*. *Below* is the share of `fast`'s seeds
below SB3's worst decile (of equals 10 %) and its upper bound, which must be at most 25 % where 100 seeds a side or
more are planned. *Worst tenth* are the means of the worst tenth of the seeds.

| task | steps | seeds a side | SB3 mean (sd) | `fast` mean (sd) | bound | margin | worst tenth SB3 / `fast` | below | verdict |
|---|---|---|---|---|---|---|---|---|---|
"""  # noqa: E501


def rows() -> list[dict[str, Any]]:
    """Return every line of the file."""
    return list(files.read_rows(FILE)) if FILE.is_file() else []


def scores(name: str, side: str) -> dict[int, float]:
    """Return the scores of one side of a task by place (0, 1, …), the newest line of each."""
    task = TASKS[name]
    own = [row for row in rows() if (row["task"], row["side"], row["plan"]) == (name, side, task.plan)]
    return {row["place"]: files.number(row["score"]) for row in own}


def judgement(name: str) -> Judgement | None:
    """Judge a task at the first look that decides it; None where seeds are missing."""
    task = TASKS[name]
    sides = [scores(name, side) for side in SIDES]
    for number, look in enumerate(task.looks):
        if any(place not in side for side in sides for place in range(look)):
            return None
        sb3, fast = ([side[place] for place in range(look)] for side in sides)
        found = judge(sb3, fast, with_tail=task.looks == MANY, is_last=number == len(task.looks) - 1)
        if found.is_final:
            return found
    return None


def missing(name: str, side: str) -> Iterator[int]:
    """Yield the places still to train on one side, as long as the task needs them."""
    task = TASKS[name]
    for place in range(task.looks[-1]):
        if place == task.looks[0] and not _needs_extension(name):
            return
        if place not in scores(name, side):
            yield place


def _needs_extension(name: str) -> bool:
    first = range(TASKS[name].looks[0])
    return all(place in scores(name, side) for side in SIDES for place in first) and judgement(name) is None


def train(name: str, side: str, place: int) -> None:
    """Train one seed and append its line."""
    task = TASKS[name]
    starts = learners.Starts(Env.model_validate(task.env), task.starts)
    began = time.process_time()
    trainer = learners.with_sb3 if side == "sb3" else learners.with_rlx
    returns = trainer(task.spec, place * learners.SPACING, starts=starts, last=LAST)
    took = time.process_time() - began
    starts.close()
    row = {
        "task": name, "side": side, "plan": task.plan, "place": place, "score": round(fmean(returns), 4),
        "evaluations": [round(one, 2) for one in returns], "cpu_seconds": round(took, 2),
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "versions": versions(side),
    }  # fmt: skip
    files.append_line(FILE, files.encode(row))


def versions(side: str) -> str:
    """Name what trained a seed: packages, and for `fast` a hash of its code."""
    packages = ["gymnasium", "numpy", *(("stable-baselines3", "torch") if side == "sb3" else ("rlx",))]
    found = [f"{package} {metadata.version(package)}" for package in packages]
    return ", ".join(found if side == "sb3" else [*found, f"code {_code()}"])


def _code() -> str:
    folder = Path(rlx.__file__).parent / "train" / "backends"
    return files.sha256(b"".join(file.read_bytes() for file in sorted(folder.glob("fast*.py"))))[:8]


def show_counts() -> None:
    """Print how many seeds there are, and nothing of what they scored."""
    for name, task in TASKS.items():
        have = ", ".join(f"{side} {len(scores(name, side))}" for side in SIDES)
        print(f"{name}: {have} (first look at {task.looks[0]} a side)")


def table() -> str:
    """Return the results of every task that has been decided."""
    lines = HEADER.splitlines()
    for name in TASKS:
        found = judgement(name)
        lines.append(_row(name, found) if found else _open_row(name))
    used = sorted({f"{row['side']}: {row['versions']} ({row['date']})" for row in _counted()})
    return "\n".join([*lines, "", "Trained with", *(f"- {one}" for one in used)]) + "\n"


def _counted() -> list[dict[str, Any]]:
    return [row for row in rows() if row["task"] in TASKS and row["plan"] == TASKS[row["task"]].plan]


def _row(name: str, found: Judgement) -> str:
    cells = [
        name, f"{TASKS[name].algo['total_timesteps']:,}", str(found.seeds),
        f"{found.sb3_mean:.4g} ({found.sb3_sd:.3g})", f"{found.fast_mean:.4g} ({found.fast_sd:.3g})",
        f"{found.bound:+.3g}", f"{found.margin:.3g}", f"{found.sb3_tail:.4g} / {found.fast_tail:.4g}",
        f"{found.below:.0%} (≤ {found.below_bound:.0%})", f"**{'passed' if found.passed else 'FAILED'}**",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _open_row(name: str) -> str:
    have = " / ".join(str(len(scores(name, side))) for side in SIDES)
    steps = f"{TASKS[name].algo['total_timesteps']:,}"
    look = TASKS[name].looks[_needs_extension(name)]
    return f"| {name} | {steps} | {have} | | | | | | | open: {look} a side are needed |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--side", choices=SIDES, action="append")
    parser.add_argument("--count", action="store_true", help="show how far it is and train nothing")
    args = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # to be set before NumPy is loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    for name in args.tasks if not args.count else []:
        for side in args.side or SIDES:
            for place in missing(name, side):
                train(name, side, place)
                print(f"{name} {side}: {len(scores(name, side))} seeds", flush=True)
    found = {name: judgement(name) for name in TASKS}
    TABLE.write_text(table(), encoding="utf-8")
    if not all(found.values()):
        show_counts()
    for name, one in found.items():
        if one:
            print(f"{name}: {'passed' if one.passed else 'FAILED'} with {one.seeds} seeds a side")
    return 1 if any(one and not one.passed for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
