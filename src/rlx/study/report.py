"""A study told from its ledger: what was tried, what it cost, what is shown, and where each figure comes from; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlx.figures import NOTHING, counted, figure, signed
from rlx.study.candidate import BASELINE, Candidate
from rlx.study.contract import Contract
from rlx.study.ledger import Event
from rlx.study.lifecycle import Phase
from rlx.study.standing import Standing
from rlx.study.state import State

RACED: tuple[Phase, ...] = ("baseline", "trial")
SEARCH: tuple[Phase, ...] = (*RACED, "promotion")
CLAIM: Phase = "confirmation"


@dataclass(frozen=True)
class Decided:
    """A decision as its row tells it; `guards` are the answers on what is guarded, in a word or two each."""

    decision: str
    effect: float | None
    interval: tuple[float, float] | None
    p: float | None
    against: str
    n: tuple[int, ...]
    says: str
    guards: Mapping[str, str]
    notes: tuple[str, ...]
    seconds: tuple[float | None, ...]
    """How long a seed of each side took, on average."""
    coverage: float | None = None
    """The nominal level of the interval, both ends together."""

    @property
    def change(self) -> str:
        """The effect and its interval, in words."""
        if self.effect is None:
            return NOTHING
        return f"{signed(self.effect)}{_bracket(self.interval, self.coverage)} v {self.against}"


@dataclass(frozen=True)
class Changed:
    """What a candidate changed: keys from old to new in words, and its patch, by its file and its size."""

    keys: tuple[str, ...] = ()
    patch: str = ""
    lines: int = 0


@dataclass(frozen=True)
class Row:
    """One line of the log: a candidate, what it was, what it scored, and what became of it."""

    candidate: str
    kind: str
    description: str
    status: str
    scores: tuple[float, ...]
    claimed: tuple[float, ...]
    trained: int
    seconds: float
    changed: Changed | None = None
    race: Decided | None = None
    claim: Decided | None = None
    became: str = ""
    trouble: str = ""
    """Why it came to nothing, where it failed or its check was refused."""
    lines: int | None = None
    parameters: int | None = None
    files: Mapping[Phase, tuple[str, ...]] = field(default_factory=dict)
    runs: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The mean over the seeds that it raced with."""
        return _mean(self.scores)

    @property
    def seeds(self) -> int:
        """How many seeds its score is of."""
        return len(self.scores)

    @property
    def last(self) -> Decided | None:
        """What was decided of it last."""
        return self.claim or self.race

    @property
    def standing(self) -> str:
        """What became of it, with what it harms or leans to harm."""
        return self.became or self.status

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data; effect, interval and p are of the last decision, which `test` names."""
        last = self.last
        return {
            "candidate": self.candidate, "kind": self.kind, "description": self.description, "status": self.status,
            "standing": self.standing, "changed": list(self.changed.keys) if self.changed else [],
            "patch": self.changed.patch if self.changed else "", "trouble": self.trouble,
            "score": self.score, "scores": list(self.scores), "claimed": list(self.claimed), "seeds": self.seeds,
            "claim": self.claim.change if self.claim else None, "trained": self.trained, "seconds": self.seconds,
            "test": ("claim" if self.claim else "race") if last else None,
            "effect": last.effect if last else None, "p": last.p if last else None,
            "interval": list(last.interval) if last and last.interval else None,
            "against": last.against if last else "", "says": last.says if last else "",
            "guards": dict(last.guards) if last else {}, "notes": list(last.notes) if last else [],
            "lines": self.lines, "parameters": self.parameters,
            "files": [name for names in self.files.values() for name in names], "runs": list(self.runs),
        }  # fmt: skip


STANDINGS = {"debug": "failed", "validated": "checked, not trained", "draft": "not checked"}
"""What states are called for people, where their own names say little."""


def rows(state: State, candidates: Mapping[str, Candidate], changed: Mapping[str, Changed] | None = None) -> list[Row]:
    """Return the baseline and every candidate in the order proposed, negative results included."""
    names = [BASELINE, *state.candidates]
    return [_row(state, name, candidates.get(name), (changed or {}).get(name)) for name in names]


def _row(state: State, name: str, candidate: Candidate | None, changed: Changed | None) -> Row:
    standing = state.candidates.get(name)
    jobs = [job for job in state.jobs_of(name) if job.phase != "smoke"]
    spent = [job.spent for job in jobs if job.spent is not None]
    measured = {phase: tuple(state.evaluations.get((name, phase), {}).values()) for phase in (*SEARCH, CLAIM)}
    decisions = standing.decisions if standing else ()
    race, claim = (_decided(decisions, is_claim=is_claim) for is_claim in (False, True))
    return Row(
        candidate=name,
        kind=candidate.kind if candidate else "",
        description=" ".join(candidate.hypothesis.split()) if candidate else "what there is, unchanged",
        status=standing.state if standing else "baseline",
        scores=tuple(score.value for phase in RACED for score in measured[phase] if math.isfinite(score.value)),
        claimed=tuple(score.value for score in measured[CLAIM] if math.isfinite(score.value)),
        trained=sum(one.seeds for one in spent),
        seconds=sum(one.seconds for one in spent),
        changed=changed,
        race=race,
        claim=claim,
        became=standing_of(state, standing) if standing else "",
        trouble=_trouble(state, standing),
        lines=decisions[-1].get("lines") if decisions else 0 if name == BASELINE else None,
        parameters=state.parameters(name),
        files={phase: tuple(score.file for score in scores) for phase, scores in measured.items() if scores},
        runs=tuple(dict.fromkeys(str(job.run) for job in jobs if job.run)),
    )


def standing_of(state: State, standing: Standing) -> str:
    """Say what became of a candidate, with what it harms or leans to harm, for people."""
    last = standing.decisions[-1] if standing.decisions else None
    guards = (last.get("guardrails") or {}) if last else {}
    told = [f"{name}: {_guard(one)}" for name, one in guards.items() if "harm" in _guard(one)]
    if last and (last.get("test"), last["decision"]) == ("claim", "inconclusive"):
        told.insert(0, "its claim was not shown")
    word = STANDINGS.get(standing.state, standing.state)
    if standing.state == "draft" and standing.refusal is not None:
        word = "refused"
    elif standing.state == "validated" and standing.id in state.launched:
        word = "checked again, not trained since"
    return f"{word} ({'; '.join(told)})" if told else word


def _trouble(state: State, standing: Standing | None) -> str:
    """Say why a candidate came to nothing: how its trial ended, what was said of its policies, why it was refused."""
    if standing is None:
        return ""
    if standing.state == "reverted":
        return standing.taken_back
    if standing.refusal is not None:
        return "; ".join(str(one.get("says")) for one in standing.refusal["reasons"])
    if standing.state != "debug":
        return ""
    trials = state.jobs_of(standing.id, "trial")
    is_own = not trials or (trials[-1].outcome == "completed" and standing.decisions)
    return str(standing.decisions[-1].get("says", "")) if is_own and standing.decisions else trials[-1].told


def _decided(decisions: Sequence[Event], *, is_claim: bool) -> Decided | None:
    """Return the last race of a candidate, or its claim."""
    found = [one for one in decisions if (one.get("test") == "claim") == is_claim]
    if not found:
        return None
    event = found[-1]
    ends = event.get("interval") or [None, None]
    is_bounded = all(isinstance(end, (int, float)) for end in ends)
    return Decided(
        decision=str(event["decision"]),
        effect=_number(event.get("effect")),
        interval=(float(ends[0]), float(ends[1])) if is_bounded else None,
        p=_number(event.get("p")),
        against=str(event.get("against", "")),
        n=tuple(event.get("n") or ()),
        says=str(event.get("says", "")),
        guards={name: _guard(one) for name, one in (event.get("guardrails") or {}).items()},
        notes=tuple(map(str, event.get("notes") or ())),
        seconds=tuple(_number(one) for one in event.get("seconds") or ()),
        coverage=_number(event.get("coverage")),
    )


def _guard(one: Mapping[str, Any]) -> str:
    return "leans to harm" if one.get("leans_to_harm") else str(one["answer"])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value == value else None


def _mean(scores: Sequence[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None


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
    promise: tuple[str, ...] = ()
    """What the contract says of metric, guardrails, scope and baseline, a line each."""
    dates: str = ""
    handover: tuple[str, ...] = ()
    """The commands that take the incumbent over, in the order they are typed."""


def markdown(state: State, contract: Contract, table: Sequence[Row], around: Surroundings) -> str:
    """Return the report; paths are relative to the study's folder."""
    metric = contract.metric.name if contract.metric else "metric"
    parts = [
        f"# {around.study}: {outcome(state, contract)}",
        f"![every candidate, its interval, the head and the incumbent]({around.picture})",
        "\n".join([*(f"- {_plain(one, most=1000)}" for one in around.promise), *_facts(state, contract, around)]),
        *_claims(table, metric),
        *_handover(state, contract, around),
        f"## What was tried\n\n{_table(table, metric)}",
        *_troubles(table),
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
        shown = f"{signed(last['effect'])}{_bracket(last.get('interval') or (None, None), last.get('coverage'))}"
        return f"{state.incumbent} is shown to be better: {metric} {shown}"
    tried = len(state.launched)
    taken = [one for one in state.incumbents if state.candidates[one].state == "reverted"]
    if taken:
        return f"nothing stands as better than the baseline: {', '.join(taken)} was confirmed and taken back"
    made = [one for one in state.decisions if one.get("test") == "claim" and one["decision"] != "confirmed"]
    lost = [str(one["candidate"]) for one in made]
    if lost:
        return f"nothing is shown to be better than the baseline: the claim of {', '.join(lost)} was not shown"
    if state.head != BASELINE:
        begun = _begun_claim(state, contract)
        return f"the search stands at {state.head}, which is not confirmed{begun}; nothing is claimed ({tried} tried)"
    return f"nothing is shown to be better than the baseline ({tried} tried)"


def _begun_claim(state: State, contract: Contract) -> str:
    """Say how far the seeds of the head's claim are trained; nothing where none is."""
    sizes = {}
    for side in (BASELINE, state.head):
        over = {seed for job in state.jobs_of(side, CLAIM) if not job.is_open for seed in job.counted_seeds}
        sizes[side] = len(over.intersection(state.claim_seeds(side, state.head)))
    wanted = contract.metric.seeds if contract.metric else max(sizes.values())
    told = ", ".join(f"{size} of {wanted} seeds of {side}" for side, size in sizes.items())
    return f": its claim is begun, with {told} trained" if any(sizes.values()) else ""


def _bracket(ends: Sequence[object] | None, coverage: float | None) -> str:
    """Return an interval with its level, where there is one."""
    if ends is None:
        return ""
    level = f" ({100 * coverage:.3g} % interval)" if coverage else ""
    return f" [{_end(ends[0])}, {_end(ends[1])}]{level}"


def _end(value: object) -> str:
    return figure(value) if isinstance(value, (int, float)) else "open"


def _facts(state: State, contract: Contract, around: Surroundings) -> Iterator[str]:
    budget = contract.budget
    if around.dates:
        yield f"- {around.dates}"
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


def _claims(table: Sequence[Row], metric: str) -> Iterator[str]:
    """Yield what was claimed: both sides on fresh seeds and episodes of their own, the guardrails, what is noted."""
    claimed = [row for row in table if row.claim]
    if not claimed:
        return
    head = [
        "claim",
        f"baseline's {metric}",
        f"its {metric}",
        "effect",
        "p",
        "seeds, baseline's v its",
        "guardrails",
        "s a seed, baseline's v its",
        "decision",
    ]
    baseline = next(row for row in table if row.candidate == BASELINE)
    ours = _linked(_mean(baseline.claimed), BASELINE) if len(claimed) == 1 else NOTHING
    lines = [_line(head), "|" + "---|" * len(head), *(_line(_claim_cells(row, ours)) for row in claimed)]
    notes = [f"- {row.candidate}: {_plain(one)}" for row in claimed if row.claim for one in row.claim.notes]
    yield "\n\n".join(["## What was claimed", "\n".join(lines), *(["\n".join(notes)] if notes else []), EPISODES])


def _handover(state: State, contract: Contract, around: Surroundings) -> Iterator[str]:
    """Yield how what was confirmed gets into the repository."""
    if around.handover and contract.baseline is not None:
        told = f"`{state.incumbent}` is not in your files yet. From the project's folder, at commit "
        told += f"{contract.baseline.commit[:12]} or what came after it:"
        yield "\n\n".join(["## How to take it over", told, "\n".join(["```sh", *around.handover, "```"])])


EPISODES = (
    "A claim is measured on fresh training seeds and on episodes that were drawn for it alone, the search on others: "
    "a score of the one says nothing beside a score of the other, not even of the same baseline."
)


def _claim_cells(row: Row, ours: str) -> list[str]:
    claim = row.claim
    assert claim is not None
    guards = "; ".join(f"{_plain(name)}: {word}" for name, word in claim.guards.items())
    return [
        row.candidate, ours, _linked(_mean(row.claimed), row.candidate), claim.change, _spelled(claim.p),
        _versus(claim.n), guards or NOTHING, _versus(claim.seconds), f"**{claim.decision}**",
    ]  # fmt: skip


def _versus(sides: Sequence[float | None]) -> str:
    return " v ".join(_spelled(one) for one in sides) or NOTHING


def _spelled(value: float | None) -> str:
    return figure(value) if value is not None else NOTHING


def _linked(value: float | None, candidate: str) -> str:
    """Return a score that leads to the files it is worked out from."""
    return f"[{figure(value)}](#{candidate})" if value is not None else NOTHING


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(table: Sequence[Row], metric: str) -> str:
    head = ["candidate", "kind", "what became of it", "what it changed", f"{metric} in the search", "of seeds", "race",
            "p", "claim", "seeds trained", "s a seed", "lines", "parameters", "what was thought"]  # fmt: skip
    return "\n".join([_line(head), "|" + "---|" * len(head), *(_line(_cells(row)) for row in table)])


def _cells(row: Row) -> list[str]:
    race = row.race
    return [
        row.candidate,
        row.kind or NOTHING,
        _plain(row.standing),
        _change(row.changed or Changed()),
        _linked(row.score, row.candidate),
        str(row.seeds),
        race.change if race else NOTHING,
        _spelled(race.p if race else None),
        row.claim.change if row.claim else NOTHING,
        str(row.trained),
        figure(row.seconds / row.trained) if row.trained else NOTHING,
        str(row.lines) if row.lines is not None else NOTHING,
        f"{row.parameters:,}" if row.parameters is not None else NOTHING,
        _plain(row.description),
    ]


def _change(one: Changed) -> str:
    patch = [f"[{counted(one.lines, 'line')} of code]({one.patch})"] if one.patch else []
    return "; ".join([*map(_plain, one.keys), *patch]) or NOTHING


def _troubles(table: Sequence[Row]) -> Iterator[str]:
    """Yield what failed or was refused, and why."""
    told = [f"- {row.candidate} ({row.standing}): {_plain(row.trouble, most=500)}" for row in table if row.trouble]
    if told:
        yield "## What came to nothing\n\n" + "\n".join(told)


def _plain(text: str, *, most: int = 200) -> str:
    """Return text that stays text and one cell of a table, whoever wrote it: no control characters, links or HTML."""
    shown = "".join(one for one in " ".join(text.split())[:most] if one.isprintable())
    for mark in "\\|[]":
        shown = shown.replace(mark, f"\\{mark}")
    return shown.replace("](", "]\\(").replace("<", "&lt;")


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
    return f", {sizes[1]} v {sizes[0]} seeds" if len(sizes) == 2 else ""


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
