"""Comparing runs: their scores under one protocol, the changes between them, and the verdict on each candidate."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlx import plugins
from rlx.compare.arms import Arm, arm_of, spaces_of
from rlx.compare.code_version import CodeVersions
from rlx.compare.comparability import trained_changes
from rlx.compare.guardrails import Guard, GuardrailResult
from rlx.compare.interim_plan import holm_shares
from rlx.compare.pair import Pair
from rlx.compare.question import STANDARD, ComparisonQuestion, Evidence
from rlx.compare.stats import describe
from rlx.compare.stored_scores import (
    StoredScore,
    StoredScores,
    newest,
    required_scores,
    scores_for,
    shared_fingerprints,
)
from rlx.compare.verdict import Verdict, guarded, invalid
from rlx.config.diff import ConfigChange, diff
from rlx.errors import UsageError
from rlx.runs import interim_looks
from rlx.runs.run import SNAPSHOT, Run


@dataclass(frozen=True)
class CandidateVerdict:
    """The verdict on one candidate: what was changed, notes on it, and commands that lead on.

    `fingerprint` is the protocol of this pair, or None if they share none. `by_hand` are the commands that train what
    the next look needs. `terms` are part of the verdict: a reported score, different budgets.
    """

    name: str
    changes: tuple[ConfigChange, ...]
    notes: tuple[str, ...]
    verdict: Verdict
    commands: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    fingerprint: str | None = None
    guardrails: Mapping[str, GuardrailResult] = field(default_factory=dict)
    evidence: Evidence = "measured"
    terms: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The verdict in one line for people, with its terms."""
        if self.verdict.verdict == "invalid":
            return self.verdict.line()
        return "; ".join([self.verdict.line(), *self.terms])

    def document(self) -> dict[str, Any]:
        """Return the candidate as JSON-able data."""
        return {
            "run": self.name,
            "changes": [vars(change) for change in self.changes],
            "notes": list(self.notes),
            **self.verdict.document(),
            "line": self.line,
            "evidence": self.evidence,
            "terms": list(self.terms),
            "commands": list(self.commands),
            "by_hand": list(self.by_hand),
            "fingerprint": self.fingerprint,
            "guardrails": {name: result.document() for name, result in self.guardrails.items()},
        }


@dataclass(frozen=True)
class RunScores:
    """A run's seeds under one protocol, with all figures that were measured next to the score."""

    side: Arm
    fingerprint: str
    seeds: Mapping[int, StoredScore]

    def document(self) -> dict[str, Any]:
        """Return the scores as JSON-able data."""
        figures: dict[str, list[float]] = {}
        for score in self.seeds.values():
            for name, value in score.figures.items():
                figures.setdefault(name, []).append(value)
        metrics = {name: describe(values) for name, values in figures.items()}
        return {**self.side.document(), "fingerprint": self.fingerprint, "metrics": metrics}


