"""Comparing runs: their scores under one protocol, what differs between them, and the verdict on each candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rlx.compare.stats import Floats, tail_check
from rlx.compare.verdict import DECIDING_SEEDS, Verdict, invalid, judge
from rlx.config.diff import Change, diff
from rlx.errors import NotFound, UsageError
from rlx.files import number
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, RUNNING

IDENTITY = ("run_name", "seed", "seeds")
"""Config keys that name a run or its replicates and change nothing of what is trained."""
STEP_TOLERANCE = 0.05
"""Trainers round the budget up to whole rollouts; a larger difference in steps is a difference in budget."""

_MENDS = {COMPLETED: "eval", RUNNING: "wait"}


@dataclass(frozen=True)
class Report:
    """One seed's evaluation of its final policy."""

    score: float
    step: int
    time: float
    protocol: Mapping[str, Any]


@dataclass(frozen=True)
class Side:
    """One run's final scores under the protocol of the comparison, by training seed; `missing` seeds have none."""

    run: Run
    reports: Mapping[int, Report]

    @property
    def name(self) -> str:
        return self.run.name

    @cached_property
    def scores(self) -> Floats:
        """The score of each seed, in the order of the seeds: (seeds,)."""
        return np.array([self.reports[seed].score for seed in sorted(self.reports)], dtype=np.float64)

    @property
    def steps(self) -> list[int]:
        return sorted({report.step for report in self.reports.values()})

    @property
    def missing(self) -> list[int]:
        return [seed.number for seed in self.run.seeds if seed.number not in self.reports]

    def document(self) -> dict[str, Any]:
        """Return the side as JSON-able data."""
        scores = self.scores
        with np.errstate(invalid="ignore"):
            return {
                "run": self.name,
                "n": scores.size,
                "mean": float(scores.mean()),
                "sd": float(scores.std(ddof=1)) if scores.size > 1 else None,
                "median": float(np.median(scores)),
                "min": float(scores.min()),
                "max": float(scores.max()),
                "steps": self.steps,
                "seeds": {str(seed): self.reports[seed].score for seed in sorted(self.reports)},
            }


@dataclass(frozen=True)
class Candidate:
    """A run beside the baseline: what was changed, what else differs, the verdict, and commands that lead on."""

    name: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    verdict: Verdict
    commands: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the candidate as JSON-able data."""
        return {
            "run": self.name,
            "changes": [{"key": one.key, "before": one.before, "after": one.after} for one in self.changes],
            "notes": list(self.notes),
            **self.verdict.document(),
            "line": self.verdict.line(),
            "commands": list(self.commands),
        }


@dataclass(frozen=True)
class Comparison:
    """Several runs beside a baseline; `sides` is empty where they share no protocol."""

    baseline: str
    candidates: tuple[Candidate, ...]
    fingerprint: str | None = None
    sides: tuple[Side, ...] = field(default=())

    @property
    def is_invalid(self) -> bool:
        return any(candidate.verdict.verdict == "invalid" for candidate in self.candidates)

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON-able data."""
        return {
            "baseline": self.baseline,
            "fingerprint": self.fingerprint,
            "runs": [side.document() for side in self.sides],
            "candidates": [candidate.document() for candidate in self.candidates],
        }


def compare(runs: Sequence[Run]) -> Comparison:
    """Compare runs with the first, on the report evaluations they already have; evaluates nothing."""
    if len(runs) < 2 or len({run.path for run in runs}) < len(runs):
        raise UsageError("nothing to compare", hint="name a baseline and at least one other run: rlx compare A B")
    reports = [reports_of(run) for run in runs]
    fingerprint = _common_fingerprint(reports)
    if fingerprint is None:
        return Comparison(runs[0].name, tuple(_unlike(runs, reports, index) for index in range(1, len(runs))))
    sides = tuple(Side(run, found[fingerprint]) for run, found in zip(runs, reports, strict=True))
    return Comparison(runs[0].name, tuple(_candidate(sides[0], side) for side in sides[1:]), fingerprint, sides)


def reports_of(run: Run) -> dict[str, dict[int, Report]]:
    """Return the evaluations of a run's final policies on report episodes: fingerprint → training seed → report."""
    found: dict[str, dict[int, Report]] = {}
    for document in run.evaluations():
        if document.get("purpose") == "report" and document["name"] == f"seed_{document.get('seed')}_latest":
            report = Report(number(document["mean"]), document["step"], document["time"], document["protocol"])
            found.setdefault(document["fingerprint"], {})[document["seed"]] = report
    if not found:
        raise NotFound(f"{run.name} has no report evaluation of its final policy", hint=f"rlx eval {run.name}")
    return found


def _common_fingerprint(reports: Sequence[dict[str, dict[int, Report]]]) -> str | None:
    """Return the protocol all runs share: the one with most seeds, then most episodes, then the newest."""
    shared = set.intersection(*(set(found) for found in reports))

    def order(fingerprint: str) -> tuple[int, int, float]:
        every = [found[fingerprint] for found in reports]
        newest = [report for seeds in every for report in seeds.values()]
        return sum(map(len, every)), newest[0].protocol["episodes"], max(report.time for report in newest)

    return max(shared, key=order, default=None)


