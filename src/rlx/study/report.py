"""A study told from its ledger: what was tried, what it cost, what is shown, and where each figure comes from; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlx.figures import NOTHING, figure, signed
from rlx.study.candidate import BASELINE, Candidate
from rlx.study.contract import Contract
from rlx.study.ledger import Event
from rlx.study.lifecycle import Phase
from rlx.study.state import State

SEARCH: tuple[Phase, ...] = ("baseline", "trial", "promotion")
CLAIM: Phase = "confirmation"


@dataclass(frozen=True)
class Row:
    """One line of the log: a candidate, what it was, what it scored, and what became of it."""

    candidate: str
    kind: str
    description: str
    status: str
    scores: tuple[float, ...]
    claimed: tuple[float, ...]
    seeds: int
    seconds: float
    effect: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    against: str = ""
    says: str = ""
    lines: int | None = None
    parameters: int | None = None
    files: Mapping[Phase, tuple[str, ...]] = field(default_factory=dict)
    runs: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The mean over its seeds of the search."""
        return sum(self.scores) / len(self.scores) if self.scores else None

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "candidate": self.candidate, "kind": self.kind, "description": self.description, "status": self.status,
            "score": self.score, "scores": list(self.scores), "claimed": list(self.claimed), "seeds": self.seeds,
            "seconds": self.seconds,
            "effect": self.effect, "interval": list(self.interval) if self.interval else None, "p": self.p,
            "against": self.against, "says": self.says, "lines": self.lines, "parameters": self.parameters,
            "files": [name for names in self.files.values() for name in names], "runs": list(self.runs),
        }  # fmt: skip


def rows(state: State, candidates: Mapping[str, Candidate]) -> list[Row]:
    """Return the baseline and every candidate in the order proposed, negative results included."""
    names = [BASELINE, *state.candidates]
    return [_row(state, name, candidates.get(name)) for name in names]


def _row(state: State, name: str, candidate: Candidate | None) -> Row:
    standing = state.candidates.get(name)
    jobs = [job for job in state.jobs_of(name) if job.phase != "smoke"]
    spent = [job.spent for job in jobs if job.spent is not None]
    measured = {phase: tuple(state.evaluations.get((name, phase), {}).values()) for phase in (*SEARCH, CLAIM)}
    last = standing.decisions[-1] if standing and standing.decisions else None
    return Row(
        candidate=name,
        kind=candidate.kind if candidate else "",
        description=" ".join(candidate.hypothesis.split()) if candidate else "what there is, unchanged",
        status=standing.state if standing else "baseline",
        scores=tuple(score.value for phase in SEARCH for score in measured[phase] if math.isfinite(score.value)),
        claimed=tuple(score.value for score in measured[CLAIM] if math.isfinite(score.value)),
        seeds=sum(one.seeds for one in spent),
        seconds=sum(one.seconds for one in spent),
        **_decided(last),
        lines=last.get("lines") if last else 0 if name == BASELINE else None,
        parameters=state.parameters(name),
        files={phase: tuple(score.file for score in scores) for phase, scores in measured.items() if scores},
        runs=tuple(dict.fromkeys(str(job.run) for job in jobs if job.run)),
    )


