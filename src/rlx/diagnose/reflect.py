"""Reward reflection: what each term did over a run, how it goes with the task, what changed since another run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rlx.diagnose import history
from rlx.diagnose.divergence import POINTS, Array, end_level, finite_mean, known_part
from rlx.diagnose.history import RewardHistory
from rlx.diagnose.term_findings import findings, hacking
from rlx.diagnose.terms import DOMINATION, SeedTerms, hack, is_flat, is_saturated, mean_shares, task_correlation
from rlx.errors import NotFound
from rlx.runs import store
from rlx.runs.run import Run
from rlx.runs.status import RUNNING


def reflect(run: Run, *, against: Run | None = None) -> tuple[dict[str, Any], Path | None]:
    """Judge a run's reward terms and keep the answer in the run; the file is derived and may be deleted.

    The path is None where the run's folder cannot be written to.
    """
    document = _described(run)
    if against is not None:
        document["against"] = changes(document, _described(against))
    return document, store.save_reflection(run.path, document)


def _described(run: Run) -> dict[str, Any]:
    found = history.read(run)
    if not found.seeds:
        about = f" ({'; '.join(found.notes)})" if found.notes else ""
        ours = 'report them in info["reward_terms"], or name them with the wrapper `reward_terms`, and train again'
        theirs = "name those that it logs (task new --name reward/term/NAME=THEIRS, or metrics.names), and train again"
        is_theirs = run.is_opaque and not run.is_script
        raise NotFound(f"{run.name} has no reward terms{about}", hint=theirs if is_theirs else ours)
    is_training = run.status == RUNNING
    return {"run": run.name, **describe(found), "is_training": is_training}


def describe(found: RewardHistory) -> dict[str, Any]:
    """Return what is known about every term, with the findings, as JSON-able data."""
    last = max(one.last_step for one in found.seeds)
    return {
        "seeds": [one.seed for one in found.seeds],
        "source": found.source,
        "steps": [round(last * (index + 1) / POINTS) for index in range(POINTS)],
        "task": _task(found),
        "hacking_risk": hacking_risk(found),
        "terms": [_term(found, name) for name in _names(found)],
        "findings": [one.document() for one in findings(found.seeds, found.metric)],
        "notes": list(found.notes),
    }


def hacking_risk(found: RewardHistory) -> str:
    """Say how likely the reward is being hacked: `unknown` without a task metric, `none`, or the finding's severity."""
    if not found.metric:
        return "unknown"
    return next((one.severity for one in hacking(found.seeds, found.metric)), "none")


def _names(found: RewardHistory) -> list[str]:
    return list(dict.fromkeys(name for one in found.seeds for name in one.per_step))


def _task(found: RewardHistory) -> dict[str, Any] | None:
    if not found.metric:
        return None
    curve = _mean_curve(found, lambda one: None if one.task is None else one.points(one.task))
    return {"metric": found.metric, "series": _numbers(curve), "end": _number(end_level(known_part(curve)))}


def _term(found: RewardHistory, name: str) -> dict[str, Any]:
    per_episode = _mean_curve(found, lambda one: _curve(one, one.per_episode, name))
    per_step = _mean_curve(found, lambda one: _curve(one, one.per_step, name))
    share = mean_shares(found.seeds).get(name, 1.0)
    agreements = [value for one in found.seeds if name in one.per_episode
                  and (value := task_correlation(one, name)) is not None]  # fmt: skip
    known = known_part(per_episode)
    return {
        "name": name,
        "series": _numbers(per_episode),
        "per_step": _numbers(per_step),
        "min": _number(known.min()) if len(known) else None,
        "mean": _number(finite_mean(known)),
        "max": _number(known.max()) if len(known) else None,
        "share": share,
        "correlation": float(np.median(agreements)) if agreements else None,
        "is_flat": is_flat(per_episode, per_step),
        "is_saturated": is_saturated(per_step),
        "farmed_from": _farmed_from(found, name),
        "dominates": len(_names(found)) > 1 and share > DOMINATION,
    }


def _farmed_from(found: RewardHistory, name: str) -> dict[int, int]:
    """Return the seeds that farm a term, and from which step on."""
    hacks = {one.seed: hack(one, found.metric) for one in found.seeds}
    return {seed: one.divergence.step for seed, one in hacks.items() if one is not None and one.term == name}


def _curve(one: SeedTerms, of: Any, name: str) -> Array | None:
    return one.points(of[name]) if name in of else None


def _mean_curve(found: RewardHistory, curve: Callable[[SeedTerms], Array | None]) -> Array:
    """Average a curve over the seeds that have it."""
    curves = [made for one in found.seeds if (made := curve(one)) is not None]
    columns = np.array(curves).reshape(-1, POINTS)
    return np.array([finite_mean(columns[:, index]) for index in range(POINTS)])


def _numbers(curve: Array) -> list[float | None]:
    return [_number(value) for value in curve]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def changes(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """Return what differs from a reference run's reflection: terms come and gone, levels and shares then and now."""
    ours, theirs = ({one["name"]: one for one in document["terms"]} for document in (now, then))
    rules_now, rules_then = ({one["rule"] for one in document["findings"]} for document in (now, then))
    task_now, task_then = now["task"], then["task"]
    is_same = bool(task_now and task_then and task_now["metric"] == task_then["metric"])
    return {
        "run": then["run"],
        "task": [task_then["end"], task_now["end"]] if is_same else None,
        "appeared": [name for name in ours if name not in theirs],
        "gone": [name for name in theirs if name not in ours],
        "terms": {
            name: {key: [theirs[name][key], one[key]] for key in ("share", "mean", "correlation")}
            for name, one in ours.items()
            if name in theirs
        },
        "findings": {"new": sorted(rules_now - rules_then), "gone": sorted(rules_then - rules_now)},
    }
