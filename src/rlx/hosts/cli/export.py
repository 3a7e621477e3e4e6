"""Write a run's metrics for other tools, its policies as Stable-Baselines3 or ONNX files, or a dataset of episodes.

Metrics: csv and parquet have one row per seed and step, tensorboard one folder per seed, wandb offline runs and mlflow
an SQLite store with one run per seed. Nothing is sent anywhere. Policies: sb3 writes one .zip per seed with SB3's own
`save`, and a VecNormalize file if observations are normalised. onnx writes one model per seed with the normaliser and
the action mapping inside, a contract (order, names and scale of the observations, actions, control rate, hashes), and
1,000 observations with the trained policy's actions. --verify compares a model with them and exits with 6 if one action
differs by more than 1e-5, or if the observations are in another order. dataset (.npz) holds new episodes for offline
learning: the policies of all seeds play in turn, and --random makes that share of the actions random.

Example: rlx export cartpole_ppo_001 --to csv --out metrics.csv
         rlx export cartpole_ppo_001:best --to sb3 --out policies
         rlx export walk_001:best --to onnx --names height,pitch,speed --control-hz 50
         rlx export cartpole_ppo_001 --to dataset --episodes 100 --random 0.3 --out data/mixed.npz
         rlx export --verify runs/walk_001/export/onnx/seed_0_best.onnx
"""

import sys
from pathlib import Path
from typing import IO

from rlx.errors import EvidenceInvalid, NotFound, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, find_run, obey_trust
from rlx.hosts.cli.format import figure
from rlx.hosts.cli.output import exit_code_if
from rlx.runs import project
from rlx.runs.run import Run

TABLES = ("csv", "parquet", "tensorboard", "wandb", "mlflow")
POLICIES = ("sb3", "onnx", "dataset")
EPISODES = 50