@dataclass(frozen=True)
class RunComparison:
    """Several runs compared with a baseline, which has a row for each protocol that a pair is judged under."""

    baseline: str
    candidates: tuple[CandidateVerdict, ...]
    rows: tuple[RunScores, ...] = ()

    def _repr_html_(self) -> str:
        return str(plugins.load(plugins.VIEWS, "comparison", kind="view")(self).html())

    def _repr_png_(self) -> bytes | None:
        png: bytes | None = plugins.load(plugins.VIEWS, "comparison", kind="view")(self).png()
        return png

    @property
    def fingerprint(self) -> str | None:
        """The protocol of the first pair that shares one."""
        if not self.rows:
            return None
        return self.rows[0].fingerprint

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
    runs: Sequence[Run],
    *,
    minimum_effect: float = 0.0,
    guards: Sequence[Guard] = (),
    protocol: str | None = None,
    question: ComparisonQuestion = STANDARD,
) -> RunComparison:
    """Compare runs with the first one on their stored report evaluations, and record the looks that this takes.

    Each pair is judged under its own protocol if both have the same, and otherwise under one that both were scored
    under. `protocol`, the beginning of a fingerprint, chooses another of those. Guards hold back a `better` that harms
    another metric.
    """
    if len(runs) < 2 or len({run.path for run in runs}) < len(runs):
        raise UsageError("nothing to compare", hint="name a baseline and at least one other run: rlx compare A B")
    base, *others = runs
    scores = {run.name: required_scores(run, question) for run in runs}
    shared = {run.name: _shared(base, run, scores[base.name], scores[run.name]) for run in others}
    if protocol is not None:
        shared = _choose_protocol(shared, protocol)
    root = base.path.parent.parent
    codes = CodeVersions(root)
    known = interim_looks.read(root)
    rows: dict[tuple[str, str], RunScores] = {}
    pairs: dict[str, Pair] = {}
    for run in others:
        if not shared[run.name]:
            continue
        fingerprint, *also_under = shared[run.name]
        for member in (base, run):
            if (fingerprint, member.name) not in rows:
                seeds = scores[member.name][fingerprint]
                arm = arm_of(member, seeds, like=base, codes=codes)
                rows[fingerprint, member.name] = RunScores(arm, fingerprint, seeds)
        arms = rows[fingerprint, base.name].side, rows[fingerprint, run.name].side
        pairs[run.name] = Pair(
            base, run, *arms, fingerprint, codes, known, minimum_effect, also_under=tuple(also_under), question=question
        )
    judged = dict(zip(pairs, _judge(list(pairs.values())), strict=True))
    for name, pair in pairs.items():
        measured = [rows[pair.fingerprint, member].seeds for member in (base.name, name)]
        judged[name] = _apply_guards(judged[name], pair, measured, guards)
    with contextlib.suppress(OSError):  # runs in a read-only project can still be compared
        interim_looks.record(root, [taken.record for pair in pairs.values() for taken in pair.taken])
    candidates = tuple(judged.get(run.name) or _other_protocols(base, run, scores, asked=protocol) for run in others)
    return RunComparison(base.name, candidates, tuple(rows.values()))


def _shared(base: Run, new: Run, base_scores: StoredScores, new_scores: StoredScores) -> list[str]:
    return shared_fingerprints([base_scores, new_scores], [base.own_protocol, new.own_protocol])


def _choose_protocol(shared: Mapping[str, list[str]], prefix: str) -> dict[str, list[str]]:
    """Put the protocol that the user chose first. A pair that does not share it gets none."""
    known = sorted({fingerprint for fingerprints in shared.values() for fingerprint in fingerprints})
    matches = [fingerprint for fingerprint in known if prefix and fingerprint.startswith(prefix)]
    if len(matches) != 1:
        hint = "evaluate both under one protocol first: rlx eval B --like A"
        if known:
            hint = f"shared protocols: {', '.join(known)}"
        problem = "matches no shared protocol"
        if matches:
            problem = "is ambiguous: it matches several shared protocols"
        raise UsageError(f"`--protocol {prefix}` {problem}", hint=hint)
    chosen = matches[0]
    return {
        name: sorted(fingerprints, key=lambda fingerprint: fingerprint != chosen) if chosen in fingerprints else []
        for name, fingerprints in shared.items()
    }


def look(
    base: Run, new: Run, fingerprint: str, *, is_replication: bool = False, question: ComparisonQuestion = STANDARD
) -> tuple[Pair, CandidateVerdict]:
    """Judge one pair under one protocol on the scores so far. The caller has to record the looks."""
    root = base.path.parent.parent
    codes = CodeVersions(root)
    base_scores = scores_for(base, question)
    new_scores = scores_for(new, question)
    arms = [
        arm_of(run, scores.get(fingerprint, {}), like=base, codes=codes)
        for run, scores in ((base, base_scores), (new, new_scores))
    ]
    others = tuple(other for other in _shared(base, new, base_scores, new_scores) if other != fingerprint)
    known = interim_looks.read(root)
    pair = Pair(
        base, new, arms[0], arms[1], fingerprint, codes, known, is_replication=is_replication, also_under=others,
        question=question,
    )  # fmt: skip
    return pair, _judge([pair])[0]


