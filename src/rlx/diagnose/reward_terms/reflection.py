"""Reward reflection: what each term did over a run, how it goes with the task, what changed since another run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlx.diagnose.finding import Finding
from rlx.diagnose.load_case import read_case
from rlx.diagnose.reward_terms.load_terms import RewardHistory
from rlx.diagnose.reward_terms.proxy_divergence import POINTS, Array, end_level, finite_mean, known_part
from rlx.diagnose.reward_terms.term_stats import (
    DOMINATION,
    find_hacks,
    is_flat,
    is_saturated,
    mean_shares,
    task_correlation,
)
from rlx.diagnose.rule import run_rules
from rlx.diagnose.rules import term_rules
from rlx.diagnose.run_case import RunCase
from rlx.errors import NotFound
from rlx.number_format import plain
from rlx.runs import store
from rlx.runs.run import Run
from rlx.runs.status import RUNNING

NO_TASK_METRIC = (
    "no task metric apart from the reward: rlx cannot judge hacking "
    '(report info["is_success"], or set eval.metric or eval.env)'
)


def reflect(run: Run, *, against: Run | None = None) -> tuple[dict[str, Any], Path | None]:
    """Judge a run's reward terms and store the answer in the run. The file is derived and may be deleted.

    The path is None if rlx cannot write to the run's folder.
    """
    document = _describe_run(run)
    if against is not None:
        document["against"] = _changes(document, _describe_run(against))
    return document, store.save_reflection(run.path, document)


def _describe_run(run: Run) -> dict[str, Any]:
    case = read_case(run)
    history = case.reward_history
    has_both = history.metric and any(len(seed.returns) for seed in history.seeds)
    if not history.has_terms and not has_both:
        hint = 'report them in info["reward_terms"], or name them with the wrapper `reward_terms`, and train again'
        if run.is_opaque and not run.is_script:
            hint = "name the terms that it logs (task new --name reward/term/NAME=ITS_NAME, or metrics.names)"
            hint += ", and train again"
        notes = "".join(f"; {note}" for note in _notes(case))
        raise NotFound(f"{run.name} has no reward terms{notes}", hint=hint)
    return {"run": run.name, **describe(case), "is_training": run.status == RUNNING}


def describe(case: RunCase) -> dict[str, Any]:
    """Describe every term of a run, its return and its task metric, with the findings, as JSON-able data."""
    history = case.reward_history
    last = max(seed.last_step for seed in history.seeds)
    findings = run_rules(term_rules(), case).findings
    return {
        "seeds": [seed.seed for seed in history.seeds],
        "source": history.source,
        "steps": [round(last * (index + 1) / POINTS) for index in range(POINTS)],
        "task": _task(history),
        "returns": list(history.mean_curve(lambda seed: seed.returns)),
        "hacking_risk": _hacking_risk(history, findings),
        "terms": [_term(history, name) for name in history.names],
        "findings": [finding.document() for finding in findings],
        "notes": _notes(case),
    }


def _notes(case: RunCase) -> list[str]:
    """Return what could not be read, and whether a task metric is missing."""
    notes = [*case.missing, *(f"seed {seed.seed}: {note}" for seed in case.seeds for note in seed.missing)]
    if case.reward_history.has_terms and not case.reward_history.metric:
        notes.append(NO_TASK_METRIC)
    return notes


def _hacking_risk(history: RewardHistory, findings: tuple[Finding, ...]) -> str:
    """Say how likely the reward is hacked: `unknown` without a task metric, `none`, or the finding's severity."""
    if not history.metric:
        return "unknown"
    return next((finding.severity for finding in findings if finding.rule == "reward_hacking"), "none")


def _task(history: RewardHistory) -> dict[str, Any] | None:
    if not history.metric:
        return None
    curve = _array(history.mean_curve(lambda seed: seed.task))
    return {"metric": history.metric, "series": list(map(plain, curve)), "end": plain(end_level(known_part(curve)))}


def _term(history: RewardHistory, name: str) -> dict[str, Any]:
    per_episode = _array(history.mean_curve(lambda seed: seed.per_episode.get(name)))
    per_step = _array(history.mean_curve(lambda seed: seed.per_step.get(name)))
    share = mean_shares(history.seeds).get(name, 1.0)
    correlations = [task_correlation(seed, name, history.metric) for seed in history.seeds]
    known_correlations = [value for value in correlations if value is not None]
    known = known_part(per_episode)
    return {
        "name": name,
        "series": list(map(plain, per_episode)),
        "per_step": list(map(plain, per_step)),
        "min": plain(min(known, default=np.nan)),
        "mean": plain(finite_mean(known)),
        "max": plain(max(known, default=np.nan)),
        "share": share,
        "correlation": float(np.median(known_correlations)) if known_correlations else None,
        "is_flat": is_flat(per_episode, per_step),
        "is_saturated": is_saturated(per_step),
        "farmed_from": _farmed_from(history, name),
        "dominates": mean_shares(history.seeds, is_late=True).get(name, 0.0) > DOMINATION,
    }


def _farmed_from(history: RewardHistory, name: str) -> dict[int, int]:
    """Return the seeds that farm a term, and from which step on."""
    hacks = find_hacks(history.seeds, history.metric)
    return {seed: hack.divergence.step for seed, hack in hacks.items() if hack.term == name}


def _array(values: Sequence[float | None]) -> Array:
    """Return a curve as an array, NaN where it is not known."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences from another run's reflection: new and removed terms, levels and shares of both."""
    terms, old_terms = ({term["name"]: term for term in document["terms"]} for document in (now, before))
    rules, old_rules = ({finding["rule"] for finding in document["findings"]} for document in (now, before))
    task = None
    if now["task"] and before["task"] and now["task"]["metric"] == before["task"]["metric"]:
        task = [before["task"]["end"], now["task"]["end"]]
    return {
        "run": before["run"],
        "task": task,
        "appeared": [name for name in terms if name not in old_terms],
        "gone": [name for name in old_terms if name not in terms],
        "terms": {
            name: {key: [old_terms[name][key], term[key]] for key in ("share", "mean", "correlation")}
            for name, term in terms.items()
            if name in old_terms
        },
        "findings": {"new": sorted(rules - old_rules), "gone": sorted(old_rules - rules)},
    }