def _decided(event: Event | None) -> dict[str, Any]:
    if event is None:
        return {}
    ends = event.get("interval") or [None, None]
    is_bounded = all(isinstance(end, (int, float)) for end in ends)
    return {
        "effect": _number(event.get("effect")),
        "interval": (float(ends[0]), float(ends[1])) if is_bounded else None,
        "p": _number(event.get("p")),
        "against": str(event.get("against", "")),
        "says": str(event.get("says", "")),
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value == value else None


@dataclass(frozen=True)
class Surroundings:
    """What stands beside every claim, in words: approval, level of the evidence, what was enforced."""

    study: str
    approval: str
    level: str
    enforced: str
    head: str
    picture: str
    forgeable: tuple[str, ...] = ()


def markdown(state: State, contract: Contract, table: Sequence[Row], around: Surroundings) -> str:
    """Return the report; paths are relative to the study's folder."""
    metric = contract.metric.name if contract.metric else "metric"
    parts = [
        f"# {around.study}: {outcome(state, contract)}",
        f"![every candidate, its interval, the head and the incumbent]({around.picture})",
        "\n".join(_facts(state, contract, around)),
        f"## What was tried\n\n{_table(table, metric)}",
        *_decisions(state),
        *_refusals(state),
        "## Where the figures come from\n\n" + "\n".join(_sources(table)),
        f"Every figure is recomputed from the raw episodes by `rlx study verify {around.study}`.",
    ]
    return "\n\n".join(parts) + "\n"


def outcome(state: State, contract: Contract) -> str:
    """Return in one sentence what the study has shown."""
    metric = contract.metric.name if contract.metric else "the metric"
    claims = [one for one in state.decisions if one["decision"] == "confirmed" and one["candidate"] == state.incumbent]
    if claims:
        last = claims[-1]
        low, high = last.get("interval") or (None, None)
        return f"{state.incumbent} is shown to be better: {metric} {signed(last['effect'])} [{_end(low)}, {_end(high)}]"
    tried = len(state.launched)
    if state.head != BASELINE:
        return f"the search stands at {state.head}, which is not confirmed; nothing is claimed ({tried} tried)"
    return f"nothing is shown to be better than the baseline ({tried} tried)"


def _end(value: object) -> str:
    return figure(value) if isinstance(value, (int, float)) else "open"


def _facts(state: State, contract: Contract, around: Surroundings) -> Iterator[str]:
    budget = contract.budget
    yield f"- head: {state.head}; incumbent: {state.incumbent or NOTHING}"
    if budget:
        yield (
            f"- spent: {state.spent.seeds} of {budget.seeds} seeds, {state.spent.seconds / 3600:.2g} of "
            f"{budget.hours:g} h; candidates launched: {len(state.launched)}; claims begun: {state.claims}"
        )
    yield f"- evidence: {around.level}; approval: {_plain(around.approval)}; enforced: {around.enforced}"
    yield from (f"- not ruled out: {one}" for one in around.forgeable)
    yield f"- refusals: {state.refusals}; rows in the ledger: {state.rows}; its head: `{around.head}`"
    if state.stop:
        yield f"- stopped: {_plain(state.stop)}"
    if state.escalation:
        yield f"- a person must look: {_plain(state.escalation)}"
    for one in state.violations:
        yield f"- **the ledger is not sound**: {one}"


def _table(table: Sequence[Row], metric: str) -> str:
    head = ["candidate", "kind", "status", metric, "effect", "p", "seeds", "lines", "parameters", "what was thought"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(_cells(row)) + " |" for row in table)])


def _cells(row: Row) -> list[str]:
    interval = f" [{figure(row.interval[0])}, {figure(row.interval[1])}]" if row.interval else ""
    effect = f"{signed(row.effect)}{interval} v {row.against}" if row.effect is not None else NOTHING
    return [
        row.candidate,
        row.kind or NOTHING,
        row.status,
        f"[{figure(row.score)}](#{row.candidate})" if row.score is not None else NOTHING,
        effect,
        figure(row.p) if row.p is not None else NOTHING,
        str(row.seeds),
        str(row.lines) if row.lines is not None else NOTHING,
        f"{row.parameters:,}" if row.parameters is not None else NOTHING,
        _plain(row.description),
    ]


def _plain(text: str) -> str:
    """Return text that stays text and one cell of a table, whoever wrote it: no control characters, links or HTML."""
    line = "".join(sign for sign in " ".join(text.split())[:200] if sign.isprintable())
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("](", "]\\(")


def _decisions(state: State) -> Iterator[str]:
    """Yield every decision in the order made, with what it rests on; claims by name."""
    told = [
        f"- {_what(one)} {one['candidate']} v {one.get('against', BASELINE)}{_sizes(one)}: **{one['decision']}** "
        f"({_plain(str(one.get('says', '')))})"
        for one in state.decisions
    ]
    if told:
        yield "## What was decided\n\n" + "\n".join(told)


def _what(event: Event) -> str:
    return "claim, on fresh seeds:" if event.get("test") == "claim" else "race:"


def _sizes(event: Event) -> str:
    sizes = list(event.get("n") or ())
    return f", {sizes[0]} v {sizes[1]} seeds" if len(sizes) == 2 else ""


def _refusals(state: State) -> Iterator[str]:
    last = state.last_refusal
    if last is not None:
        reasons = "\n".join(f"  - {one.get('code')}: {_plain(str(one.get('says')))}" for one in last["reasons"])
        who = last.get("candidate") or "the study"
        yield f"## The last of {state.refusals} refusals\n\n- {last['action']} of {who}\n{reasons}"


def _sources(table: Sequence[Row]) -> Iterator[str]:
    """Yield, a candidate, the evaluator's file behind every score, by what its seeds were trained for."""
    for row in table:
        if row.files:
            yield f"### {row.candidate}\n"
            yield f"- runs: {', '.join(row.runs)}"
            for phase, names in row.files.items():
                links = ", ".join(f"[{name.rpartition('_')[2].removesuffix('.json')}]({name})" for name in names)
                yield f"- {phase}, seeds {links}"
            yield ""
