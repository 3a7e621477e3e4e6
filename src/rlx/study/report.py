"""The report of a study, computed from its ledger: candidates, claims, costs, and the source of each figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlx.number_format import NOTHING, counted, figure, signed
from rlx.study.candidate.candidate import BASELINE, Candidate
from rlx.study.contract.contract import Contract
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.lifecycle import Phase
from rlx.study.ledger.records import Standing
from rlx.study.ledger.state import State
from rlx.study.verdict_words import verdict_words

RACED: tuple[Phase, ...] = ("baseline", "trial")
SEARCH: tuple[Phase, ...] = (*RACED, "promotion")
CLAIM: Phase = "confirmation"
# What states are called in a report, if their own names say little.
STATE_NAMES = {"debug": "failed", "validated": "checked, not trained", "draft": "not checked"}
MOST_PROBLEMS = 20
EPISODES = (
    "A claim is measured on fresh training seeds and on episodes that were drawn for it alone. The search uses other "
    "seeds and episodes. A score of the claim cannot be compared with a score of the search, not even for the baseline."
)


@dataclass(frozen=True)
class CandidateChange:
    """What a candidate changes: keys from old to new value, and the file and size of its patch."""

    keys: tuple[str, ...] = ()
    patch: str = ""
    lines: int = 0
    builds_on: str = BASELINE
    whole: tuple[str, ...] = ()
    """All keys that differ from the baseline's, with those of the candidates that it builds on."""


@dataclass(frozen=True)
class CandidateRow:
    """One line of the log: a candidate, its change, its scores and the decisions on it."""

    candidate: str
    scores: tuple[float, ...]
    claimed: tuple[float, ...]
    promoted: tuple[float, ...]
    trained: int
    seconds: float
    changed: CandidateChange
    parameters: int | None
    kind: str = ""
    description: str = "the unchanged code"
    status: str = "baseline"
    standing: str = "baseline"  # the status for people, with the guardrails that it harms
    race: Event | None = None  # the last decision of the search
    claim: Event | None = None
    trouble: str = ""  # why it failed or was refused
    lines: int | None = 0
    files: Mapping[Phase, tuple[str, ...]] = field(default_factory=dict)
    runs: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The mean over the seeds that it raced with."""
        return mean_of(self.scores)

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data; effect, interval and p belong to the last decision, which `test` names."""
        data: dict[str, Any] = {
            "candidate": self.candidate, "kind": self.kind, "description": self.description, "status": self.status,
            "standing": self.standing, "changed": list(self.changed.keys), "patch": self.changed.patch,
            "trouble": self.trouble, "score": self.score, "scores": list(self.scores), "claimed": list(self.claimed),
            "promoted": list(self.promoted), "builds_on": self.changed.builds_on, "whole": list(self.changed.whole),
            "seeds": len(self.scores), "claim": effect_words(self.claim) if self.claim else None,
            "trained": self.trained, "seconds": self.seconds, "test": None, "effect": None, "p": None,
            "interval": None, "coverage": None, "against": "", "says": "", "guards": {}, "means": None,
            "notes": [], "lines": self.lines, "parameters": self.parameters,
            "files": [name for names in self.files.values() for name in names], "runs": list(self.runs),
        }  # fmt: skip
        last = self.claim or self.race
        if last is not None:
            interval = last.get("interval") or ()
            is_bounded = len(interval) == 2 and None not in map(_number, interval)
            data |= {
                "test": "claim" if self.claim else "race", "effect": _number(last.get("effect")),
                "p": _number(last.get("p")), "interval": list(map(float, interval)) if is_bounded else None,
                "coverage": _number(last.get("coverage")), "means": last.get("means"),
                "against": str(last.get("against", "")), "says": str(last.get("says", "")),
                "guards": _guard_answers(last), "notes": _notes(last),
            }  # fmt: skip
        return data


def rows(
    state: State, candidates: Mapping[str, Candidate], changed: Mapping[str, CandidateChange] | None = None
) -> list[CandidateRow]:
    """Return the baseline and every candidate in the order proposed, including the failures."""
    names = [BASELINE, *state.candidates]
    return [_row(state, name, candidates.get(name), (changed or {}).get(name)) for name in names]