def _unlike(runs: Sequence[Run], reports: Sequence[dict[str, dict[int, Report]]], index: int) -> Candidate:
    """Say in what the protocols differ, and which commands evaluate both under one."""
    base, new = runs[0], runs[index]
    ours, theirs = (_newest(reports[which]).protocol for which in (0, index))
    differing = ", ".join(change.key for change in diff(ours, theirs)) or "the other runs'"
    reason = f"{base.name} and {new.name} were evaluated under different protocols ({differing})"
    commands = (f"rlx eval {base.name}", f"rlx eval {new.name} --like {base.name}")
    return _judged_invalid(base, new, [reason], commands, n=(0, 0))


def _newest(found: dict[str, dict[int, Report]]) -> Report:
    return max((report for seeds in found.values() for report in seeds.values()), key=lambda report: report.time)


def _judged_invalid(
    base: Run, new: Run, reasons: Sequence[str], commands: Sequence[str], *, n: tuple[int, int]
) -> Candidate:
    verdict = invalid("; ".join(reasons), n=n)
    return Candidate(new.name, _changes(base, new), tuple(_notes(base, new)), verdict, tuple(dict.fromkeys(commands)))


def _candidate(base: Side, new: Side) -> Candidate:
    objections = [*_objections(base), *_objections(new), *_budget(base, new)]
    n = (base.scores.size, new.scores.size)
    if objections:
        mends = [command for _, command in objections if command]
        return _judged_invalid(base.run, new.run, [reason for reason, _ in objections], mends, n=n)
    notes = _notes(base.run, new.run)
    verdict = judge(base.scores, new.scores)
    if verdict.verdict != "invalid":
        notes += _tail_note(base, new)
    commands = [
        f"rlx train --more {side.name} --seeds {DECIDING_SEEDS - side.scores.size}"
        for side in (base, new)
        if verdict.verdict == "inconclusive" and side.scores.size < DECIDING_SEEDS
    ]
    return Candidate(new.name, _changes(base.run, new.run), tuple(notes), verdict, tuple(commands))


def _objections(side: Side) -> list[tuple[str, str]]:
    """Return why a side's scores cannot be used, each with the command that mends it."""
    found = []
    for seed in side.missing:
        state = side.run.seed(seed).status.state
        mend = f"rlx {_MENDS.get(state, 'resume')} {side.name}"
        found.append((f"seed {seed} of {side.name} ({state}) has no evaluation under this protocol", mend))
    for seed, report in side.reports.items():
        if report.step < side.run.planned_steps:
            reached = f"{report.step:,} of {side.run.planned_steps:,} steps"
            found.append((f"seed {seed} of {side.name} was evaluated at {reached}", f"rlx resume {side.name}"))
    return found


def _budget(base: Side, new: Side) -> list[tuple[str, str]]:
    ours, theirs = base.steps, new.steps
    if max(ours[-1], theirs[-1]) <= (1 + STEP_TOLERANCE) * max(1, min(ours[0], theirs[0])):
        return []
    return [(f"step counts differ: {base.name} {_spell(ours)}, {new.name} {_spell(theirs)}", "")]


def _spell(steps: list[int]) -> str:
    return f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,}–{steps[-1]:,}"


def _changes(base: Run, new: Run) -> tuple[Change, ...]:
    """Return what differs between the configs, names and seeds left out."""
    return tuple(change for change in diff(base.config, new.config) if change.key.partition(".")[0] not in IDENTITY)


def _notes(base: Run, new: Run) -> list[str]:
    """Return what else differs: code and versions."""
    notes = []
    for run in (base, new):
        if len(_codes(run)) > 1:
            notes.append(f"the attempts of {run.name} ran different code: {', '.join(sorted(_codes(run)))}")
    if _codes(base) != _codes(new) and all(len(_codes(run)) == 1 for run in (base, new)):
        notes.append(f"code differs: {base.name} {', '.join(_codes(base))}, {new.name} {', '.join(_codes(new))}")
    changed = [f"{one.key} {one.before} → {one.after}" for one in diff(_versions(base), _versions(new))]
    return notes + ([f"versions differ: {', '.join(changed)}"] if changed else [])


def _codes(run: Run) -> set[str]:
    """Return the states of the code a run's attempts ran: commit, and the hash of what was not committed."""
    states = set()
    for attempt in (attempt for seed in run.seeds for attempt in seed.attempts):
        git = attempt.get("git") or {}
        dirty = f"+{str(git['diff_sha256'])[:8]}" if git.get("diff_sha256") else ""
        states.add(f"{str(git.get('commit', 'no git'))[:12]}{dirty}")
    return states


def _versions(run: Run) -> dict[str, Any]:
    attempts = [attempt for seed in run.seeds for attempt in seed.attempts]
    return dict(attempts[-1].get("versions") or {}) if attempts else {}


def _tail_note(base: Side, new: Side) -> list[str]:
    tail = tail_check(base.scores, new.scores)
    if not tail.is_flagged:
        return []
    chance = f"p = {tail.p:.2g} between equal learners"
    return [f"{tail.below} of {new.name}'s {new.scores.size} seeds score below {base.name}'s worst ({chance})"]
