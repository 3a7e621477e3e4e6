"""Read a run's folder as a `RunCase`. Anything missing, empty, torn or foreign is left out and noted, never raised."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlx import files
from rlx.config import catalog
from rlx.diagnose.best_other_run import best_other_run
from rlx.diagnose.run_case import EvaluationScore, PeriodicEvaluation, RunCase, SeedCase
from rlx.errors import FileDamaged
from rlx.runs.metrics import Series
from rlx.runs.run import IMPORTED_BACKEND, SCRIPT_BACKEND, Run, Seed, deleted_note
from rlx.runs.status import STOPPED_BY_RULE
from rlx.runs.summary import UNREADABLE


def read_case(run: Run, *, only: int | None = None) -> RunCase:
    """Read all that a diagnosis needs, of one seed if `only` names it. `missing` names what cannot be read."""
    missing: list[str] = []
    config = _read(run, "config", "the config snapshot", missing)
    metadata = _read(run, "metadata", "the metadata", missing)
    documents = sorted(_evaluations(run.path / "eval", missing), key=_is_own)
    algo = config.get("algo")
    if not isinstance(algo, dict):
        algo = {"name": algo}
    planned = metadata.get("total_timesteps") or algo.get("total_timesteps")
    reachable, steps = _reachable(config)
    randoms = [_score(document) for document in documents if document["name"] == "random"]
    if not run.seeds:
        missing.append("it has no seed folder")
    if run.deleted_seeds:
        missing.append(deleted_note(run))
    return RunCase(
        name=run.name,
        algorithm=str(metadata.get("algorithm") or algo.get("name") or ""),
        config=config,
        planned_steps=_int(planned, 0),
        seeds=tuple(_seed(seed, documents) for seed in run.seeds if only in (None, seed.number)),
        random=next((score for score in reversed(randoms) if score), None),
        reachable=reachable,
        reachable_steps=steps,
        best_other_run=best_other_run(run, documents),
        has_same_reward=_has_same_reward(config, documents),
        is_script=metadata.get("backend") in (SCRIPT_BACKEND, IMPORTED_BACKEND),
        is_imported=metadata.get("backend") == IMPORTED_BACKEND,
        missing=tuple(missing),
    )


def _read(run: Run, attribute: str, name: str, missing: list[str]) -> dict[str, Any]:
    try:
        document: dict[str, Any] = getattr(run, attribute)
    except UNREADABLE:
        missing.append(f"{name} cannot be read")
        return {}
    return document


def _evaluations(folder: Path, missing: list[str]) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*/*.json")):
        try:
            yield {**files.read_json(path), "name": path.stem, "protocol_folder": path.parent.name}
        except UNREADABLE:
            missing.append(f"the evaluation {path.parent.name}/{path.name} cannot be read")


def _is_own(document: Mapping[str, Any]) -> bool:
    """Say whether training itself made an evaluation. These sort last, and the last of a name counts."""
    return document.get("purpose") in ("selection", "report")


def _reachable(config: Mapping[str, Any]) -> tuple[float | None, int]:
    """Return what the catalog's config reached on this unchanged environment, and in how many steps."""
    env = config.get("env")
    if not isinstance(env, dict) or env.get("kwargs") or env.get("wrappers"):
        return None, 0
    name = catalog.for_env(str(env.get("id")))
    seen = catalog.ENTRIES[name].seen if name else None
    return (seen.reward, seen.steps) if seen else (None, 0)


def _has_same_reward(config: Mapping[str, Any], documents: list[dict[str, Any]]) -> bool:
    """Say whether evaluations used the training's environment. They leave out wrappers that only change rewards."""
    trained = config.get("env")
    protocols = [document.get("protocol") for document in documents if _is_own(document)]
    envs = [
        protocol["env"]
        for protocol in protocols
        if isinstance(protocol, dict) and isinstance(protocol.get("env"), dict)
    ]
    if not isinstance(trained, dict) or not envs:
        return True
    return all((trained.get(key) or []) == (envs[0].get(key) or []) for key in ("id", "kwargs", "wrappers"))


def _seed(seed: Seed, documents: list[dict[str, Any]]) -> SeedCase:
    missing: list[str] = []
    rows = _rows(seed.metrics_path, missing)
    events = [row for row in _lines(seed.folder / "events.jsonl", missing) if isinstance(row.get("event"), str)]
    prefix = f"seed_{seed.number}_"
    measured = [document for document in documents if document.get("seed") == seed.number]
    own = {document["name"].removeprefix(prefix): document for document in measured}
    state, reason = _state(seed, missing)
    evaluated = [event for event in events if event["event"] == "evaluated" and files.is_number(event.get("mean"))]
    best = own.get("best") or {}
    steps = [row["step"] for row in rows] + [event["step"] for event in events if isinstance(event.get("step"), int)]
    return SeedCase(
        seed=seed.number,
        state=state,
        reason=reason,
        step=int(max(steps, default=0)),
        series=_series(rows),
        evaluations=_curve([(event.get("step"), event["mean"]) for event in evaluated]),
        evaluated=tuple(_periodic(own, missing)),
        untrained=_score(own.get("untrained")),
        report=_score(own.get("latest")),
        best=_score(best),
        claimed=_score(own.get(f"step_{best.get('step')}")),
        missing=tuple(missing),
    )


