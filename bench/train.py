"""Measure the cost of training: `fast` against one-thread SB3, a CleanRL-style PPO and sbx.

    python bench/train.py [TASK ...] [--repeats 5] [--only TABLE] [--quick] [--peers VENV]

A training is what a user starts: import, environments, logging, periodic evaluation, checkpoints, and the evaluations
of the untrained and the final policy. `fast` runs through `rlx train`. The CleanRL-style script neither evaluates nor
saves. Every repeat runs each contestant once; the tables show medians and ranges. CPU seconds include all processes
that a training starts. A ratio is shown only if the task passed the learning gate (bench/learning.py). The script
writes bench/train.md table by table, and in the first table only the rows of the timed tasks. It takes about twenty
minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import learning
from rig import learners, measure, peers
from rig.cost import ONE_THREAD, Command, Cost, cost
from rig.gate import MEAN

from rlx import files

RIG = Path(__file__).parent / "rig"
TABLE = Path(__file__).parent / "train.md"
REPORT_EPISODES = 20
EVALUATIONS, EPISODES = 4, 5
FEWEST_REPEATS, FEW_REPEATS = 5, 3
"""Repeats of every stored table, and of the tables that take minutes (ten seeds, 32 seeds)."""
HEADER = """\
# What a training costs

For anyone who asks how fast rlx trains. Written by `python bench/train.py`. These are whole trainings on one thread,
with import, logging, evaluations and checkpoints. The CleanRL-style script has neither evaluations nor checkpoints.
Numbers are the median (range) of the repeats. The contestants take turns, each repeat with another seed.

- *Ratio*: the cost of the contestant divided by the cost of `fast` in the same repeat. It is shown only if `fast`
  passed the [learning gate](learning.md).
- *Steps played*: training and all evaluations, which last as long as the policies do. Only rlx also plays 20 episodes
  of the random policy.
- *Env stepping alone*: the share of `fast`'s CPU seconds that this many environment steps take.
- LunarLander's ratio to SB3 says more about evaluations than about training. In three seeds examined separately (on a
  busy machine, without imports), evaluations took 12.6 of 19.0, 13.2 of 18.6 and 3.8 of 9.1 of SB3's CPU seconds.
  Without them, the ratio would be about 3.
"""
PLACES = ("fast", "sb3", "cleanrl-style", "sbx")


@dataclass(frozen=True)
class Timed:
    """A task of the learning gate, at a size for timing."""

    gate: str
    steps: int
    num_envs: int | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The config of one training, and the additional settings of a peer."""
        task = learning.TASKS[self.gate]
        env = {**task.env, "num_envs": self.num_envs or task.env["num_envs"]}
        every = self.steps // EVALUATIONS
        algo = {**task.spec["algo"], "total_timesteps": self.steps}
        return {"env": env, "algo": algo, "eval": {"every": every, "episodes": EPISODES}, "seed": 0}


