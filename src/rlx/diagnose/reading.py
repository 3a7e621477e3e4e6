"""From a run's folder to a `Case`: whatever is missing, empty, torn or foreign is left out and noted, never raised."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlx import files
from rlx.diagnose.case import Case, Score, SeedCase
from rlx.diagnose.precedent import precedent
from rlx.runs.metrics import Series
from rlx.runs.run import Run, Seed
from rlx.runs.status import STOPPED_BY_RULE

UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""What half an rsync, a torn disk or somebody else's file makes of reading."""


def read(run: Run, *, only: int | None = None) -> Case:
    """Read all that a diagnosis needs, of `only` one seed if asked; what cannot be read stands in `missing`."""
    missing: list[str] = []
    config, metadata = _config(run, missing), _metadata(run, missing)
    documents = sorted(_evaluations(run.path / "eval", missing), key=_is_own)
    algo = config.get("algo")
    name = metadata.get("algorithm") or (algo.get("name") if isinstance(algo, dict) else algo) or ""
    planned = metadata.get("total_timesteps") or (algo.get("total_timesteps") if isinstance(algo, dict) else 0)
    reachable, steps = _reachable(config)
    random = [score for one in documents if one["name"] == "random" and (score := _score(one))]
    return Case(
        name=run.name,
        algorithm=str(name),
        config=config,
        planned_steps=planned if isinstance(planned, int) else 0,
        seeds=tuple(_seed(seed, documents) for seed in run.seeds if only in (None, seed.number)),
        random=random[-1] if random else None,
        reachable=reachable,
        reachable_steps=steps,
        precedent=precedent(run, documents),
        is_paid_alike=_is_paid_alike(config, documents),
        is_script=metadata.get("backend") == "script",
        missing=tuple(missing if run.seeds else [*missing, "it has no seed folder"]),
    )


def _config(run: Run, missing: list[str]) -> dict[str, Any]:
    import yaml

    try:
        return run.config
    except (*UNREADABLE, yaml.YAMLError):
        missing.append("the config snapshot cannot be read")
        return {}


def _metadata(run: Run, missing: list[str]) -> dict[str, Any]:
    try:
        return run.metadata
    except UNREADABLE:
        missing.append("the metadata cannot be read")
        return {}


