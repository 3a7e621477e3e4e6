"""Write a run's metrics as CSV or TensorBoard event files, or its policies as Stable-Baselines3 opens them.

CSV has one row a seed and step, TensorBoard one folder a seed. SB3 gets one .zip a seed, written by its own `save`
(PPO.load, MaskablePPO.load, …), and where observations are normalised a VecNormalize file beside it.

Example: rlx export cartpole_ppo_001 --to csv --out metrics.csv
         rlx export cartpole_ppo_001:best --to sb3 --out policies
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rlx.errors import NotFound, UsageError
from rlx.runs import project
from rlx.runs.run import Run, find

if TYPE_CHECKING:
    from collections.abc import Iterable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN[:CHECKPOINT]", help="a run; for sb3 also RUN:best (latest)")
    parser.add_argument("--to", choices=("csv", "tensorboard", "sb3"), required=True, help="the format")
    where = "a file for csv (- prints it), a folder for the others; default: in the run's folder"
    parser.add_argument("--out", type=Path, metavar="PATH", help=where)
    parser.add_argument("--seed", type=int, metavar="K", help="for sb3: only this training seed (all)")


def run(args: argparse.Namespace) -> dict[str, Any] | None:
    if args.to == "sb3":
        return _to_sb3(args.run, args.out, seed=args.seed)
    if args.seed is not None:
        raise UsageError("--seed goes with --to sb3", hint=f"every row of the {args.to} names its seed")
    found = find(args.run, root=project.root())
    names = found.metric_names()
    if not names:
        raise NotFound(f"{found.name} has logged no metrics yet", hint=f"rlx info {found.name}")
    if args.to == "tensorboard":
        return _to_tensorboard(found, args.out or found.path / "export" / "tensorboard")
    if args.out == Path("-"):
        _write_csv(found, names, sys.stdout)
        return None
    return _to_csv(found, names, args.out or found.path / "export" / f"{found.name}.csv")


def _to_csv(found: Run, names: list[str], out: Path) -> dict[str, Any]:
    if out.is_dir():
        raise UsageError(f"{out} is a folder", hint=f"--out {out / found.name}.csv")
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as stream:
            count = _write_csv(found, names, stream)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return {
        "run": found.name,
        "to": "csv",
        "path": str(out),
        "rows": count,
        "columns": ["seed", "step", "time", *names],
    }


def _write_csv(found: Run, names: list[str], stream: IO[str]) -> int:
    import csv

    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["seed", "step", "time", *names])
    count = 0
    for cells in _cells(found, names):
        writer.writerow(cells)
        count += 1
    return count


def _cells(found: Run, names: list[str]) -> Iterator[Iterable[object]]:
    """Yield the rows that count; NaN and infinity as `nan` and `inf`, which every reader of CSV knows."""
    from rlx import files

    for seed in found.seeds:
        for row in seed.rows:
            values = (row.get(name) for name in names)
            shown = [files.number(value) if files.is_number(value) else value for value in values]
            yield [seed.number, row["step"], row["time"], *("" if value is None else value for value in shown)]


def _to_tensorboard(found: Run, out: Path) -> dict[str, Any]:
    from rlx import files
    from rlx.runs.tensorboard import EventWriter

    rows = 0
    for seed in found.seeds:
        folder = out / found.name / f"seed_{seed.number}"
        for old in folder.glob("events.out.tfevents.*"):  # an export replaces the one before
            old.unlink()
        writer = EventWriter(folder)
        for row in seed.rows:
            values = {name: files.number(value) for name, value in row.items()
                      if name not in ("step", "time") and files.is_number(value)}  # fmt: skip
            writer.write(row["step"], values, wall_time=row["time"])
            rows += 1
        writer.close()
    return {"run": found.name, "to": "tensorboard", "path": str(out), "rows": rows}


def _to_sb3(text: str, out: Path | None, *, seed: int | None) -> dict[str, Any]:
    from rlx.runs import checkpoint
    from rlx.runs.reference import resolve
    from rlx.train.backends.sb3 import export

    reference = resolve(text, project.root())
    folder = out or (reference.run.path / "export" / "sb3" if reference.run else Path("sb3"))
    if folder.is_file():
        raise UsageError(f"{folder} is a file", hint=f"--out {folder.parent}, a folder: there is a file a seed")
    rows = []
    for number, path in reference.checkpoints(default="latest", seed=seed).items():
        name = path.name if number is None else f"seed_{number}_{path.name}"
        loader, written = export(checkpoint.read(path, with_replay=False), folder / f"{name}.zip")
        rows.append({"seed": number, "checkpoint": path.name, "class": loader, "files": [str(one) for one in written]})
    return {"run": reference.run.name if reference.run else None, "to": "sb3", "path": str(folder), "policies": rows}


def _spell_policies(data: dict[str, Any]) -> str:
    lines = [f"policy: {file}" for row in data["policies"] for file in row["files"]]
    first = data["policies"][0]
    module, _, name = first["class"].partition(":")
    return "\n".join([*lines, f"""next: python -c 'from {module} import {name}; {name}.load("{first["files"][0]}")'"""])


def render(data: dict[str, Any]) -> str:
    if data["to"] == "sb3":
        return _spell_policies(data)
    lines = [f"{data['rows']:,} rows of {data['run']} as {data['to']}: {data['path']}"]
    if data["to"] == "tensorboard":
        lines.append(f"next: tensorboard --logdir {data['path']}")
    return "\n".join(lines)
