"""Training cost: `fast` against one-thread SB3, a CleanRL-style PPO and sbx, whole trainings, interleaved.

    python bench/train.py [TASK ...] [--repeats 5] [--quick] [--peers VENV]

A training is what a user starts: import, environments, logging, periodic evaluation, checkpoints and the evaluations
of the untrained and the final policy; `fast` through `rlx train`. The CleanRL-style one neither evaluates nor saves.
Every repeat runs each of them once; medians and ranges. CPU seconds are those of all processes a training starts.
A ratio stands only where the task passed the learning gate (bench/learning.py). A full run writes bench/train.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import learning
from rig import measure, peers
from rig.cost import Command, Cost, cost
from rig.gate import MEAN

RIG = Path(__file__).parent / "rig"
TABLE = Path(__file__).parent / "train.md"
REPORT_EPISODES = 20
EVALUATIONS, EPISODES = 4, 5
HEADER = """\
# What a training costs

Written by `python bench/train.py`. Whole trainings on one thread each: import, logging, evaluations, checkpoints (the
CleanRL-style one has neither evaluations nor checkpoints). Median (range) of the repeats, in which all take turns. A
ratio is what another takes over what `fast` takes in the same repeat; it stands only where `fast` passed the
[learning gate](learning.md). *Env stepping alone* is its share of `fast`'s CPU seconds: what no trainer can save.
"""
PLACES = ("fast", "sb3", "cleanrl-style", "sbx")


@dataclass(frozen=True)
class Timed:
    """A task of the learning gate, at a size for timing; `others` says whether all peers run it."""

    gate: str
    steps: int
    num_envs: int | None = None
    others: bool = False

    @property
    def spec(self) -> dict[str, Any]:
        """The config of one training, and what a peer needs beside it."""
        task = learning.TASKS[self.gate]
        env = {**task.env, "num_envs": self.num_envs or task.env["num_envs"]}
        every = self.steps // EVALUATIONS
        algo = {**task.spec["algo"], "total_timesteps": self.steps}
        return {"env": env, "algo": algo, "eval": {"every": every, "episodes": EPISODES}, "seed": 0}


TASKS = {
    "CartPole, 8 envs": Timed("cartpole", 20_480, others=True),
    "CartPole, 32 envs": Timed("cartpole", 20_480, num_envs=32),
    "Acrobot, 16 envs": Timed("acrobot", 20_480),
    "Pendulum, 8 envs": Timed("pendulum", 20_480, others=True),
    "LunarLander, 16 envs": Timed("lunar_lander", 20_480, others=True),
    "Hopper, 8 envs": Timed("hopper", 10_240),
}


class Contest:
    """A folder to train in, and the commands of every contestant."""

    def __init__(self, place: Path, installed: peers.Peers) -> None:
        self._place = place
        self._count = 0
        self._pythons = {"sb3": Path(sys.executable), "cleanrl-style": Path(sys.executable), "sbx": installed.python}
        self.names = [name for name in PLACES if name != "sbx" or installed.has("sbx-rl")]

    def command(self, name: str, spec: dict[str, Any], *, seeds: Sequence[int] = (0,)) -> Command:
        """Return the command of one whole training in a fresh folder; of several seeds where it is rlx's."""
        self._count += 1
        folder = self._place / f"{name}_{self._count}"
        folder.mkdir()
        file = folder / "spec.json"
        if name == "fast":
            config = {key: spec[key] for key in ("env", "algo", "eval")}
            config["checkpoint"] = {"save_every": spec["eval"]["every"]}
            file.write_text(json.dumps({"backend": "fast", "run_name": "timed", **config}))
            (folder / "rlx.toml").touch()
            listed = ",".join(map(str, seeds)) + ","
            argv = [sys.executable, "-m", "rlx", "train", str(file), "--seeds", listed]
            return Command(argv, folder, {"RLX_ROOT": str(folder)})
        evals = {**spec["eval"], "report_episodes": REPORT_EPISODES}
        file.write_text(json.dumps({**spec, "eval": evals, "seed": seeds[0]}))
        script = ["cleanrl_style.py"] if name == "cleanrl-style" else ["peer_train.py", name]
        argv = [self._pythons[name], RIG / script[0], *script[1:], file, folder]
        return Command([str(word) for word in argv], folder, {})


def timed(contest: Contest, name: str, task: Timed, repeats: int) -> list[list[str]]:
    """Run every contestant `repeats` times in turn and return the task's rows."""
    names = [one for one in contest.names if task.others or one in ("fast", "sb3")]
    costs: dict[str, list[Cost]] = {one: [] for one in names}
    for _ in range(repeats):
        for one in names:
            costs[one].append(cost([contest.command(one, task.spec)]))
    ours = costs["fast"]
    return [_row(name, one, task, costs[one], ours) for one in names]


def _row(name: str, contestant: str, task: Timed, theirs: list[Cost], ours: list[Cost]) -> list[str]:
    cpu, wall = ([getattr(one, kind) for one in theirs] for kind in ("cpu", "wall"))
    ratios = [_ratios(theirs, ours, kind) if contestant != "fast" else "" for kind in ("cpu", "wall")]
    if contestant != "fast" and not has_passed(task.gate):
        ratios = ["gate open", "gate open"]
    limit = f"{env_seconds(task) / statistics.median(cpu):.0%}" if contestant == "fast" else ""
    return [name, contestant, _range(cpu), _range(wall), *ratios, limit]


