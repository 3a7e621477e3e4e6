"""The morning page of a lab: sessions, cost, confirmed claims, lessons and the next step.

Everything is read from the ledgers. Every number has a link to its file: a session's log, the evidence of each training
seed, or the row of the ledger (`ledger.jsonl#L57` is its line 57).
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.loop.lab import driver
from rlx.loop.lab.attempt import Attempt, attempts
from rlx.loop.lab.brief import largest_effects
from rlx.loop.lab.drive_rules import DriveOptions, seconds_to_wait
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.lab_log import evidence_files
from rlx.loop.lab.session.session_record import LabSession, SessionRecord, driver_events, lab_sessions, spent_dollars
from rlx.loop.study.agent.compact import scores
from rlx.loop.study.step_commands import next_step, situation_of
from rlx.number_format import NOTHING, counted, figure
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.state import State, replay
from rlx.study.study_folder import Study
from rlx.study.verdict_words import verdict_words

REPORT = "report.md"
MOST_TEXT = 160


def describe_lab(lab: Lab) -> dict[str, Any]:
    """Return the state of a lab as JSON-able data."""
    study = lab.study
    at = situation_of(study)
    sessions = lab_sessions(lab)
    known = scores(at)
    tried = attempts(lab)
    is_running = driver.is_running(lab)
    return {
        "lab": lab.name,
        "kind": lab.config.kind,
        "rung": lab.rung.name,
        "study": study.name,
        "is_running": is_running,
        "waits_until": _waits_until(lab, sessions) if is_running else None,
        "ended": "" if is_running else _ended(lab),
        "head": at.state.head,
        "metric": known["metric"],
        "head_score": known["head"],
        "baseline_score": known["baseline"],
        "incumbent": at.state.incumbent or "",
        "sessions": len(sessions),
        "outcomes": dict(Counter(session.record.outcome for session in sessions)),
        "attempts": len(tried),
        "statuses": dict(Counter(attempt.status for attempt in tried)),
        "dollars": _dollars(lab, sessions),
        "tokens": sum(session.record.usage.tokens or 0 for session in sessions),
        "next": _next_command(lab, is_running=is_running),
    }


def _ended(lab: Lab) -> str:
    """Return how the last drive ended; empty if there was none."""
    events = driver_events(lab)
    if not events:
        return ""
    if events[-1]["what"] != "ended":
        return "it was cut off (rlx lab resume goes on)"
    return f"{events[-1]['why']} ({events[-1]['code']})"


def _waits_until(lab: Lab, sessions: Sequence[LabSession]) -> float | None:
    begun = [event for event in driver_events(lab) if event["what"] == "began"]
    if not begun:
        return None
    now = time.time()
    own = [session for session in sessions if session.record.drive == begun[-1].id]
    left = seconds_to_wait(own, DriveOptions(**begun[-1]["options"]), now=now)
    return now + left if left > 0 else None


def _dollars(lab: Lab, sessions: Sequence[LabSession]) -> float | None:
    records = [session.record for session in sessions]
    return spent_dollars(records, cost_per_session=lab.config.agent.cost_per_session)


def _next_command(lab: Lab, *, is_running: bool) -> str:
    events = driver_events(lab)
    if is_running:
        return "rlx lab stop, or wait"
    if lab.study.state().approval is None:
        return "rlx lab approve"
    step = next_step(lab.study)
    if step.move.kind in driver.FOR_A_PERSON:
        return str(step.command)
    if not events:
        return "rlx lab run --agent claude"
    if events[-1]["what"] != "ended" or events[-1]["code"] == "person":
        return "rlx lab resume"
    if step.move.kind == "propose":
        return "rlx lab run"
    return str(step.command)


def write_report(lab: Lab) -> Path:
    """Write the page next to the sessions, and return its path."""
    path = lab.folder / REPORT
    lab.folder.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, _Page(lab).text().encode("utf-8", "backslashreplace"))
    return path


@dataclass(frozen=True)
class _Rung:
    """The study of one rung with its rows."""

    study: Study
    events: tuple[Event, ...]
    state: State

    def line_of(self, event: Event) -> int:
        return 1 + next(number for number, one in enumerate(self.events) if one.hash == event.hash)


class _Page:
    """The page while it is written."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.data = describe_lab(lab)
        self.attempts = attempts(lab)
        self.sessions = lab_sessions(lab)
        self.rungs: dict[str, _Rung] = {}
        for rung in lab.begun:
            study = lab.study_at(rung)
            events = study.ledger.events()
            self.rungs[study.name] = _Rung(study, events, replay(events))

    def text(self) -> str:
        parts = [
            [f"# Lab {self.lab.name}: morning report", "", self._verdict()],
            ["## What ran", "", *self._drives(), *self._session_table()],
            ["## What it cost", "", *self._cost()],
            ["## What was confirmed", "", *self._claims()],
            ["## What was learned", "", *self._lessons()],
            ["## What is next", "", f"`{self.data['next']}`"],
        ]
        return "\n\n".join("\n".join(part) for part in parts) + "\n"

    # Links

    def _link(self, text: str, path: Path, line: int | None = None) -> str:
        target = os.path.relpath(path, self.lab.folder)
        anchor = "" if line is None else f"#L{line}"
        return f"[{text}]({target}{anchor})"

    def _row(self, text: str, rung: _Rung, event: Event) -> str:
        return self._link(text, rung.study.ledger.path, rung.line_of(event))

    def _rung_of(self, attempt: Attempt) -> _Rung:
        return self.rungs[self.lab.study_at(attempt.rung).name]

    def _score(self, attempt: Attempt) -> str:
        if attempt.score is None:
            return NOTHING
        paths = evidence_files(self.lab, self._rung_of(attempt).state, attempt)
        links = " ".join(self._link(str(number), path) for number, path in enumerate(paths, start=1))
        return f"{figure(attempt.score)} ({links})"

    # Sections

    def _verdict(self) -> str:
        if self.data["incumbent"]:
            return f"**{self.data['incumbent']} is confirmed on fresh seeds.**"
        if self.data["head"] != "baseline":
            return f"**{self.data['head']} is the head, and is not confirmed.**"
        if not self.attempts:
            return "**Nothing was tried yet.**"
        if all(attempt.score is None for attempt in self.attempts):
            return "**Nothing was measured yet. Every attempt so far was refused or failed.**"
        return "**No change beat the baseline. That is the result so far.**"

    def _drives(self) -> Iterator[str]:
        rows = [(rung, event) for rung in self.rungs.values() for event in rung.events if event.kind == "driven"]
        if not rows:
            by_hand = f" {counted(len(self.attempts), 'attempt')} by hand." if self.attempts else ""
            yield f"- The driver was never started.{by_hand}"
        for rung, event in rows:
            words = f"{_moment(event.time)}: {event['what']}"
            if event["what"] == "ended":
                words += f", {event['why']}"
            elif event["what"] == "began":
                words += f" with `{event['options']['agent'][:MOST_TEXT]}`"
            yield f"- {self._row(words, rung, event)}"

    def _session_table(self) -> Iterator[str]:
        if not self.sessions:
            return
        yield ""
        yield "| session | ended by | seconds | dollars | row | score | description |"
        yield "|---|---|---|---|---|---|---|"
        for session in self.sessions:
            record, attempt = session.record, session.attempt
            dollars = NOTHING if record.usage.dollars is None else f"{record.usage.dollars:.2f}"
            log = self._link(str(record.number), self._log(record))
            cells = [log, record.outcome, f"{record.seconds:.1f}", dollars, f"{attempt.row} {attempt.status}",
                     self._score(attempt), _plain(_what(attempt))]  # fmt: skip
            yield f"| {' | '.join(cells)} |"

    def _log(self, record: SessionRecord) -> Path:
        """Return a session's log, or its folder if it never printed."""
        path = self.lab.root / record.log
        return path if path.exists() else path.parent

    def _cost(self) -> Iterator[str]:
        dollars = "not reported" if self.data["dollars"] is None else f"${self.data['dollars']:.2f}"
        folder = self._link("sessions", self.lab.folder / "sessions")
        seconds = sum(session.record.seconds for session in self.sessions)
        tokens = f"{self.data['tokens']:,} tokens"
        count = counted(len(self.sessions), "session")
        if self.sessions:
            yield f"- Agent: {count} ({folder}), {seconds / 60:.1f} min, {dollars}, {tokens}."
            yield "  Dollars and tokens are the client's own word."
        for rung in self.rungs.values():
            spent = rung.state.spent
            ledger = self._link("ledger", rung.study.ledger.path)
            seeds = counted(spent.seeds, "seed")
            yield f"- Training at {rung.study.name}: {seeds}, {spent.seconds / 3600:.2f} h ({ledger})."

    def _claims(self) -> Iterator[str]:
        found = False
        for rung in self.rungs.values():
            for event in rung.state.decisions:
                if str(event.get("test", "")).startswith("claim"):
                    found = True
                    words = verdict_words(str(event["decision"]), event.fields)
                    yield f"- {self._row(str(event['candidate']), rung, event)}: {words}."
        if not found:
            yield "- Nothing was claimed."
        if self.lab.config.kind == "build":
            yield "- A build lab's scores are the candidate's own word (`reported`), so its claims stay provisional."

    def _lessons(self) -> Iterator[str]:
        for attempt in largest_effects(self.attempts):
            rung = self._rung_of(attempt)
            decision = rung.state.candidates[attempt.candidate].decisions[-1]
            effect = self._row(attempt.effect_text, rung, decision)
            lesson = f" Lesson: {_plain(attempt.lesson).rstrip('.')}." if attempt.lesson else ""
            text = _plain(attempt.description)
            yield f"- {effect} v {attempt.against} at {attempt.rung.name}: {text} ({attempt.status}).{lesson}"
        refused = Counter(str(attempt.reasons[0].get("code")) for attempt in self.attempts if attempt.reasons)
        for code, count in refused.most_common():
            yield f"- {counted(count, 'attempt')} ended with `{code}`."
        if not self.attempts:
            yield "- Nothing yet."


def _what(attempt: Attempt) -> str:
    if attempt.reasons:
        return f"{attempt.description}: {attempt.reasons[0].get('says', '')}"
    return attempt.description


def _plain(text: str) -> str:
    """Return an agent's text for a table cell: one line, without markup."""
    clean = re.sub(r"([|\[\]<>`*_\\])", r"\\\1", " ".join(text.split()))
    return clean if len(clean) <= MOST_TEXT else f"{clean[: MOST_TEXT - 1]}…"


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
