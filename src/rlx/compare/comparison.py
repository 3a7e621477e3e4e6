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
from rlx.compare.reports import Report, Reports, newest, reports_of, shared_fingerprints, stored_reports
from rlx.compare.side import Side
from rlx.compare.verdict import Verdict, guarded, invalid
from rlx.config.diff import Change, diff
from rlx.errors import UsageError
from rlx.figures import deviation
from rlx.runs import looks
from rlx.runs.run import Run

Seeds = Mapping[int, Report]


@dataclass(frozen=True)
class Candidate:
    """A run beside the baseline: what was changed, what else differs, the verdict, and commands that lead on.

    `fingerprint` is the protocol of this pair, None where it shares none; `by_hand` does what a command does at once.
    """

    name: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    verdict: Verdict
    commands: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    fingerprint: str | None = None
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
            "by_hand": list(self.by_hand),
            "fingerprint": self.fingerprint,
            "guardrails": {name: one.document() for name, one in self.guardrails.items()},
        }


@dataclass(frozen=True)
class Row:
    """A run's seeds under one protocol, with what was measured beside the score."""

    side: Side
    fingerprint: str
    seeds: Seeds

    def document(self) -> dict[str, Any]:
        """Return the row as JSON-able data."""
        metrics = {name: _spread(of) for name, of in _figures(self.seeds).items()}
        return {**self.side.document(), "fingerprint": self.fingerprint, "metrics": metrics}