def _judge(pairs: Sequence[Pair]) -> list[CandidateVerdict]:
    """Judge all candidates together, so that their number is corrected for."""
    valid = [pair for pair in pairs if not pair.objections]
    shares = dict(zip(valid, holm_shares([pair.strength for pair in valid]), strict=True))
    judged = []
    for pair in pairs:
        if pair in shares:
            verdict = pair.judge(shares[pair])
        else:
            reason = "; ".join(objection.reason for objection in pair.objections)
            verdict = invalid(reason, n=(pair.base.scores.size, pair.new.scores.size))
        changes = tuple(trained_changes(pair.base, pair.new))
        commands = tuple(pair.commands(verdict))
        notes = tuple(pair.notes(verdict))
        by_hand = tuple(pair.by_hand(verdict))
        judged.append(
            CandidateVerdict(
                pair.new.name, changes, notes, verdict, commands, by_hand, pair.fingerprint,
                evidence=pair.new.evidence, terms=pair.terms,
            )
        )  # fmt: skip
    return judged


def _apply_guards(
    candidate: CandidateVerdict, pair: Pair, scores: Sequence[Mapping[int, StoredScore]], guards: Sequence[Guard]
) -> CandidateVerdict:
    """Test the guards on the seeds of the verdict. `scores` are those of the baseline and of the candidate."""
    verdict = candidate.verdict
    seeds = [list(pair.base_scores), list(pair.new_scores)]
    if verdict.look is not None:
        seeds = [side[:count] for side, count in zip(seeds, verdict.n, strict=True)]
    if not guards or verdict.verdict == "invalid" or not all(seeds):
        return candidate
    results = {}
    for guard in guards:
        base, new = (_values(side, stored, guard.metric) for side, stored in zip(seeds, scores, strict=True))
        results[guard.name] = guard.test(base, new)
    return replace(candidate, verdict=guarded(verdict, results), guardrails=results)


def _values(seeds: Sequence[int], scores: Mapping[int, StoredScore], metric: str) -> list[float]:
    """Return one value of a metric per seed, NaN for a crashed seed."""
    known = sorted({name for score in scores.values() for name in score.figures})
    if metric not in known:
        raise UsageError(f"`{metric}` was not evaluated", hint=f"known metrics: {', '.join(known)}")
    return [scores[seed].figures.get(metric, math.nan) if seed in scores else math.nan for seed in seeds]


def _other_protocols(base: Run, new: Run, scores: Mapping[str, StoredScores], *, asked: str | None) -> CandidateVerdict:
    """Say how the protocols differ, and which commands lead on: evaluate both under one, or aggregate over tasks."""
    protocols = [_protocol(run, scores[run.name]) for run in (base, new)]
    differing = ", ".join(change.key for change in diff(*protocols))
    reason = f"{base.name} and {new.name} were evaluated under different protocols"
    if differing:
        reason += f" ({differing})"
    commands: tuple[str, ...] = (f"rlx eval {base.name}", f"rlx eval {new.name} --like {base.name}")
    worlds = [str((protocol.get("env") or {}).get("id")) for protocol in protocols]
    if base.is_opaque or new.is_opaque:
        commands = ()  # rlx cannot open the checkpoints of a script
    elif spaces_of(base) != spaces_of(new):  # a policy of the one cannot act in the world of the other
        reason = f"{base.name} and {new.name} have different environments ({worlds[0]}, {worlds[1]})"
        commands = (f"rlx compare --tasks {base.name} {new.name}",)
        if base.metadata.get("algorithm") != new.metadata.get("algorithm"):  # no algorithm has both tasks
            snapshot = Path(new.path, SNAPSHOT)
            if snapshot.is_relative_to(Path.cwd()):
                snapshot = snapshot.relative_to(Path.cwd())
            commands = (f"rlx train {shlex.quote(str(snapshot))} -s env.id={shlex.quote(worlds[0])} -s backend=auto",)
    if asked is not None and scores[base.name].keys() & scores[new.name].keys():
        reason = f"{base.name} and {new.name} were not both evaluated under {asked}"
        commands = (f"rlx compare {base.name} {new.name}",)
    changes = trained_changes(Arm(base.name, (), config=base.config), Arm(new.name, (), config=new.config))
    return CandidateVerdict(new.name, tuple(changes), (), invalid(reason, n=(0, 0)), commands)


def _protocol(run: Run, scores: StoredScores) -> Mapping[str, Any]:
    """Return the run's own protocol if it was scored under it, otherwise the latest protocol."""
    own = scores.get(run.own_protocol or "")
    if own:
        return next(iter(own.values())).protocol
    return newest(scores).protocol
