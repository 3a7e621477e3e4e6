"""Comparing runs: their scores under one protocol, what differs between them, and the verdict on each candidate."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlx.compare.code import Codes
from rlx.compare.evidence import side_of
from rlx.compare.guardrails import Guard, Guardrail
from rlx.compare.looks import holm_shares
from rlx.compare.objections import trained_changes
from rlx.compare.pair import Pair
from rlx.compare.reports import Report, Reports, common_fingerprint, newest, reports_of, stored_reports
from rlx.compare.side import Side
from rlx.compare.verdict import Verdict, guarded, invalid
from rlx.config.diff import Change, diff
from rlx.errors import UsageError
from rlx.runs import looks
from rlx.runs.run import Run
from rlx.train.start import SCRIPT_BACKEND

Seeds = Mapping[int, Report]


@dataclass(frozen=True)
class Candidate:
    """A run beside the baseline: what was changed, what else differs, the verdict, and commands that lead on."""

    name: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    verdict: Verdict
    commands: tuple[str, ...] = ()
    guardrails: Mapping[str, Guardrail] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the candidate as JSON-able data."""
        return {
            "run": self.name,
            "changes": [{"key": one.key, "before": one.before, "after": one.after} for one in self.changes],
            "notes": list(self.notes),
            **self.verdict.document(),
            "line": self.verdict.line(),
            "commands": list(self.commands),
            "guardrails": {name: one.document() for name, one in self.guardrails.items()},
        }