TASKS = {
    "CartPole, 8 envs": Timed("cartpole", 20_480),
    "CartPole, 32 envs": Timed("cartpole", 20_480, num_envs=32),
    "Acrobot, 16 envs": Timed("acrobot", 40_960),  # it learns nothing in 20,480
    "Pendulum, 8 envs": Timed("pendulum", 20_480),
    "LunarLander, 16 envs": Timed("lunar_lander", 20_480),
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
        """Return the command of one whole training in a fresh folder; rlx can train several seeds."""
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
    """Run every contestant `repeats` times in turn, each time on another seed, and return the task's rows."""
    costs: dict[str, list[Cost]] = {one: [] for one in contest.names}
    steps: dict[str, list[int]] = {one: [] for one in contest.names}
    for repeat in range(repeats):
        for one in contest.names:
            command = contest.command(one, task.spec, seeds=[learners.SPACING * repeat])
            costs[one].append(cost([command]))
            steps[one].append(task.steps + evaluated_steps(command.cwd))
        print(f"{name}:", ", ".join(f"{one} {costs[one][-1].cpu:.2f}" for one in contest.names), "CPU s", flush=True)
    return [_row(name, one, task, costs, steps) for one in contest.names]


def evaluated_steps(folder: Path) -> int:
    """Return the environment steps of the evaluations that a training left in its folder, with the random policy's."""
    ours = [files.read_json(file)["episodes"] for file in folder.glob("runs/*/eval/*/*.json")]
    theirs = folder / "evaluated.json"
    return sum(one["length"] for episodes in ours for one in episodes) + (
        sum(files.read_json(theirs)) if theirs.exists() else 0
    )


def _row(
    name: str, contestant: str, task: Timed, costs: Mapping[str, list[Cost]], steps: Mapping[str, list[int]]
) -> list[str]:
    theirs, ours = costs[contestant], costs["fast"]
    cpu, wall = ([getattr(one, kind) for one in theirs] for kind in ("cpu", "wall"))
    ratios = [_ratios(theirs, ours, kind) if contestant != "fast" else "" for kind in ("cpu", "wall")]
    if contestant != "fast" and not has_passed(task.gate):
        ratios = ["gate open", "gate open"]
    played = statistics.median(steps[contestant])
    share = env_seconds(task) * played / task.steps / statistics.median(cpu)
    limit = f"{share:.0%}" if contestant == "fast" else ""
    return [name, contestant, f"{played:,.0f}", _range(cpu), _range(wall), *ratios, limit]


def _range(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def _ratios(theirs: list[Cost], ours: list[Cost], kind: str) -> str:
    ratios = [getattr(a, kind) / getattr(b, kind) for a, b in zip(theirs, ours, strict=True)]
    return f"{statistics.median(ratios):.1f}× ({min(ratios):.1f}–{max(ratios):.1f})"


def has_passed(gate: str) -> bool:
    """Return whether a task passed all its decided gates, including the mean gate."""
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
    """Return the cost of `fast` for multiples of steps and seeds: CPU seconds, CPU seconds per unit, the env share."""
    task = TASKS["CartPole, 8 envs"]
    rows = []
    for factor in times:
        longer = Timed(task.gate, task.steps * factor)
        steps = cost([contest.command("fast", longer.spec)]).cpu
        seeds = cost([contest.command("fast", task.spec, seeds=range(factor))]).cpu
        limits = [f"{seconds / used:.0%}" for seconds, used in
                  ((env_seconds(longer), steps), (env_seconds(task) * factor, seeds))]  # fmt: skip
        rows.append([f"{factor}×", f"{steps:.2f}", f"{steps / factor:.2f}", limits[0],
                     f"{seeds:.2f}", f"{seeds / factor:.2f}", limits[1]])  # fmt: skip
    return rows


def ten_seeds(contest: Contest, steps: int, repeats: int) -> list[list[str]]:
    """Return the wall time of ten CartPole seeds on two cores: one `rlx train`, ten SB3 scripts two at a time."""
    spec = Timed("cartpole", steps).spec
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(cost([contest.command("fast", spec, seeds=range(10))]))
        theirs.append(cost([contest.command("sb3", spec, seeds=[100 * seed]) for seed in range(10)], at_once=2))
    walls, cpus = ([[getattr(one, kind) for one in side] for side in (ours, theirs)] for kind in ("wall", "cpu"))
    ratio = _ratios(theirs, ours, "wall") if has_passed("cartpole") else "gate open"
    return [["fast", _range(walls[0]), _range(cpus[0]), ""], ["sb3", _range(walls[1]), _range(cpus[1]), ratio]]


def same_weights(contest: Contest, steps: int) -> list[list[str]]:
    """Return how many of ten seeds have the same weights among ten as on one core, and as alone (every fifth)."""
    spec = Timed("cartpole", steps).spec
    among = weights(contest.command("fast", spec, seeds=range(10)))
    crowded = contest.command("fast", spec, seeds=range(10))
    on_one_core = weights(replace(crowded, argv=["taskset", "--cpu-list", "0", *crowded.argv]))
    alone = {seed: weights(contest.command("fast", spec, seeds=[seed]))[seed] for seed in (0, 4, 9)}
    others = (("ten on one core", on_one_core), ("alone", alone))
    return [[name, f"{sum(among[seed] == found[seed] for seed in found)} of {len(found)}"] for name, found in others]


def weights(command: Command) -> dict[int, str]:
    """Run a training of rlx and return a hash of every seed's last weights."""
    command.run()
    found = command.cwd.glob("runs/*/seed_*/checkpoints/latest/policy.safetensors")
    return {int(file.parts[-4].removeprefix("seed_")): files.sha256(file.read_bytes()) for file in found}


def worlds(contest: Contest, repeats: int, seeds: int = 32) -> list[list[str]]:
    """Return the CPU seconds per seed of CartPole as arrays, many seeds in one run, and of one SB3 seed of CartPole."""
    spec = Timed("cartpole", 51_200).spec
    batched = {**spec, "env": {**spec["env"], "id": "carts.py:Carts"}}
    ours, theirs = [], []
    for _ in range(repeats):
        command = contest.command("fast", batched, seeds=range(seeds))
        shutil.copy(RIG / "carts.py", command.cwd)
        ours.append(cost([command]))
        theirs.append(cost([contest.command("sb3", spec)]))
    each = [Cost(one.wall / seeds, one.cpu / seeds) for one in ours]
    ratio = _ratios(theirs, each, "cpu") if has_passed("cartpole") else "gate open"
    sides = (("fast", seeds, each), ("sb3", 1, theirs))
    rows = [[name, str(count), _range([one.cpu for one in side])] for name, count, side in sides]
    return [[*rows[0], ""], [*rows[1], ratio]]


def first_lines(contest: Contest, repeats: int) -> list[list[str]]:
    """Return the seconds from `rlx train` on CartPole to its first progress line, and to the first that has steps."""
    lines: list[list[float]] = [[], []]
    for _ in range(repeats):
        for times, took in zip(
            lines, _first_lines(contest.command("fast", Timed("cartpole", 20_480).spec)), strict=True
        ):
            times.append(took)
    return [[name, _range(times)] for name, times in zip(("first line", "first steps"), lines, strict=True)]


def _first_lines(command: Command) -> tuple[float, float]:
    start, first, stepped = time.perf_counter(), 0.0, 0.0
    environment = {**os.environ, **ONE_THREAD, **command.env}
    with subprocess.Popen(
        command.argv, cwd=command.cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        for line in process.stderr or ():
            if line.startswith("seed "):
                now = time.perf_counter() - start
                first = first or now
                stepped = stepped or (now if not line.split()[3].startswith("0/") else 0.0)
    cost([])  # waits for the supervisor, whose seconds would be counted to what comes next
    return first, stepped


TITLES = {
    "whole": "Whole trainings",
    "first": "Seconds after `rlx train` on CartPole",
    "growth": "`fast` on CartPole: more steps, more seeds",
    "ten": "Ten seeds of CartPole, 50,000 steps, on two cores",
    "worlds": "CartPole's dynamics as arrays, 51,200 steps",
    "weights": "Same weights, trained together and separately",
}
HEADERS = {
    "whole": ["task", "contestant", "steps played", "CPU s", "wall s", "CPU ratio", "wall ratio", "env stepping alone"],
    "first": ["what", "wall s"],
    "growth": ["size", "CPU s, steps", "per unit", "env share", "CPU s, seeds", "per unit", "env share"],
    "ten": ["contestant", "wall s", "CPU s", "wall ratio"],
    "worlds": ["contestant", "seeds", "CPU s per seed", "ratio"],
    "weights": ["trained", "seeds with identical weights"],
}


def rows_of(part: str, contest: Contest, tasks: Sequence[str], repeats: int) -> list[list[str]]:
    """Measure one table."""
    few = min(repeats, FEW_REPEATS)
    measured = {
        "whole": lambda: [row for name in tasks for row in timed(contest, name, TASKS[name], repeats)],
        "first": lambda: first_lines(contest, repeats),
        "growth": lambda: growth(contest, (1, 4, 16)),
        "ten": lambda: ten_seeds(contest, 50_000, few),
        "worlds": lambda: worlds(contest, few),
        "weights": lambda: same_weights(contest, 50_000),
    }
    return measured[part]()


def section(part: str, rows: list[list[str]], repeats: int, note: str) -> str:
    """Return a table as Markdown, with date, versions and a note on the measurement."""
    packages = ("gymnasium", "numpy", "stable-baselines3", "torch")
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    count = {"whole": repeats, "first": repeats, "ten": FEW_REPEATS, "worlds": FEW_REPEATS}.get(part, 1)
    header = HEADERS[part]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    made = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {count} repeat{'s' * (count > 1)}, {versions}. {note}"
    return "\n".join([f"## {TITLES[part]}", "", *lines, "", made.rstrip(), ""])


def write(part: str, text: str) -> None:
    """Put a table into the file in place of its last measurement."""
    known = _sections()
    known[TITLES[part]] = text
    TABLE.write_text("\n".join([HEADER, *(known[one] for one in TITLES.values() if one in known)]), encoding="utf-8")


def with_others(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows of whole trainings with those the file has of other tasks, in the order of the tasks."""
    lines = [line for line in _sections().get(TITLES["whole"], "").splitlines() if line.startswith("| ")]
    old = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]
    measured = {row[0] for row in rows}
    padded = [row + [""] * (len(HEADERS["whole"]) - len(row)) for row in old if row[0] not in measured]
    order = list(TASKS)
    return sorted([*rows, *padded], key=lambda row: order.index(row[0]) if row[0] in order else len(order))


def _sections() -> dict[str, str]:
    old = TABLE.read_text(encoding="utf-8").split("\n## ")[1:] if TABLE.exists() else []
    return {title: f"## {each.rstrip()}\n" for title in TITLES.values() for each in old if each.startswith(title)}


def main() -> None:
    parser = peers.parser(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=list(TITLES), action="append", help="this table, not all of them")
    parser.add_argument("--note", default="", help="a note on the measurement, written below its tables")
    parser.add_argument("--quick", action="store_true", help="one repeat of whole trainings, nothing is written")
    args = parser.parse_args()
    repeats = 1 if args.quick else args.repeats
    is_written = not args.quick and repeats >= FEWEST_REPEATS
    with tempfile.TemporaryDirectory() as place:
        contest = Contest(Path(place), peers.Peers(args.peers))
        if "sbx" not in contest.names:
            print("sbx is not installed")
        for part in args.only or (["whole"] if args.quick else TITLES):
            rows = rows_of(part, contest, args.tasks, repeats)
            measure.show(TITLES[part], HEADERS[part], rows)
            if is_written:
                whole = with_others(rows) if part == "whole" else rows
                write(part, section(part, whole, repeats, args.note))


if __name__ == "__main__":
    main()