def arguments(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN[:CHECKPOINT]", help="a run; for policies also RUN:best")
    parser.add_argument("--to", choices=(*TABLES, *POLICIES), help="the format")
    where = "a file for csv (- prints it) and parquet, a folder for the others (default: in the run's folder)"
    parser.add_argument("--out", type=Path, metavar="PATH", help=where)
    parser.add_argument("--seed", type=int, metavar="K", help="for policies: only this training seed (default: all)")
    parser.add_argument("--episodes", type=int, metavar="N", help=f"for dataset: episodes (default: {EPISODES})")
    share = "for dataset: share of random actions (default: 0)"
    parser.add_argument("--random", type=float, metavar="SHARE", help=share)
    parser.add_argument("--names", metavar="A,B,…", help="for onnx: the names of the observation's numbers, in order")
    parser.add_argument("--control-hz", type=float, metavar="HZ", help="for onnx: actions per second on the robot")
    parser.add_argument("--verify", type=Path, metavar="FILE", help="compare an exported .onnx file with its contract")
    help_text = "for --verify: recorded observations (.npz with observation, action, names)"
    parser.add_argument("--observations", type=Path, metavar="FILE", help=help_text)
    add_trust(parser)


def run(args: Args) -> Data | None:
    obey_trust(args)
    if args.verify is not None:
        return _verified(args)
    if args.run is None or args.to is None:
        raise UsageError("name a run and a format", hint="rlx export RUN --to csv; or rlx export --verify FILE.onnx")
    if args.to == "dataset":
        return _to_dataset(args)
    if args.episodes is not None or args.random is not None:
        raise UsageError("--episodes and --random go with --to dataset", hint=f"rlx export {args.run} --to dataset")
    if args.to == "sb3":
        return _to_sb3(args.run, args.out, seed=args.seed)
    if args.to == "onnx":
        return _to_onnx(args)
    if args.seed is not None:
        raise UsageError("--seed goes with --to sb3 and onnx", hint=f"every row of the {args.to} names its seed")
    run = find_run(args.run)
    if not run.metric_names():
        raise NotFound(f"{run.name} has logged no metrics yet", hint=f"rlx info {run.name}")
    folder = run.path / "export"
    if args.to == "tensorboard":
        return _to_tensorboard(run, args.out or folder / "tensorboard")
    if args.to != "csv":
        return _to_tool(run, args.to, args.out or folder / {"parquet": f"{run.name}.parquet"}.get(args.to, args.to))
    if args.out == Path("-"):
        _write_csv(run, sys.stdout)
        return None
    return _to_csv(run, args.out or folder / f"{run.name}.csv")


def _to_tool(run: Run, name: str, out: Path) -> Data:
    """Write a run with the library of another tool."""
    from rlx.plugins import EXPORTERS, load

    if name == "parquet" and out.is_dir():
        raise UsageError(f"{out} is a folder", hint=f"--out {out / run.name}.parquet")
    if name != "parquet" and out.is_file():
        raise UsageError(f"{out} is a file", hint=f"--out {out.parent}")
    rows = load(EXPORTERS, name, kind="exporter")(run, out)
    return {"run": run.name, "to": name, "path": str(out), "rows": rows}


def _to_onnx(args: Args) -> Data:
    from rlx.evaluate.onnx.deploy_contract import DeployWishes, export_onnx
    from rlx.runs.checkpoints import checkpoint
    from rlx.runs.run_reference import resolve

    reference = resolve(args.run, project.root())
    folder = args.out or Path("onnx")
    if reference.run and not args.out:
        folder = reference.run.path / "export" / "onnx"
    if folder.is_file():
        raise UsageError(f"{folder} is a file", hint=f"--out {folder.parent}: rlx writes one model per seed")
    names = tuple(name.strip() for name in (args.names or "").split(",") if name.strip())
    rows = []
    for number, path in reference.checkpoints(default="latest", seed=args.seed).items():
        stem = path.name if number is None else f"seed_{number}_{path.name}"
        source = stem
        if reference.run:
            source = f"{reference.run.name}/{stem}"
        wishes = DeployWishes(names, args.control_hz, source)
        proof = export_onnx(checkpoint.read(path, with_replay=False), folder / f"{stem}.onnx", wishes)
        rows.append({"seed": number, "checkpoint": path.name, **proof})
    is_bad = any(row["problems"] for row in rows)
    data = {"run": reference.run and reference.run.name, "to": "onnx", "path": str(folder), "policies": rows}
    return {**data, "exit_code": exit_code_if(is_bad, EvidenceInvalid)}


def _verified(args: Args) -> Data:
    from rlx.evaluate.onnx.deploy_contract import verify

    proof = verify(args.verify, args.observations)
    return {"to": "verify", "policies": [proof], "exit_code": exit_code_if(not proof["is_equal"], EvidenceInvalid)}


def _to_csv(run: Run, out: Path) -> Data:
    from rlx import files

    if out.is_dir():
        raise UsageError(f"{out} is a folder", hint=f"--out {out / run.name}.csv")
    with files.replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        count = _write_csv(run, stream)
    columns = ["seed", "step", "time", *run.metric_names()]
    return {"run": run.name, "to": "csv", "path": str(out), "rows": count, "columns": columns}


def _write_csv(run: Run, stream: IO[str]) -> int:
    import csv

    names = run.metric_names()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["seed", "step", "time", *names])
    count = 0
    for seed in run.seeds:
        for row in seed.rows:
            writer.writerow([seed.number, row["step"], row["time"], *(_cell(row.get(name)) for name in names)])
            count += 1
    return count


def _cell(value: object) -> object:
    """Return a cell of a CSV file; NaN and infinity become `nan` and `inf`, which every CSV reader knows."""
    from rlx import files

    if value is None:
        return ""
    if files.is_number(value):
        return files.number(value)
    return value


def _to_tensorboard(run: Run, out: Path) -> Data:
    from rlx import files
    from rlx.runs.tensorboard_writer import EventWriter

    count = 0
    for seed in run.seeds:
        folder = out / run.name / f"seed_{seed.number}"
        for old in folder.glob("events.out.tfevents.*"):  # an export replaces the one before
            old.unlink()
        writer = EventWriter(folder)
        for row in seed.rows:
            values = {name: files.number(value) for name, value in row.items()
                      if name not in ("step", "time") and files.is_number(value)}  # fmt: skip
            writer.write(row["step"], values, wall_time=row["time"])
            count += 1
        writer.close()
    return {"run": run.name, "to": "tensorboard", "path": str(out), "rows": count}