def _row(state: State, name: str, candidate: Candidate | None, changed: CandidateChange | None) -> CandidateRow:
    jobs = [job for job in state.jobs_of(name) if job.phase != "smoke"]
    spent = [job.spent for job in jobs if job.spent is not None]
    measured = {phase: tuple(state.evaluations.get((name, phase), {}).values()) for phase in (*SEARCH, CLAIM)}
    row = CandidateRow(
        candidate=name,
        scores=tuple(score.value for phase in RACED for score in measured[phase] if math.isfinite(score.value)),
        claimed=tuple(score.value for score in measured[CLAIM] if math.isfinite(score.value)),
        promoted=tuple(score.value for score in measured["promotion"] if math.isfinite(score.value)),
        trained=sum(amount.seeds for amount in spent),
        seconds=sum(amount.seconds for amount in spent),
        changed=changed or CandidateChange(),
        parameters=state.parameters(name),
        files={phase: tuple(score.file for score in scores) for phase, scores in measured.items() if scores},
        runs=tuple(dict.fromkeys(str(job.run) for job in jobs if job.run)),
    )
    if candidate is not None:
        row = replace(row, kind=candidate.kind, description=" ".join(candidate.hypothesis.split()))
    standing = state.candidates.get(name)
    if standing is None:
        return row
    last_by_test = {event.get("test") == "claim": event for event in standing.decisions}
    return replace(
        row,
        status=standing.state,
        standing=standing_of(state, standing),
        race=last_by_test.get(False),
        claim=last_by_test.get(True),
        trouble=_trouble(state, standing),
        lines=standing.decisions[-1].get("lines") if standing.decisions else None,
    )


def standing_of(state: State, standing: Standing) -> str:
    """Say what became of a candidate, with the guardrails that it harms or seems to harm."""
    remarks = []
    if standing.decisions:
        last = standing.decisions[-1]
        if last.get("test") == "claim" and last["decision"] == "inconclusive":
            remarks.append("its claim was not shown")
        for name, guard in (last.get("guardrails") or {}).items():
            if guard.get("leans_to_harm") or guard["answer"] == "harm":
                remarks.append(f"{name}: {_guard_answer(guard)}")
    word = STATE_NAMES.get(standing.state, standing.state)
    if standing.state == "draft" and standing.refusal is not None:
        word = "refused"
    elif standing.state == "validated" and standing.id in state.launched:
        word = "checked again, not trained since"
    return f"{word} ({'; '.join(remarks)})" if remarks else word


def _trouble(state: State, standing: Standing) -> str:
    """Say why a candidate failed, was refused or was reverted."""
    if standing.state in ("reverted", "withdrawn"):
        return standing.taken_back
    if standing.refusal is not None:
        return "; ".join(str(reason.get("says")) for reason in standing.refusal["reasons"])
    if standing.state != "debug":
        return ""
    trials = state.jobs_of(standing.id, "trial")
    if standing.decisions and (not trials or trials[-1].outcome == "completed"):
        return str(standing.decisions[-1].get("says", ""))
    return trials[-1].summary


def _guard_answers(event: Event | None) -> dict[str, str]:
    if event is None:
        return {}
    return {name: _guard_answer(guard) for name, guard in (event.get("guardrails") or {}).items()}


def _guard_answer(guard: Mapping[str, Any]) -> str:
    return "leans to harm" if guard.get("leans_to_harm") else str(guard["answer"])


def _notes(event: Event) -> list[str]:
    return [str(note) for note in event.get("notes") or ()]


def effect_words(event: Event | None) -> str:
    """Return the effect of a decision with its interval, for people."""
    effect = _field(event, "effect")
    if event is None or effect is None:
        return NOTHING
    interval = _interval(event.get("interval"), event.get("coverage"))
    return f"{signed(effect)}{interval}{_sides(event)}"


def _sides(event: Event) -> str:
    """Return both sides of a comparison with means and seeds: `: c001 8 on 6 seeds v baseline 5 on 10 seeds`."""
    against = event.get("against", "")
    means = [_number(mean) for mean in event.get("means") or ()]
    if len(means) != 2:
        return f" v {against}"
    counts = [len(side) for side in event.get("seeds") or ((), ())]
    words = [f"{figure(mean)} on {counted(count, 'seed')}" for mean, count in zip(means, counts, strict=True)]
    return f": {event['candidate']} {words[1]} v {against} {words[0]}"