def _range(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _ratios(theirs: list[Cost], ours: list[Cost], kind: str) -> str:
    ratios = [getattr(a, kind) / getattr(b, kind) for a, b in zip(theirs, ours, strict=True)]
    return f"{statistics.median(ratios):.1f}× ({min(ratios):.1f}–{max(ratios):.1f})"


def has_passed(gate: str) -> bool:
    """Say whether a task passed every gate of its that is decided, the mean gate among them."""
    found = [learning.judgement(gate, one) for one in learning.TASKS[gate].gates]
    return learning.judgement(gate, MEAN) is not None and all(one.passed for one in found if one)


def env_seconds(task: Timed) -> float:
    """Return the CPU seconds of stepping the training's vector environment alone, random actions drawn before."""
    from rlx.config.schema import Env
    from rlx.envs.vector import make_vector

    env = make_vector(Env.model_validate(task.spec["env"]), root=Path.cwd())
    try:
        env.reset(seed=0)
        env.action_space.seed(0)
        actions = [env.action_space.sample() for _ in range(task.steps // env.num_envs)]
        start = time.process_time()
        for action in actions:
            env.step(action)
        return time.process_time() - start
    finally:
        env.close()


def growth(contest: Contest, times: Sequence[int]) -> list[list[str]]:
    """Return what `fast` costs for so many times the steps and the seeds: CPU seconds, and each a unit."""
    task = TASKS["CartPole, 8 envs"]
    rows = []
    for factor in times:
        longer = Timed(task.gate, task.steps * factor)
        steps = cost([contest.command("fast", longer.spec)]).cpu
        seeds = cost([contest.command("fast", task.spec, seeds=range(factor))]).cpu
        rows.append([f"{factor}×", f"{steps:.2f}", f"{steps / factor:.2f}", f"{seeds:.2f}", f"{seeds / factor:.2f}"])
    return rows


def ten_seeds(contest: Contest, steps: int) -> list[list[str]]:
    """Return the wall time of ten CartPole seeds on two cores: one `rlx train`, ten SB3 scripts two at a time."""
    spec = Timed("cartpole", steps).spec
    ours = cost([contest.command("fast", spec, seeds=range(10))])
    theirs = cost([contest.command("sb3", spec, seeds=[100 * seed]) for seed in range(10)], at_once=2)
    ratio = f"{theirs.wall / ours.wall:.1f}×" if has_passed("cartpole") else "gate open"
    return [
        ["fast", f"{ours.wall:.1f}", f"{ours.cpu:.1f}", ""],
        ["sb3", f"{theirs.wall:.1f}", f"{theirs.cpu:.1f}", ratio],
    ]


def worlds(contest: Contest, seeds: int = 32) -> list[list[str]]:
    """Return the CPU seconds a seed of CartPole as arrays, many seeds in one run, and of one SB3 seed of CartPole."""
    spec = Timed("cartpole", 51_200).spec
    batched = {**spec, "env": {**spec["env"], "id": "carts.py:Carts"}}
    command = contest.command("fast", batched, seeds=range(seeds))
    shutil.copy(RIG / "carts.py", command.cwd)
    ours = cost([command]).cpu / seeds
    theirs = cost([contest.command("sb3", spec)]).cpu
    ratio = f"{theirs / ours:.1f}×" if has_passed("cartpole") else "gate open"
    return [["fast", str(seeds), f"{ours:.2f}", ""], ["sb3", "1", f"{theirs:.2f}", ratio]]


def report(tables: list[tuple[str, list[str], list[list[str]]]], repeats: int) -> str:
    """Return the tables as Markdown, with date and versions."""
    packages = ("gymnasium", "numpy", "stable-baselines3", "torch")
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    lines = [HEADER, f"{time.strftime('%Y-%m-%d', time.gmtime())}, {repeats} repeats, {versions}."]
    for title, header, rows in tables:
        lines += ["", f"## {title}", "", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = peers.parser(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one repeat, no growth, no ten seeds")
    args = parser.parse_args()
    repeats = 1 if args.quick else args.repeats
    with tempfile.TemporaryDirectory() as place:
        contest = Contest(Path(place), peers.Peers(args.peers))
        if "sbx" not in contest.names:
            print("sbx is not installed")
        header = ["task", "contestant", "CPU s", "wall s", "CPU ratio", "wall ratio", "env stepping alone"]
        rows = [row for name in args.tasks for row in timed(contest, name, TASKS[name], repeats)]
        tables = [("Whole trainings", header, rows)]
        if not args.quick:
            header = ["size", "CPU s, steps", "a unit", "CPU s, seeds", "a unit"]
            tables.append(("`fast` on CartPole: more steps, more seeds", header, growth(contest, (1, 4, 16))))
            header = ["contestant", "wall s", "CPU s", "wall ratio"]
            tables.append(("Ten seeds of CartPole, 50,000 steps, on two cores", header, ten_seeds(contest, 50_000)))
            header = ["contestant", "seeds", "CPU s a seed", "ratio"]
            tables.append(("CartPole's dynamics as arrays, 51,200 steps", header, worlds(contest)))
    for title, header, rows in tables:
        measure.show(title, header, rows)
    if not args.quick and args.tasks == list(TASKS):
        TABLE.write_text(report(tables, repeats), encoding="utf-8")


if __name__ == "__main__":
    main()
