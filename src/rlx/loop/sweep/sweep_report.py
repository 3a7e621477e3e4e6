"""What a sweep found, from its log: table of trials, winner, importance, score–cost front, failures and votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rlx.errors import RlxError
from rlx.loop.sweep.run_sweep import cost_so_far
from rlx.loop.sweep.sweep_log import BEST, SweepLog, SweepState, TrialScore
from rlx.search.auto import Trial, TrialJob
from rlx.search.importance import importance
from rlx.search.space import Choice, Space


def describe(log: SweepLog, *, root: Path) -> dict[str, Any]:
    """Return a sweep as JSON-able data."""
    state = log.state()
    trials = trials_of(state)
    scores = _scores_by_trial(state)
    rows = [_row(trial, state, scores[trial.number]) for trial in trials]
    failed = [row for row in rows if row["state"] == "failed"]
    return {
        "sweep": log.name,
        "state": _state(log, state),
        "base": state.plan.base,
        "plan": {key: value for key, value in state.plan.document().items() if key != "data"},
        "trials": sorted(rows, key=_order),
        "failed": len(failed),
        "cost": round(cost_so_far(dict.fromkeys(state.scores)), 2),
        "seconds": round(state.seconds, 1),
        "winner": dict(state.winner or {}),
        "winner_values": _winner_values(state),
        "confirmation": dict(state.confirmation or {}),
        "best_config": _best_config(log, state, root),
        "importance": importance(state.plan.space, [trial.observation() for trial in trials]),
        "pareto": pareto(rows),
        "votes": [dict(vote) for vote in state.votes],
    }


def summary(log: SweepLog) -> dict[str, Any]:
    """Return one sweep as a row of `rlx sweep ls`; its state is `broken` if its log cannot be read."""
    try:
        state = log.state()
    except RlxError as error:
        return {"sweep": log.name, "state": "broken", "base": "", "trials": 0, "planned": 0, "best": None,
                "result": error.message}  # fmt: skip
    confirmation = state.confirmation or {}
    best = max((score.score for job, score in state.scores.items() if score.score is not None), default=None)
    if state.winner:
        best = state.winner["score"]
    return {
        "sweep": log.name,
        "state": _state(log, state),
        "base": state.plan.base,
        "trials": len(state.trials),
        "planned": state.plan.planned_trials,
        "best": best,
        "result": result_line(confirmation),
    }


def result_line(confirmation: Mapping[str, Any]) -> str:
    """Spell how a sweep ended: `confirmed +x [a, b]` or `not confirmed: why`."""
    if not confirmation:
        return ""
    if confirmation["is_confirmed"]:
        return f"confirmed {confirmation['effect']}"
    return f"not confirmed: {confirmation['line']}"


def trials_of(state: SweepState) -> list[Trial]:
    """Return the trials with their scores."""
    trials = {number: Trial(number, values) for number, values in state.trials.items()}
    for job, ended in state.scores.items():
        trials[job.trial].scores[job.seed, job.share] = ended.score
    return [trials[number] for number in sorted(trials)]


def _state(log: SweepLog, state: SweepState) -> str:
    if state.is_over:
        return "completed"
    if log.is_running:
        return "running"
    return "interrupted"


def _scores_by_trial(state: SweepState) -> dict[int, dict[TrialJob, TrialScore]]:
    by_trial: dict[int, dict[TrialJob, TrialScore]] = {number: {} for number in state.trials}
    for job, ended in state.scores.items():
        by_trial[job.trial][job] = ended
    return by_trial


def _row(trial: Trial, state: SweepState, scores: Mapping[TrialJob, TrialScore]) -> dict[str, Any]:
    full = [score for score in trial.full_scores if score is not None]
    reason = next((ended.reason for ended in scores.values() if ended.score is None), "")
    mean = None
    if full:
        mean = fmean(full)
    elif not trial.has_failed:
        mean = trial.observation().score
    return {
        "trial": trial.number,
        "run": state.runs.get(trial.number),
        "values": trial.values,
        "by": state.proposers.get(trial.number, ""),
        "state": _trial_state(trial, is_search_over=bool(state.winner)),
        "score": mean,
        "seeds": len(full),
        "share": trial.share,
        "cpu_seconds": _cpu_seconds(scores.items()),
        "reason": reason,
    }


def _cpu_seconds(scores: Any) -> float | None:
    """Return the CPU seconds of the first seed at full length."""
    for job, ended in scores:
        if job.seed == 0 and job.share >= 1.0 and ended.cpu_seconds is not None:
            return float(ended.cpu_seconds)
    return None


def _trial_state(trial: Trial, *, is_search_over: bool) -> str:
    if trial.has_failed:
        return "failed"
    if not trial.scores:
        return "waiting"
    if trial.share >= 1.0:
        return "finished"
    if is_search_over:
        return "dropped"
    return "paused"


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    score = row["score"]
    if score is None:
        score = float("-inf")
    return (-row["share"], row["state"] == "failed", -score, row["trial"])


def _winner_values(state: SweepState) -> dict[str, Any]:
    if not state.winner:
        return {}
    return dict(state.trials[state.winner["trial"]])


def _best_config(log: SweepLog, state: SweepState, root: Path) -> str | None:
    if not state.winner or not (log.folder / BEST).is_file():
        return None
    return str((log.folder / BEST).relative_to(root))


def pareto(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the trials that no other one beats in both score and CPU seconds, cheapest first."""
    measured = [row for row in rows if row["seeds"] and row["cpu_seconds"] is not None]
    front: list[int] = []
    best = float("-inf")
    for row in sorted(measured, key=lambda row: (row["cpu_seconds"], -row["score"])):
        if row["score"] > best:
            best = row["score"]
            front.append(row["trial"])
    return front


def coordinates(space: Space, values: Mapping[str, Any]) -> list[float | None]:
    """Return the position of a config on each axis of a parallel-coordinates picture."""
    places: list[float | None] = []
    for parameter in space.parameters:
        unit = None
        if parameter.key in values:
            unit = parameter.domain.unit(values[parameter.key])
        places.append(unit)
    return places


def axis_labels(space: Space) -> list[list[tuple[float, str]]]:
    """Return the marks of each axis: position and text."""
    axes = []
    for parameter in space.parameters:
        domain = parameter.domain
        if isinstance(domain, Choice):
            marks = [((index + 0.5) / len(domain.values), str(value)) for index, value in enumerate(domain.values)]
        else:
            marks = [(unit, f"{domain.value(unit):.3g}") for unit in (0.0, 0.5, 1.0)]
        axes.append(marks)
    return axes