def _field(event: Event | None, name: str) -> float | None:
    return _number(event.get(name)) if event else None


def _number(value: object) -> float | None:
    if isinstance(value, (int, float)) and not math.isnan(value):
        return float(value)
    return None


def mean_of(scores: Sequence[float]) -> float | None:
    """Return the mean of scores; None without any."""
    return sum(scores) / len(scores) if scores else None


@dataclass(frozen=True)
class ReportAnswer:
    """A question of a reader and its answer in plain text; `patch` is the file of changed code, if there is some."""

    question: str
    text: str
    patch: str = ""
    lines: int = 0

    def document(self) -> dict[str, str]:
        """Return it as JSON-able data."""
        return {"question": self.question, "answer": self.text}


@dataclass(frozen=True)
class ReportContext:
    """What the report says next to every claim: approval, level of the evidence, enforced limits."""

    study: str
    approval: str
    level: str
    enforced: str
    head: str
    picture: str
    forgeable: tuple[str, ...] = ()
    promise: tuple[str, ...] = ()  # one line each: metric, guardrails, scope and baseline of the contract
    dates: str = ""
    mission: str = ""  # the task's own words
    handover: tuple[str, ...] = ()  # the commands that apply the confirmed candidate, in order
    is_applied: bool = False  # whether the repository's files have the confirmed change
    problems: tuple[str, ...] = ()  # how ledger and evidence contradict each other
    amendments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of the contract, after a claim's row
    answers: tuple[ReportAnswer, ...] = ()
    curves: str = ""  # the picture of learning curves, if there is one
    curves_of: str = ""


def markdown(state: State, contract: Contract, table: Sequence[CandidateRow], context: ReportContext) -> str:
    """Return the report; paths are relative to the study's folder."""
    metric = contract.metric.name if contract.metric else "the metric"
    failures = [f"- {row.candidate} ({row.standing}): {_plain(row.trouble, most=500)}" for row in table if row.trouble]
    summary = ""
    if not context.problems:
        summary = "\n".join(["## In short\n", *map(_answer_line, context.answers), f"\n{WORDS}"])
    parts = [
        f"# {context.study}: {headline(state, contract, table, context.problems)}",
        _integrity(context.problems),
        *filter(None, [summary]),
        f"![every candidate, its interval, the head and the incumbent]({context.picture})",
        *(
            [f"![learning curves of the baseline and of {context.curves_of}]({context.curves})"]
            if context.curves
            else ()
        ),
        "\n".join([*(f"- {_plain(line, most=1000)}" for line in context.promise), *_facts(state, contract, context)]),
        *_claims(table, metric, context.amendments),
    ]
    if context.handover and contract.baseline is not None:
        intro = f"`{state.incumbent}` is not in your files yet. In the project's folder, at commit "
        intro += f"{contract.baseline.commit[:12]} or a later one, run:"
        if context.is_applied:
            intro = f"The change of `{state.incumbent}` is in your files. To train with it:"
        parts += ["## How to apply it", intro, "\n".join(["```sh", *context.handover, "```"])]
    parts.append(f"## Candidates\n\n{_table(_columns(metric), table)}")
    if failures:
        parts.append("## Failures and refusals\n\n" + "\n".join(failures))
    if state.decisions:
        parts.append("## Decisions\n\n" + "\n".join(map(_decision_line, state.decisions)))
    if state.last_refusal is not None:
        parts.append(f"## The last of {state.refusals} refusals\n\n{_refusal_lines(state.last_refusal)}")
    parts += [
        "## Where the figures come from\n\n" + "\n".join(_sources(table)),
        f"`rlx study verify {context.study}` recomputes every figure from the raw episodes.",
    ]
    return "\n\n".join(parts) + "\n"


def headline(state: State, contract: Contract, table: Sequence[CandidateRow], problems: Sequence[str]) -> str:
    """Return in one sentence what the study has shown: nothing, if its ledger or its evidence was changed."""
    if problems:
        return "nothing is shown: the ledger or the evidence was changed after it was recorded"
    return outcome(state, contract, table)