@dataclass(frozen=True)
class Comparison:
    """Several runs beside a baseline; the baseline has a row for each protocol that a pair is judged under."""

    baseline: str
    candidates: tuple[Candidate, ...]
    rows: tuple[Row, ...] = ()

    @property
    def fingerprint(self) -> str | None:
        """The protocol of the first pair that shares one."""
        return self.rows[0].fingerprint if self.rows else None

    @property
    def is_invalid(self) -> bool:
        return any(candidate.verdict.verdict == "invalid" for candidate in self.candidates)

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON-able data."""
        return {
            "baseline": self.baseline,
            "fingerprint": self.fingerprint,
            "runs": [row.document() for row in self.rows],
            "candidates": [candidate.document() for candidate in self.candidates],
        }


def compare(
    runs: Sequence[Run], *, minimum_effect: float = 0.0, guards: Sequence[Guard] = (), protocol: str | None = None
) -> Comparison:
    """Compare runs with the first on the report evaluations they have, and record the looks this takes.

    Each pair is judged under its own protocol where both have the same, else under one that both were scored under;
    `protocol`, the beginning of a fingerprint, chooses another of those. Guards hold back a `better` that harms another
    metric.
    """
    if len(runs) < 2 or len({run.path for run in runs}) < len(runs):
        raise UsageError("nothing to compare", hint="name a baseline and at least one other run: rlx compare A B")
    base, *others = runs
    reports = {run.name: reports_of(run) for run in runs}
    shared = {run.name: _shared(base, run, reports[base.name], reports[run.name]) for run in others}
    if protocol is not None:
        shared = _asked(shared, protocol)
    root = base.path.parent.parent
    codes, known = Codes(root), looks.read(root)
    rows: dict[tuple[str, str], Row] = {}
    pairs: dict[str, Pair] = {}
    for run in others:
        for fingerprint in shared[run.name][:1]:
            for one in (base, run):
                seeds = reports[one.name][fingerprint]
                if (fingerprint, one.name) not in rows:
                    side = side_of(one, seeds, like=base, codes=codes)
                    rows[fingerprint, one.name] = Row(side, fingerprint, seeds)
            sides = [rows[fingerprint, one.name].side for one in (base, run)]
            pairs[run.name] = Pair(base, run, sides[0], sides[1], fingerprint, codes, known, minimum_effect,
                                   also_under=tuple(shared[run.name][1:]))  # fmt: skip
    judged = dict(zip(pairs, _judge(list(pairs.values())), strict=True))
    for name, pair in pairs.items():
        ours, theirs = (rows[pair.fingerprint, one].seeds for one in (base.name, name))
        judged[name] = _guard(judged[name], pair, ours, theirs, guards)
    with contextlib.suppress(OSError):  # a project that cannot be written to can still be compared
        looks.record(root, [one.record for pair in pairs.values() for one in pair.taken])
    candidates = tuple(judged.get(run.name) or _unlike(base, run, reports, asked=protocol) for run in others)
    return Comparison(base.name, candidates, tuple(rows.values()))


def _shared(base: Run, new: Run, ours: Reports, theirs: Reports) -> list[str]:
    return shared_fingerprints([ours, theirs], [base.own_protocol, new.own_protocol])


def _asked(shared: Mapping[str, list[str]], prefix: str) -> dict[str, list[str]]:
    """Put the protocol that was asked for first; a pair that does not share it has none."""
    known = sorted({fingerprint for every in shared.values() for fingerprint in every})
    found = [fingerprint for fingerprint in known if fingerprint.startswith(prefix)]
    if len(found) != 1 or not prefix:
        how = "several" if found else "none"
        hint = f"shared: {', '.join(known)}" if known else "evaluate both under one first: rlx eval B --like A"
        raise UsageError(f"--protocol {prefix}: {how} of the protocols these runs share begins so", hint=hint)
    return {
        name: [*found, *(one for one in every if one not in found)] if found[0] in every else []
        for name, every in shared.items()
    }


def look(base: Run, new: Run, fingerprint: str, *, is_replication: bool = False) -> tuple[Pair, Candidate]:
    """Judge one pair under one protocol, on whatever has been scored so far; the looks are for the caller to record."""
    codes, known = Codes(base.path.parent.parent), looks.read(base.path.parent.parent)
    ours, theirs = stored_reports(base), stored_reports(new)
    sides = [side_of(run, of.get(fingerprint, {}), like=base, codes=codes) for run, of in ((base, ours), (new, theirs))]
    others = tuple(one for one in _shared(base, new, ours, theirs) if one != fingerprint)
    pair = Pair(base, new, sides[0], sides[1], fingerprint, codes, known, is_replication=is_replication,
                also_under=others)  # fmt: skip
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
    return Candidate(
        pair.new.name, changes, tuple(pair.notes(verdict)), verdict, tuple(pair.commands(verdict)),
        tuple(pair.by_hand(verdict)), pair.fingerprint,
    )  # fmt: skip


def _unlike(base: Run, new: Run, reports: Mapping[str, Reports], *, asked: str | None) -> Candidate:
    """Say in what the protocols differ, and which commands evaluate both under one."""
    ours, theirs = (_protocol(run, reports[run.name]) for run in (base, new))
    differing = ", ".join(change.key for change in diff(ours, theirs))
    how = f"different protocols ({differing})" if differing else "different protocols"
    reason = f"{base.name} and {new.name} were evaluated under {how}"
    commands: tuple[str, ...] = (f"rlx eval {base.name}", f"rlx eval {new.name} --like {base.name}")
    if base.is_script or new.is_script:
        commands = ()  # rlx cannot open a script's own checkpoints
    if asked is not None and reports[base.name].keys() & reports[new.name].keys():
        reason = f"{base.name} and {new.name} were not both evaluated under {asked}"
        commands = (f"rlx compare {base.name} {new.name}",)
    changes = trained_changes(*(Side(run.name, (), config=run.config) for run in (base, new)))
    return Candidate(new.name, tuple(changes), (), invalid(reason, n=(0, 0)), commands)


def _protocol(run: Run, found: Reports) -> Mapping[str, Any]:
    """Return the run's own protocol where it is known, else the one it was scored under last."""
    own = found.get(run.own_protocol or "")
    return next(iter(own.values())).protocol if own else newest(found).protocol


def _figures(reports: Mapping[int, Report]) -> dict[str, list[float]]:
    names = dict.fromkeys(name for report in reports.values() for name in report.figures)
    return {name: [report.figures[name] for report in reports.values() if name in report.figures] for name in names}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    array = np.array(values, dtype=np.float64)
    return {
        "n": array.size, "mean": float(array.mean()), "sd": deviation(array) if array.size > 1 else None,
        "min": float(array.min()), "max": float(array.max()),
    }  # fmt: skip
