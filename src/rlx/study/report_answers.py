"""The answers that open a study's report: the question, the change, the gain, its certainty, the cost, the failures.

They are for readers who have not seen rlx. They are plain text, which the caller escapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rlx.number_format import counted, duration
from rlx.study.candidate.candidate import BASELINE
from rlx.study.contract.contract import Contract
from rlx.study.ledger.state import State
from rlx.study.report import CandidateRow, ReportAnswer, ReportContext, arrow, effect_words, mean_of, together
from rlx.study.situation import UNDECIDED
from rlx.study.verdict_words import verdict_words

FAILED = ("rejected", "debug", "reverted")
"""The states of candidates that did not work."""
MOST_FAILURES = 8
MOST_CHARACTERS = 120
EVIDENCE = {
    "sealed": "rlx's own evaluator played the episodes, out of reach of the candidate's code",
    "pinned": "the project's own evaluation played the episodes, in a copy of the approved commit",
    "reported": "the training itself logged the scores, without a second measurement",
}
"""What each level of evidence means."""


def short_answers(
    state: State, contract: Contract, table: Sequence[CandidateRow], context: ReportContext
) -> Iterator[ReportAnswer]:
    """Yield every question with its answer."""
    by_name = {row.candidate: row for row in table}
    metric = contract.metric.name if contract.metric else "the metric"
    yield ReportAnswer("What was asked?", _asked(contract, context))
    shown = by_name.get(state.incumbent or state.head)
    if shown is not None and shown.candidate != BASELINE:
        text = f"{together(table, shown.candidate)}: {'; '.join(shown.changed.whole) or 'code alone'}"
        text += f" (the idea: {_cut(shown.description)})"
        yield ReportAnswer("What changed?", text, shown.changed.patch, shown.changed.lines)
    yield ReportAnswer("How large is the gain?", _gain(state, by_name, metric))
    yield ReportAnswer("How sure is it?", _certainty(contract, table, context))
    cost = f"{counted(state.spent.seeds, 'training seed')}, {duration(state.spent.seconds)} of training"
    yield ReportAnswer("What did it cost?", f"{cost}, {counted(len(state.launched), 'candidate')} tried")
    yield ReportAnswer("What did not work?", _failures(state, table))
    yield ReportAnswer("What is open?", _open_questions(state, table))


def _asked(contract: Contract, context: ReportContext) -> str:
    asked = ""
    if contract.metric is not None:
        asked = f"{contract.metric.direction} {contract.metric.name}"
    if not context.mission:
        return asked
    return f"{_cut(context.mission)} ({asked})"


def _gain(state: State, by_name: Mapping[str, CandidateRow], metric: str) -> str:
    """Return the gain of the confirmed candidate on fresh seeds, else of the head in the search."""
    if state.incumbent and by_name[state.incumbent].claim:
        row = by_name[state.incumbent]
        scores = arrow(mean_of(by_name[BASELINE].claimed), mean_of(row.claimed))
        return f"{metric} {scores} on fresh seeds, {effect_words(row.claim)}"
    if state.head == BASELINE:
        return "none was found"
    row = by_name[state.head]
    scores = arrow(by_name[BASELINE].score, mean_of(row.promoted) or row.score)
    return f"{metric} {scores} in the search, which is not a claim"


def _certainty(contract: Contract, table: Sequence[CandidateRow], context: ReportContext) -> str:
    """Say how sure the result is: the claim in words, how often such a claim is wrong, and who measured it."""
    claims = [row.claim for row in table if row.claim]
    if not claims or contract.metric is None:
        return "nothing was claimed on fresh seeds, so no gain is shown"
    words = [
        verdict_words(str(claims[-1]["decision"]), claims[-1].fields),
        f"a study like this claims a gain that is not there at most {contract.metric.alpha:.0%} of the time",
        EVIDENCE.get(context.level, ""),
    ]
    return "; ".join(filter(None, words))


def _failures(state: State, table: Sequence[CandidateRow]) -> str:
    """Return the candidates that did not work, and those whose claim was not shown, each with its lesson."""
    if not state.launched:
        return "nothing was tried"
    failed = [row for row in table if row.status in FAILED or (row.claim and row.claim["decision"] != "confirmed")]
    if not failed:
        return "nothing that was tried failed"
    told = [f"{row.candidate} ({_change(row)}): {_lesson(row)}" for row in failed[:MOST_FAILURES]]
    if len(failed) > MOST_FAILURES:
        told.append(f"and {len(failed) - MOST_FAILURES} more, listed below")
    return "; ".join(told)


def _change(row: CandidateRow) -> str:
    """Return the changed keys of a candidate, or else its idea."""
    return _cut("; ".join(row.changed.keys) or row.description)


def _lesson(row: CandidateRow) -> str:
    last = row.claim or row.race
    if last is None:
        return _cut(row.trouble) or row.standing
    return verdict_words(str(last["decision"]), last.fields)


def _open_questions(state: State, table: Sequence[CandidateRow]) -> str:
    questions = []
    if state.head == BASELINE:
        questions.append("no change has won a race yet")
    elif state.head != state.incumbent:
        questions.append(f"{state.head} does not count until it is confirmed on fresh seeds")
    undecided = [row.candidate for row in table if row.status in UNDECIDED]
    if len(undecided) == 1:
        questions.append(f"{undecided[0]} is not decided")
    elif undecided:
        questions.append(f"{', '.join(undecided)} are not decided")
    return "; ".join(questions) or "nothing: the head is confirmed"


def _cut(text: str) -> str:
    """Return foreign text on one line, short, without control characters."""
    line = "".join(character for character in " ".join(text.split()) if character.isprintable())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