def _integrity(problems: Sequence[str]) -> str:
    """Return the line that opens the report: whether every number agrees with its files."""
    if not problems:
        return "Integrity: the ledger is sound and every score agrees with its file."
    lines = [f"- {_plain(problem, most=500)}" for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"- and {len(problems) - MOST_PROBLEMS} more")
    return "\n".join([f"**Integrity: NOT sound, {counted(len(problems), 'problem')}:**", "", *lines])


WORDS = (
    "A *candidate* (c001, c002 …) is one change, trained several times. Each *seed* is one training with random "
    "numbers of its own, and a score is the mean over seeds. The *head* is the best guess of the search. A *race* "
    "tests a change against it on few seeds, with a loose limit for p. A *claim* tests the head once against the "
    "baseline on fresh seeds, with the strict limit `alpha`; if it is confirmed, the head becomes the "
    "*incumbent*. A race compares equal numbers of seeds, so its means can differ from the means over all seeds."
)


def _answer_line(answer: ReportAnswer) -> str:
    code = f"; code: [{counted(answer.lines, 'line')}]({answer.patch})" if answer.patch else ""
    text = answer.text.replace("](", "]\\(").replace("<", "&lt;")
    return f"- **{answer.question}** {text}{code}"


def together(table: Sequence[CandidateRow], name: str) -> str:
    """Return a candidate with those that it builds on: `c001 + c003 together`."""
    bases = {row.candidate: row.changed.builds_on for row in table}
    chain = [name]
    while bases.get(chain[0], BASELINE) != BASELINE and bases[chain[0]] not in chain:
        chain.insert(0, bases[chain[0]])
    if len(chain) == 1:
        return name
    return f"{' + '.join(chain)} together"


def arrow(before: float | None, after: float | None) -> str:
    """Return two scores as a change, such as `5 → 8`."""
    return f"{figure(before)} → {figure(after)}"


def outcome(state: State, contract: Contract, table: Sequence[CandidateRow] = ()) -> str:
    """Return in one sentence what the study has shown."""
    metric = contract.metric.name if contract.metric else "the metric"
    confirmed = [event for event in state.decisions if event["decision"] == "confirmed"]
    confirmed = [event for event in confirmed if event["candidate"] == state.incumbent]
    if confirmed:
        last = confirmed[-1]
        interval = _interval(last.get("interval") or (None, None), last.get("coverage"))
        by_name = {row.candidate: row for row in table}
        name = str(state.incumbent)
        if name not in by_name:
            return f"{name} is confirmed: {metric} {signed(last['effect'])}{interval}"
        scores = arrow(mean_of(by_name[BASELINE].claimed), mean_of(by_name[name].claimed))
        return f"{together(table, name)}: {metric} {scores}, confirmed: {signed(last['effect'])}{interval}"
    reverted = [name for name in state.incumbents if state.candidates[name].state == "reverted"]
    if reverted:
        return f"nothing stands as better than the baseline: {', '.join(reverted)} was confirmed and taken back"
    not_shown = [str(event["candidate"]) for event in state.decisions if event.get("test") == "claim"]
    if not_shown:
        return f"nothing is shown to be better than the baseline: the claim of {', '.join(not_shown)} was not shown"
    tried = len(state.launched)
    if state.head == BASELINE:
        return f"nothing is shown to be better than the baseline ({tried} tried)"
    progress = _claim_progress(state, contract)
    return f"the search is at {state.head}, which is not confirmed{progress}; nothing is claimed ({tried} tried)"


def _claim_progress(state: State, contract: Contract) -> str:
    """Say how many seeds of the head's claim are trained; empty if none is."""
    trained = {}
    for side in (BASELINE, state.head):
        over = {seed for job in state.jobs_of(side, CLAIM) if not job.is_open for seed in job.counted_seeds}
        trained[side] = len(over.intersection(state.claim_seeds(side, state.head)))
    if not any(trained.values()):
        return ""
    needed = contract.metric.seeds if contract.metric else max(trained.values())
    parts = [f"{count} of {needed} seeds of {side}" for side, count in trained.items()]
    return f": its claim has started, with {', '.join(parts)} trained"


