"""Import finished runs of other tools: group their seeds, and store them as runs that rlx can read and never trains."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files, plugins
from rlx.adopt.importers.foreign_run import SEED_KEYS, ForeignRun, Importer
from rlx.config.defaults import slug
from rlx.errors import NotFound, UsageError
from rlx.runs import run as runs
from rlx.runs import store
from rlx.runs.metrics import MetricsWriter
from rlx.runs.readers.metric_dialects import dialect_of, with_rlx_names
from rlx.runs.run import IMPORTED_BACKEND, Run

FORMATS = tuple(plugins.IMPORTERS)
MOST_RUNS = 5000
MOST_NAMES = 2000


@dataclass
class ImportReport:
    """The result of an import."""

    format: str
    created: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    """Runs that an earlier import made from the same content."""
    seeds: int = 0
    empty: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def importer(name: str) -> Importer:
    """Import and create the importer with this name."""
    created: Importer = plugins.load(plugins.IMPORTERS, name, kind="format")()
    return created


def import_path(
    path: Path, *, root: Path, format_name: str | None = None, progress: Callable[[str], None] | None = None
) -> ImportReport:
    """Import what is at a path. Importing the same content again changes nothing."""
    if not path.exists():
        raise NotFound(f"no file or folder {path}", hint="rlx import PATH")
    name = format_name or detect(path)
    chosen = importer(name)
    if format_name and not chosen.claims(path):
        raise UsageError(f"{path} has no {name} data", hint=f"let rlx choose the format: rlx import {path}")
    report = ImportReport(name)
    foreign = []
    for run in _bounded(chosen.read(path)):
        if progress:
            progress(f"read {run.source}: {len(run.points)} rows")
        report.notes += [f"{run.source}: {note}" for note in run.notes]
        if run.points:
            foreign.append(run)
        else:
            report.empty.append(run.source)
    known = _imported(root)
    for group in grouped(foreign):
        _store_group(group, name, path, root, known, report)
    return report


def detect(path: Path) -> str:
    """Return the first format that claims a path."""
    for name in plugins.IMPORTERS:
        if importer(name).claims(path):
            return name
    raise UsageError(f"{path} has no data of a known format", hint=f"known formats: {', '.join(plugins.IMPORTERS)}")


def _bounded(foreign: Iterable[ForeignRun]) -> Iterator[ForeignRun]:
    for count, run in enumerate(foreign):
        if count >= MOST_RUNS:
            return
        yield run


def grouped(foreign: Iterable[ForeignRun]) -> list[list[ForeignRun]]:
    """Return runs that differ only in the seed together; a seed that a group has already starts another group."""
    groups: dict[str, list[list[ForeignRun]]] = {}
    for run in foreign:
        key = files.sha256(files.encode([run.name, _without_seed(run.config)]))
        candidates = groups.setdefault(key, [])
        group = next((one for one in candidates if _fits(run, one)), None)
        if group is None:
            candidates.append([run])
        else:
            group.append(run)
    return [group for candidates in groups.values() for group in candidates]


def _fits(run: ForeignRun, group: list[ForeignRun]) -> bool:
    """Return whether a run is another seed of a group; runs without a known seed stay apart."""
    return run.seed is not None and all(one.seed is not None and one.seed != run.seed for one in group)


def _without_seed(config: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in config.items():
        if key in (*SEED_KEYS, "run_name", "log_dir", "exp_name"):
            continue
        if isinstance(value, dict):
            value = _without_seed(value)
        plain[key] = value
    return plain


def _imported(root: Path) -> dict[str, str]:
    """Return the contents that were imported before, with the runs that hold them."""
    known = {}
    for name in runs.names(root):
        try:
            imported = (Run(root / "runs" / name).metadata.get("imported") or {}).get("sha256")
        except (OSError, ValueError, AttributeError):
            continue
        if imported:
            known[str(imported)] = name
    return known


def _digest(group: list[ForeignRun], format_name: str) -> str:
    content = [
        [
            run.seed,
            run.name,
            _without_seed(run.config),
            run.state,
            [[point.step, dict(point.values)] for point in run.points],
        ]
        for run in group
    ]
    return files.sha256(files.encode([format_name, content]))


def _store_group(
    group: list[ForeignRun], format_name: str, path: Path, root: Path, known: dict[str, str], report: ImportReport
) -> None:
    digest = _digest(group, format_name)
    if digest in known:
        report.present.append(known[digest])
        return
    first = group[0]
    seeds = {run.seed if run.seed is not None else 0: run for run in group}
    name = slug(first.name) or "imported"
    config = {"run_name": name, **_jsonable(first.config)}
    if not first.config:  # the name is all that tells two such runs apart, so `compare` must see it
        config["experiment"] = first.name
    imported = {
        "format": format_name, "path": str(path), "sha256": digest, "sources": [run.source for run in group],
        "lineage": _jsonable(first.lineage), "notes": [note for run in group for note in run.notes],
    }  # fmt: skip
    metadata = {
        "env": _env(first.config), "algorithm": _algorithm(first.config, format_name), "backend": IMPORTED_BACKEND,
        "total_timesteps": max(run.points[-1].step for run in group), "config_hash": files.sha256(files.encode(config)),
        "group_hash": files.sha256(files.encode(_without_seed(config))), "imported": imported,
    }  # fmt: skip
    import yaml

    snapshot = yaml.safe_dump(config, sort_keys=False)
    run = store.create(root, name=name, snapshot=snapshot, metadata=metadata, seeds=sorted(seeds))
    for number, foreign in seeds.items():
        _write_seed(run.path / f"seed_{number}", foreign)
    store.touch(run)
    known[digest] = run.name
    report.created.append(run.name)
    report.seeds += len(seeds)


def _write_seed(folder: Path, foreign: ForeignRun) -> None:
    writer = MetricsWriter(folder / "metrics.jsonl")
    names = list(dict.fromkeys(name for point in foreign.points for name in point.values))[:MOST_NAMES]
    kept = set(names)
    dialect = dialect_of(names)
    for point in foreign.points:
        values = {name: value for name, value in point.values.items() if name in kept and name not in ("step", "time")}
        writer.write(point.step, with_rlx_names(values, dialect=dialect))
    started = next((point.time for point in foreign.points if point.time), None) or time.time()
    ended = next((point.time for point in reversed(foreign.points) if point.time), None) or started
    events: list[dict[str, Any]] = [{"event": "started", "time": started, "imported": True}]
    for step, returns in foreign.evaluations:
        mean = sum(returns) / len(returns)
        if math.isfinite(mean):
            events.append({"event": "evaluated", "time": ended, "step": step, "mean": mean, "episodes": len(returns)})
    events.append({"event": foreign.state, "time": ended, "step": foreign.points[-1].step})
    for event in events:
        files.append_line(folder / "events.jsonl", files.encode(event))


def _jsonable(value: Any, depth: int = 0) -> Any:
    """Return data that JSON and YAML can hold: other objects become text."""
    if isinstance(value, dict) and depth < 20:
        return {str(key): _jsonable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and depth < 20:
        return [_jsonable(inner, depth + 1) for inner in value]
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return str(value)


def _env(config: dict[str, Any]) -> str | None:
    env = config.get("env")
    if isinstance(env, dict):
        env = env.get("id") or env.get("name")
    for key in ("env_id", "env_name", "task", "environment", "gym_id"):
        env = env or config.get(key)
    if isinstance(env, str):
        return env
    return None


def _algorithm(config: dict[str, Any], format_name: str) -> str:
    algorithm = config.get("algo") or config.get("algorithm") or config.get("exp_name")
    if isinstance(algorithm, dict):
        algorithm = algorithm.get("name")
    if isinstance(algorithm, str):
        return algorithm
    return format_name
