"""Write a run's metrics as CSV (one row a seed and step) or as TensorBoard event files (one folder a seed).

Example: rlx export cartpole_ppo_001 --to csv --out metrics.csv
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
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--to", choices=("csv", "tensorboard"), required=True, help="the format")
    where = "a file for csv (- prints it), a folder for tensorboard; default: in the run's folder"
    parser.add_argument("--out", type=Path, metavar="PATH", help=where)


def run(args: argparse.Namespace) -> dict[str, Any] | None:
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


def render(data: dict[str, Any]) -> str:
    lines = [f"{data['rows']:,} rows of {data['run']} as {data['to']}: {data['path']}"]
    if data["to"] == "tensorboard":
        lines.append(f"next: tensorboard --logdir {data['path']}")
    return "\n".join(lines)