def _interval(ends: Sequence[object] | None, coverage: float | None) -> str:
    """Return an interval with its level; empty if there is none."""
    if not ends:
        return ""
    low, high = (figure(end) if isinstance(end, (int, float)) else "open" for end in ends)
    level = f" ({100 * coverage:.3g} % interval)" if coverage else ""
    return f" [{low}, {high}]{level}"


def _facts(state: State, contract: Contract, context: ReportContext) -> Iterator[str]:
    if context.dates:
        yield f"- {context.dates}"
    yield f"- head: {state.head}; incumbent: {state.incumbent or NOTHING}"
    if contract.budget:
        yield (
            f"- spent: {state.spent.seeds} of {contract.budget.seeds} seeds, {state.spent.seconds / 3600:.2g} of "
            f"{contract.budget.hours:g} h; candidates launched: {len(state.launched)}; claims begun: {state.claims}"
        )
    yield f"- evidence: {context.level}; approval: {_plain(context.approval)}; enforced: {context.enforced}"
    yield from (f"- not ruled out: {risk}" for risk in context.forgeable)
    yield f"- refusals: {state.refusals}; rows in the ledger: {state.rows}; hash of its last row: `{context.head}`"
    if state.stop:
        yield f"- stopped: {_plain(state.stop)}"
    if state.escalation:
        yield f"- a person must look: {_plain(state.escalation)}"
    yield from (f"- **the ledger is not sound**: {violation}" for violation in state.violations)


Columns = Mapping[str, Callable[[CandidateRow], str | None]]


def _table(columns: Columns, table: Sequence[CandidateRow]) -> str:
    """Return a Markdown table with one line per row."""
    lines = [list(columns), *([cell(row) or NOTHING for cell in columns.values()] for row in table)]
    text = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join([text[0], "|" + "---|" * len(columns), *text[1:]])


def _columns(metric: str) -> Columns:
    return {
        "candidate": lambda row: row.candidate,
        "kind": lambda row: row.kind,
        "result": lambda row: _plain(row.standing),
        "builds on": lambda row: row.changed.builds_on if row.candidate != BASELINE else None,
        "change": lambda row: _change(row.changed),
        f"{metric} in the search": lambda row: _linked(row.score, row.candidate),
        "seeds scored": lambda row: str(len(row.scores)),
        "on fresh seeds as head": lambda row: _linked(mean_of(row.promoted), row.candidate),
        "race": lambda row: effect_words(row.race),
        "p": lambda row: figure(_field(row.race, "p")),
        "claim": lambda row: effect_words(row.claim),
        "seeds trained": lambda row: str(row.trained),
        "s per seed": lambda row: figure(row.seconds / row.trained) if row.trained else None,
        "lines": lambda row: row.lines if row.lines is None else str(row.lines),
        "parameters": lambda row: row.parameters if row.parameters is None else f"{row.parameters:,}",
        "hypothesis": lambda row: _plain(row.description),
    }