def _evaluations(folder: Path, missing: list[str]) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*/*.json")):
        try:
            yield {**files.read_json(path), "name": path.stem, "protocol_folder": path.parent.name}
        except UNREADABLE:
            missing.append(f"the evaluation {path.parent.name}/{path.name} cannot be read")


def _is_own(document: Mapping[str, Any]) -> bool:
    """Say whether training itself made an evaluation; the last of a name counts, so these come last."""
    return document.get("purpose") in ("selection", "report")


def _reachable(config: Mapping[str, Any]) -> tuple[float | None, int]:
    """Return what the catalog's config was seen to reach on this environment as it is, and in how many steps."""
    from rlx.config import catalog

    env = config.get("env")
    if not isinstance(env, dict) or env.get("kwargs") or env.get("wrappers"):
        return None, 0
    name = catalog.for_env(str(env.get("id")))
    seen = catalog.ENTRIES[name].seen if name else None
    return (seen.reward, seen.steps) if seen else (None, 0)


def _is_paid_alike(config: Mapping[str, Any], documents: list[dict[str, Any]]) -> bool:
    """Say whether evaluations had the training's environment; wrappers that only change rewards are no part of them."""
    trained = config.get("env")
    protocols = [one.get("protocol") for one in documents if _is_own(one)]
    told = [one["env"] for one in protocols if isinstance(one, dict) and isinstance(one.get("env"), dict)]
    if not isinstance(trained, dict) or not told:
        return True
    return all((trained.get(key) or []) == (told[0].get(key) or []) for key in ("id", "kwargs", "wrappers"))


def _seed(seed: Seed, documents: list[dict[str, Any]]) -> SeedCase:
    missing: list[str] = []
    rows = _rows(seed.metrics_path, missing)
    events = [row for row in _lines(seed.folder / "events.jsonl", missing) if isinstance(row.get("event"), str)]
    own = {one["name"].removeprefix(f"seed_{seed.number}_"): one for one in documents if one.get("seed") == seed.number}
    state, reason = _state(seed, missing)
    evaluated = [one for one in events if one["event"] == "evaluated" and files.is_number(one.get("mean"))]
    best = own.get("best")
    claimed = own.get(f"step_{best.get('step')}") if best else None
    steps = [row["step"] for row in rows] + [one["step"] for one in events if isinstance(one.get("step"), int)]
    return SeedCase(
        seed=seed.number,
        state=state,
        reason=reason,
        step=int(max(steps, default=0)),
        series=_series(rows),
        evaluations=_curve([(one.get("step"), one["mean"]) for one in evaluated]),
        untrained=_score(own.get("untrained")),
        report=_score(own.get("latest")),
        best=_score(best),
        claimed=_score(claimed),
        missing=tuple(missing),
    )


def _state(seed: Seed, missing: list[str]) -> tuple[str, str]:
    try:
        is_ruled = seed.status.reason.startswith(STOPPED_BY_RULE)  # which is no error of its program
        return "stopped" if is_ruled else seed.status.state, seed.status.reason
    except UNREADABLE:
        missing.append("its status cannot be read")
        return "unknown", ""


def _lines(path: Path, missing: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL file that are rows; the others are counted."""
    try:
        content = path.read_bytes()
    except OSError:
        missing.append(f"no {path.name}")
        return
    if not content.strip():
        missing.append(f"{path.name} is empty")
    torn = bad = 0
    for line in content.split(b"\n"):
        try:
            row = files.decode(line) if line.strip() else None
        except ValueError:
            row = ()
        if isinstance(row, dict):
            yield row
        elif row is not None:
            is_last = content.endswith(line) and not content.endswith(b"\n")
            torn, bad = torn + is_last, bad + (not is_last)
    missing += [f"the last line of {path.name} is torn"] if torn else []
    missing += [f"{bad:,} lines of {path.name} are not rows of metrics"] if bad else []


def _rows(path: Path, missing: list[str]) -> list[dict[str, Any]]:
    """Return the metrics rows that count: after a resume, what was trained again replaces what was there."""
    kept: list[dict[str, Any]] = []
    foreign = 0
    for row in _lines(path, missing):
        if isinstance(row.get("resume_from"), int):
            kept = [one for one in kept if one["step"] <= row["resume_from"]]
        elif isinstance(row.get("step"), (int, float)) and math.isfinite(row["step"]):
            kept.append(row)
        else:
            foreign += 1
    missing += [f"{foreign:,} rows of {path.name} have no step"] if foreign else []
    return kept


def _series(rows: list[dict[str, Any]]) -> dict[str, Series]:
    points: dict[str, list[tuple[float, object]]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("step", "time") and files.is_number(value):
                points.setdefault(name, []).append((row["step"], value))
    return {name: _curve(some) for name, some in points.items()}


def _curve(points: list[tuple[Any, Any]]) -> Series:
    table = [(float(step), files.number(value)) for step, value in points if isinstance(step, (int, float))]
    array = np.array(table, dtype=np.float64).reshape(-1, 2)
    return Series(array[:, 0].copy(), array[:, 1].copy())


def _score(document: Mapping[str, Any] | None) -> Score | None:
    if not document or not files.is_number(document.get("mean")):
        return None
    mean, sd, episodes = document["mean"], document.get("std"), document.get("n")
    score = document.get("score", mean)
    protocol = document.get("protocol")
    return Score(
        mean=files.number(mean),
        sd=files.number(sd) if files.is_number(sd) else math.nan,
        episodes=episodes if isinstance(episodes, int) else 1,
        score=files.number(score) if files.is_number(score) else files.number(mean),
        step=document["step"] if isinstance(document.get("step"), int) else 0,
        is_greedy=bool(protocol.get("deterministic", True)) if isinstance(protocol, dict) else True,
    )