def _to_sb3(text: str, out: Path | None, *, seed: int | None) -> Data:
    from rlx.runs.checkpoints import checkpoint
    from rlx.runs.run_reference import resolve
    from rlx.train.backends.sb3.sb3_trainer import export

    reference = resolve(text, project.root())
    folder = out or Path("sb3")
    if reference.run and not out:
        folder = reference.run.path / "export" / "sb3"
    if folder.is_file():
        raise UsageError(f"{folder} is a file", hint=f"--out {folder.parent}: rlx writes one file per seed")
    rows = []
    for number, path in reference.checkpoints(default="latest", seed=seed).items():
        name = path.name if number is None else f"seed_{number}_{path.name}"
        loader, written = export(checkpoint.read(path, with_replay=False), folder / f"{name}.zip")
        rows.append({"seed": number, "checkpoint": path.name, "class": loader, "files": list(map(str, written))})
    return {"run": reference.run and reference.run.name, "to": "sb3", "path": str(folder), "policies": rows}


def _to_dataset(args: Args) -> Data:
    """Record new episodes of a run's policies."""
    from rlx.runs.run_reference import resolve
    from rlx.train.episode_dataset import record_policies

    episodes = EPISODES if args.episodes is None else args.episodes
    share = args.random or 0.0
    if episodes < 1 or not 0 <= share <= 1:
        raise UsageError("--episodes must be at least 1, and --random between 0 and 1", hint="--random 0.3")
    reference = resolve(args.run, project.root())
    paths = list(reference.checkpoints(default="latest", seed=args.seed).values())
    data = record_policies(paths, root=project.tree(), episodes=episodes, random_share=share)
    name = reference.run.name if reference.run else None
    out = args.out or Path("data") / f"{name or 'episodes'}.npz"
    out.parent.mkdir(parents=True, exist_ok=True)
    data.save(out)
    mean = float(data.returns().mean())
    return {"run": name, "to": "dataset", "path": str(out), "episodes": data.episodes, "steps": data.steps,
            "mean_return": mean, "policies": len(paths), "random": share}  # fmt: skip


def render(data: Data) -> str:
    if data["to"] == "dataset":
        what = f"{data['episodes']:,} episodes ({data['steps']:,} steps) of {data['policies']} policies"
        return (
            f"{what}, mean return {figure(data['mean_return'])}: {data['path']}\nnext: rlx docs guides/data-and-teams"
        )
    if data["to"] == "sb3":
        return _policies(data["policies"])
    if data["to"] in ("onnx", "verify"):
        return _models(data)
    text = f"{data['rows']:,} rows of {data['run']} as {data['to']}: {data['path']}"
    if data["to"] == "tensorboard":
        text += f"\nnext: tensorboard --logdir {data['path']}"
    return text


def _policies(policies: list[Data]) -> str:
    lines = [f"policy: {file}" for policy in policies for file in policy["files"]]
    module, _, name = policies[0]["class"].partition(":")
    load = f'{name}.load("{policies[0]["files"][0]}")'
    return "\n".join([*lines, f"next: python -c 'from {module} import {name}; {load}'"])


def _models(data: Data) -> str:
    lines = []
    for proof in data["policies"]:
        lines.append(f"model: {proof['model']}")
        lines.append(f"contract: {proof['contract']}")
        if proof["is_equal"]:
            amount = f"largest difference {proof['largest_difference']:.2g} on {proof['rows']:,} observations"
            lines.append(f"verified: {amount} (limit {proof['limit']:g})")
        lines += [f"problem: {problem}" for problem in proof["problems"]]
    if data["to"] == "onnx":
        lines.append(f"next: rlx export --verify {data['policies'][0]['model']}")
    return "\n".join(lines)