def _claims(table: Sequence[CandidateRow], metric: str, amendments: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the claims: both sides on fresh seeds and episodes, the guardrails, the notes."""
    claimed = [row for row in table if row.claim]
    if not claimed:
        return
    columns: Columns = {
        "claim": lambda row: row.candidate,
        "builds on": lambda row: row.changed.builds_on,
        f"{metric} of the baseline": lambda row: _claimed_mean(row, 0, table, len(claimed)),
        f"{metric} of the candidate": lambda row: _claimed_mean(row, 1, table, len(claimed)),
        "effect": lambda row: effect_words(row.claim),
        "p": lambda row: figure(_field(row.claim, "p")),
        "seeds, baseline v candidate": lambda row: _versus(row.claim, "n"),
        "guardrails": lambda row: _guards(row.claim),
        "s per seed, baseline v candidate": lambda row: _versus(row.claim, "seconds"),
        "decision": lambda row: f"**{row.claim['decision']}**" if row.claim else None,
    }
    yield "## Claims"
    yield _table(columns, claimed)
    lines = []
    for row in claimed:
        assert row.claim is not None
        lines += [f"- {row.candidate}: {_plain(note)}" for note in _notes(row.claim)]
        lines += _terms(row.candidate, row.claim, amendments.get(row.claim.id, ()))
    if lines:
        yield "\n".join(lines)
    yield EPISODES


def _claimed_mean(row: CandidateRow, side: int, table: Sequence[CandidateRow], claims: int) -> str:
    """Return the mean of one side of a claim; every claim has its own seeds of the baseline."""
    means = [_number(mean) for mean in (row.claim.get("means") if row.claim else None) or ()]
    name = (BASELINE, row.candidate)[side]
    if len(means) == 2:
        return _linked(means[side], name)
    if side == 0 and claims > 1:  # an old row: the scores of several claims cannot be told apart
        return NOTHING
    return _linked(mean_of((table[0], row)[side].claimed), name)


def _terms(candidate: str, claim: Event, amendments: Sequence[str]) -> Iterator[str]:
    """Yield the contract and the approval that a claim was made under, and the amendments after it."""
    contract = claim.get("contract")
    if not contract:
        return
    yield f"- {candidate} was claimed under contract {contract[:12]}; approval: {_plain(str(claim.get('approval')))}"
    if amendments:
        yield f"- {candidate}: the contract was amended later ({', '.join(amendments)}). At the claim it said:"
        yield from (f"  - {_plain(str(line), most=1000)}" for line in claim.get("terms") or ())


def _guards(claim: Event | None) -> str:
    """Return every guardrail with its answer, the change that was seen, and why."""
    if claim is None:
        return ""
    parts = []
    for name, guard in (claim.get("guardrails") or {}).items():
        change = _number(guard.get("change"))
        figures = [f"change {signed(change)}"] if change is not None else []
        bound = _number(guard.get("bound"))
        if bound is not None:
            figures.append(f"bound {signed(bound)}")
        if guard.get("reason"):
            figures.append(_plain(str(guard["reason"])))
        parts.append(f"{_plain(name)}: {_guard_answer(guard)} ({', '.join(figures)})" if figures else _plain(name))
    return "; ".join(parts)


def _versus(claim: Event | None, name: str) -> str:
    sides = claim.get(name) if claim else None
    return " v ".join(figure(_number(side)) for side in sides or ())


def _linked(value: float | None, candidate: str) -> str:
    """Return a score that links to the files it is computed from."""
    return NOTHING if value is None else f"[{figure(value)}](#{candidate})"


def _change(changed: CandidateChange) -> str:
    parts = [_plain(key) for key in changed.keys]
    if changed.patch:
        parts.append(f"[{counted(changed.lines, 'line')} of code]({changed.patch})")
    return "; ".join(parts)


def _plain(text: str, *, most: int = 200) -> str:
    """Return foreign text for one table cell, without control characters, links or HTML."""
    plain = "".join(character for character in " ".join(text.split())[:most] if character.isprintable())
    for mark in "\\|[]":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("](", "]\\(").replace("<", "&lt;")


def _decision_line(event: Event) -> str:
    test = "claim, on fresh seeds:" if event.get("test") == "claim" else "race:"
    against = event.get("against", BASELINE)
    sizes = list(event.get("n") or ())
    if event.get("means"):
        against += _sides(event)
    elif len(sizes) == 2:
        against += f", {sizes[1]} v {sizes[0]} seeds"
    words = verdict_words(str(event["decision"]), event.fields)
    says = _plain(str(event.get("says", "")))
    start = f"- {test} {event['candidate']} v {against}: **{event['decision']}**"
    if _field(event, "effect") is None:
        return f"{start} ({says})"
    return f"{start}: {_plain(words)} ({says})"


def _refusal_lines(refusal: Event) -> str:
    lines = [f"- {refusal['action']} of {refusal.get('candidate') or 'the study'}"]
    lines += [f"  - {reason.get('code')}: {_plain(str(reason.get('says')))}" for reason in refusal["reasons"]]
    return "\n".join(lines)


def _sources(table: Sequence[CandidateRow]) -> Iterator[str]:
    """Yield, per candidate and phase, the evaluator's file behind every score."""
    for row in table:
        if row.files:
            yield f"### {row.candidate}\n"
            yield f"- runs: {', '.join(row.runs)}"
            for phase, names in row.files.items():
                links = ", ".join(f"[{name.rpartition('_')[2].removesuffix('.json')}]({name})" for name in names)
                yield f"- {phase}, seeds {links}"
            yield ""