def _periodic(own: Mapping[str, Mapping[str, Any]], missing: list[str]) -> list[PeriodicEvaluation]:
    """Return the evaluations made during training and of the untrained policy, by step."""
    evaluations = []
    for name, document in own.items():
        if document.get("purpose") == "selection" or name == "untrained":
            try:
                evaluations.append(_periodic_evaluation(document))
            except UNREADABLE as error:
                missing.append(f"the evaluation {name} left out: {error}")
    return sorted(evaluations, key=lambda evaluation: evaluation.step)


def _periodic_evaluation(document: Mapping[str, Any]) -> PeriodicEvaluation:
    keys = ("mean", "success_rate", "pass_rate")
    figures = {key: files.number(document[key]) for key in keys if files.is_number(document.get(key))}
    episodes = [row for row in document.get("episodes") or [] if "scenario" not in row and row.get("length")]
    plain = []
    for row in episodes:
        terms = {name: files.number(value) for name, value in (row.get("terms") or {}).items()}
        plain.append((float(row["length"]), files.number(row["return"]), terms))
    env = (document.get("protocol") or {}).get("env") or {}
    return PeriodicEvaluation(int(document["step"]), figures, env, tuple(plain))


def _state(seed: Seed, missing: list[str]) -> tuple[str, str]:
    try:
        status = seed.status
    except UNREADABLE:
        missing.append("its status cannot be read")
        return "unknown", ""
    # A stop rule ends a seed as failed, but that is not an error of its program.
    if status.error_kind == STOPPED_BY_RULE:
        return "stopped", status.reason
    return status.state, status.reason


def _lines(path: Path, missing: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL file, and note how many lines are not rows."""
    try:
        content = files.read_bytes(path)
    except FileDamaged as error:
        missing.append(error.message)
        return
    except OSError:
        missing.append(f"no {path.name}")
        return
    *lines, last = content.split(b"\n")
    if not content.strip():
        missing.append(f"{path.name} is empty")
    bad = 0
    for line in lines:
        row = _decode(line)
        if row is not None:
            yield row
        elif line.strip():
            bad += 1
    row = _decode(last)
    if row is not None:
        yield row
    elif last.strip():
        missing.append(f"the last line of {path.name} is torn")
    if bad:
        missing.append(f"{bad:,} lines of {path.name} are not rows of metrics")


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        row = files.decode(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _rows(path: Path, missing: list[str]) -> list[dict[str, Any]]:
    """Return the metrics rows that count: after a resume, retrained rows replace the earlier ones."""
    kept: list[dict[str, Any]] = []
    foreign = 0
    for row in _lines(path, missing):
        if isinstance(row.get("resume_from"), int):
            kept = [earlier for earlier in kept if earlier["step"] <= row["resume_from"]]
        elif isinstance(row.get("step"), (int, float)) and math.isfinite(row["step"]):
            kept.append(row)
        else:
            foreign += 1
    if foreign:
        missing.append(f"{foreign:,} rows of {path.name} have no step")
    return kept


def _series(rows: list[dict[str, Any]]) -> dict[str, Series]:
    points: dict[str, list[tuple[float, object]]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("step", "time") and files.is_number(value):
                points.setdefault(name, []).append((row["step"], value))
    return {name: _curve(values) for name, values in points.items()}


def _curve(points: list[tuple[Any, Any]]) -> Series:
    table = [(float(step), files.number(value)) for step, value in points if isinstance(step, (int, float))]
    array = np.array(table, dtype=np.float64).reshape(-1, 2)
    return Series(array[:, 0].copy(), array[:, 1].copy())


def _score(document: Mapping[str, Any] | None) -> EvaluationScore | None:
    if not document or not files.is_number(document.get("mean")):
        return None
    mean = files.number(document["mean"])
    protocol = document.get("protocol")
    return EvaluationScore(
        mean=mean,
        sd=_number(document.get("std"), math.nan),
        episodes=_int(document.get("n"), 1),
        score=_number(document.get("score"), mean),
        step=_int(document.get("step"), 0),
        is_greedy=not isinstance(protocol, dict) or bool(protocol.get("deterministic", True)),
    )


def _int(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _number(value: object, default: float) -> float:
    return files.number(value) if files.is_number(value) else default