@dataclass(frozen=True)
class Comparison:
    """Several runs beside a baseline; `sides` is empty where they share no protocol.

    `figures` are what was measured beside the return, a value a seed: run → metric → values.
    """

    baseline: str
    candidates: tuple[Candidate, ...]
    fingerprint: str | None = None
    sides: tuple[Side, ...] = field(default=())
    figures: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    @property
    def is_invalid(self) -> bool:
        return any(candidate.verdict.verdict == "invalid" for candidate in self.candidates)

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON-able data."""
        return {
            "baseline": self.baseline,
            "fingerprint": self.fingerprint,
            "runs": [
                {**side.document(), "metrics": {name: _spread(of) for name, of in self.figures[side.name].items()}}
                for side in self.sides
            ],
            "candidates": [candidate.document() for candidate in self.candidates],
        }


def compare(runs: Sequence[Run], *, minimum_effect: float = 0.0, guards: Sequence[Guard] = ()) -> Comparison:
    """Compare runs with the first on the report evaluations they have, and record the looks this takes.

    Guards hold back a `better` that harms another metric.
    """
    if len(runs) < 2 or len({run.path for run in runs}) < len(runs):
        raise UsageError("nothing to compare", hint="name a baseline and at least one other run: rlx compare A B")
    reports = [reports_of(run) for run in runs]
    fingerprint = common_fingerprint(reports)
    if fingerprint is None:
        return Comparison(runs[0].name, tuple(_unlike(runs, reports, index) for index in range(1, len(runs))))
    found = [of[fingerprint] for of in reports]
    root = runs[0].path.parent.parent
    codes, known = Codes(root), looks.read(root)
    sides = tuple(side_of(run, seeds, like=runs[0], codes=codes) for run, seeds in zip(runs, found, strict=True))
    pairs = [
        Pair(runs[0], run, sides[0], side, fingerprint, codes, known, minimum_effect)
        for run, side in zip(runs[1:], sides[1:], strict=True)
    ]
    candidates = tuple(
        _guard(candidate, pair, found[0], seeds, guards)
        for candidate, pair, seeds in zip(_judge(pairs), pairs, found[1:], strict=True)
    )
    with contextlib.suppress(OSError):  # a project that cannot be written to can still be compared
        looks.record(root, [one.record for pair in pairs for one in pair.taken])
    figures = {side.name: _figures(seeds) for side, seeds in zip(sides, found, strict=True)}
    return Comparison(runs[0].name, candidates, fingerprint, sides, figures)


def look(base: Run, new: Run, fingerprint: str, *, is_replication: bool = False) -> tuple[Pair, Candidate]:
    """Judge one pair under one protocol, on whatever has been scored so far; the looks are for the caller to record."""
    codes, known = Codes(base.path.parent.parent), looks.read(base.path.parent.parent)
    sides = [side_of(run, stored_reports(run).get(fingerprint, {}), like=base, codes=codes) for run in (base, new)]
    pair = Pair(base, new, sides[0], sides[1], fingerprint, codes, known, is_replication=is_replication)
    return pair, _judge([pair])[0]


def _judge(pairs: Sequence[Pair]) -> tuple[Candidate, ...]:
    """Judge all candidates together, so that their number is corrected for."""
    valid = [pair for pair in pairs if not pair.objections]
    shares = holm_shares([pair.strength for pair in valid])
    verdicts = {pair: pair.judge(share) for pair, share in zip(valid, shares, strict=True)}
    return tuple(_candidate(pair, verdicts.get(pair) or _refusal(pair)) for pair in pairs)


def _guard(candidate: Candidate, pair: Pair, ours: Seeds, theirs: Seeds, guards: Sequence[Guard]) -> Candidate:
    """Test the guards on the seeds that the verdict was drawn from."""
    verdict = candidate.verdict
    if not guards or verdict.verdict == "invalid":
        return candidate
    sizes = verdict.n if verdict.look is not None else (None, None)
    base, new = list(pair.base.as_baseline())[: sizes[0]], list(pair.new.as_candidate())[: sizes[1]]
    tested = {
        guard.name: guard.test(_values(base, ours, guard.metric), _values(new, theirs, guard.metric))
        for guard in guards
        if base and new
    }
    return replace(candidate, verdict=guarded(verdict, tested), guardrails=tested)


def _values(seeds: Sequence[int], reports: Seeds, metric: str) -> list[float]:
    """Return a metric a seed, NaN for one that crashed."""
    known = sorted({name for report in reports.values() for name in report.figures})
    if metric not in known:
        raise UsageError(f"`{metric}` was not evaluated", hint=f"known: {', '.join(known)}")
    return [reports[seed].figures.get(metric, math.nan) if seed in reports else math.nan for seed in seeds]


def _refusal(pair: Pair) -> Verdict:
    reason = "; ".join(objection.reason for objection in pair.objections)
    return invalid(reason, n=(pair.base.scores.size, pair.new.scores.size))


def _candidate(pair: Pair, verdict: Verdict) -> Candidate:
    changes = tuple(trained_changes(pair.base, pair.new))
    return Candidate(pair.new.name, changes, tuple(pair.notes(verdict)), verdict, tuple(pair.commands(verdict)))


def _unlike(runs: Sequence[Run], reports: Sequence[Reports], index: int) -> Candidate:
    """Say in what the protocols differ, and which commands evaluate both under one."""
    base, new = runs[0], runs[index]
    ours, theirs = (newest(reports[which]).protocol for which in (0, index))
    differing = ", ".join(change.key for change in diff(ours, theirs)) or "the other runs'"
    reason = f"{base.name} and {new.name} were evaluated under different protocols ({differing})"
    is_script = SCRIPT_BACKEND in (base.metadata.get("backend"), new.metadata.get("backend"))
    under_one = (f"rlx eval {base.name}", f"rlx eval {new.name} --like {base.name}")
    commands = () if is_script else under_one  # rlx cannot open a script's own checkpoints
    changes = trained_changes(*(Side(run.name, (), config=run.config) for run in (base, new)))
    return Candidate(new.name, tuple(changes), (), invalid(reason, n=(0, 0)), commands)


def _figures(reports: Mapping[int, Report]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for report in reports.values() for name in report.figures)
    return {name: [report.figures[name] for report in reports.values() if name in report.figures] for name in names}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    array = np.array(values, dtype=np.float64)
    return {
        "n": array.size, "mean": float(array.mean()), "sd": float(array.std(ddof=1)) if array.size > 1 else None,
        "min": float(array.min()), "max": float(array.max()),
    }  # fmt: skip
