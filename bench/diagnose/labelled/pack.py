"""Pack a run into one small line, and unpack it: everything that a diagnosis reads, in columns of three digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelled.cases import Case
from rlx import files
from rlx.config.load import dump, parse
from rlx.runs.run import METADATA, SNAPSHOT, Run

LEFT_OUT = ("time", "time/memory_mb", "time/cpu_seconds")
FIGURES = ("n", "mean", "std", "length_mean", "success_rate")
ENDS = ("event", "step", "reason")


def pack(case: Case, run: Run, *, score: float) -> dict[str, Any]:
    """Return the stored part of a training."""
    seed = run.seeds[0]
    evaluations = [_evaluation(one, seed.number) for one in run.evaluations()]
    return {
        "case": case.name,
        "plan": case.plan,
        "score": _rounded(score),
        "rows": _columns([{key: row[key] for key in row if key not in LEFT_OUT} for row in seed.rows]),
        "evaluations": _columns(sorted(evaluations, key=lambda one: (one["step"] or 0, one["name"]))),
        "wrappers": _measured(run),
        "end": {key: value for key, value in seed.events[-1].items() if key in ENDS},
    }


def _evaluation(document: Mapping[str, Any], seed: int) -> dict[str, Any]:
    name = document["name"].removeprefix(f"seed_{seed}_")
    kept = {key: document.get(key) for key in ("purpose", "step", *FIGURES)}
    return {"name": name, **kept}


def _measured(run: Run) -> Any:
    """Return the wrappers of the evaluation environment, which may be fewer than the training's."""
    return run.evaluations()[0]["protocol"]["env"]["wrappers"]


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a table by columns; a column that never changes is its one value."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [_rounded(row.get(name)) for row in rows] for name in names}
    return {name: column[0] if _is_constant(column) else column for name, column in columns.items()}


def _is_constant(column: Sequence[Any]) -> bool:
    return len(column) > 1 and all(value == column[0] for value in column)


def _rounded(value: Any) -> Any:
    if isinstance(value, float) and value - value == 0:
        short = float(f"{value:.3g}")
        return int(short) if short.is_integer() and abs(short) < 1e12 else short
    return value


def unpack(row: Mapping[str, Any], case: Case, root: Path) -> Run:
    """Write a run's folder from its stored part."""
    experiment = parse({**case.config, "run_name": "case", "seed": case.seed})
    folder = root / "runs" / "case_001"
    seed = folder / f"seed_{case.seed}"
    seed.mkdir(parents=True)
    (folder / SNAPSHOT).write_text(dump(experiment), encoding="utf-8")
    files.write_json(folder / METADATA, {
        "schema": 1, "name": folder.name, "env": experiment.env.id, "algorithm": experiment.algo.name,
        "backend": experiment.backend, "total_timesteps": experiment.algo.total_timesteps,
    })  # fmt: skip
    _write_lines(seed / "metrics.jsonl", _rows(row["rows"]))
    evaluations = _rows(row["evaluations"])
    told = [
        {"event": "evaluated", "time": 0.0, "step": one["step"], "mean": one["mean"]}
        for one in evaluations
        if one["purpose"] == "selection"
    ]
    _write_lines(seed / "events.jsonl", [{"event": "started", "time": 0.0}, *told, {"time": 0.0, **row["end"]}])
    measured = {"id": experiment.env.id, "kwargs": experiment.env.kwargs, "wrappers": row["wrappers"]}
    for one in evaluations:
        _write_evaluation(folder, one, case.seed, measured)
    return Run(folder)


def _write_evaluation(folder: Path, one: dict[str, Any], seed: int, env: Mapping[str, Any]) -> None:
    is_random = one["name"] == "random"
    name = one.pop("name") if is_random else f"seed_{seed}_{one.pop('name')}"
    path = folder / "eval" / f"{one['purpose']}" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    whose = {} if is_random else {"seed": seed}
    protocol = {"deterministic": True, "env": env}
    files.write_json(path, {"schema": 1, **one, **whose, "protocol": protocol})


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table; cells that were missing stay missing."""
    count = max((len(column) for column in columns.values() if isinstance(column, list)), default=1)
    full = {name: column if isinstance(column, list) else [column] * count for name, column in columns.items()}
    return [{name: full[name][at] for name in full if full[name][at] is not None} for at in range(count)]


def _write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_bytes(b"".join(files.encode(row) + b"\n" for row in rows))
