"""The sessions of a lab as its ledgers have them: one row per session, and the rows of the driver itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from rlx.loop.lab.attempt import Attempt, attempts
from rlx.loop.lab.lab_folder import Lab
from rlx.study.ledger.ledger import Event

SessionOutcome = Literal["attempt", "crash", "timeout", "stalled", "disk", "usage limit", "interrupted"]
"""How a session ended. `attempt`: the agent ended by itself, and its change was tried or refused."""
FREE: tuple[SessionOutcome, ...] = ("usage limit", "interrupted")
"""The outcomes that are not the agent's fault: such a session is not counted as an iteration."""
NOTE = "session"
"""The key of a session in the note of its row."""
DRIVER_EVENT = "driven"


@dataclass(frozen=True)
class SessionUsage:
    """What a client reports about a session: dollars and tokens; None if it reports nothing."""

    dollars: float | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class SessionRecord:
    """One session of an agent, as its row has it."""

    number: int
    outcome: SessionOutcome
    drive: str
    """The id of the row with which its drive began."""
    began: float
    seconds: float
    usage: SessionUsage = field(default_factory=SessionUsage)
    exit_code: int | None = None
    resets: float | None = None
    """When the usage limit that ended it resets."""
    log: str = ""

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return asdict(self)


@dataclass(frozen=True)
class LabSession:
    """A session next to the attempt that its row is."""

    record: SessionRecord
    attempt: Attempt


def read_record(document: object) -> SessionRecord | None:
    """Read a session from the note of a row; None if the note has none."""
    if not isinstance(document, Mapping) or document.get("outcome") not in get_args(SessionOutcome):
        return None
    usage = document.get("usage") or {}
    return SessionRecord(
        number=int(document["number"]), outcome=document["outcome"], drive=str(document["drive"]),
        began=float(document["began"]), seconds=float(document["seconds"]),
        usage=SessionUsage(usage.get("dollars"), usage.get("tokens")),
        exit_code=document.get("exit_code"), resets=document.get("resets"), log=str(document.get("log", "")),
    )  # fmt: skip


def lab_sessions(lab: Lab) -> list[LabSession]:
    """Return every session that has its row, in the order of their numbers."""
    found = []
    for attempt in attempts(lab):
        record = read_record(attempt.notes.get(NOTE))
        if record is not None:
            found.append(LabSession(record, attempt))
    return sorted(found, key=lambda session: session.record.number)


def driver_events(lab: Lab) -> list[Event]:
    """Return the rows of the driver over all rungs: when it began, went on and ended, and why."""
    return [event for rung in lab.begun for event in lab.study_at(rung).ledger.events() if event.kind == DRIVER_EVENT]


def read_usage(output: str) -> SessionUsage:
    """Return what a client says about its cost: Claude Code's result, or Codex's turns. It is the client's own word."""
    dollars: float | None = None
    tokens: int | None = None
    for event in json_events(output):
        cost = event.get("total_cost_usd")
        if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0:
            dollars = float(cost)
        usage = event.get("usage")
        if event.get("type") in ("result", "turn.completed") and isinstance(usage, dict):
            counts = [usage.get(name) for name in ("input_tokens", "output_tokens")]
            tokens = (tokens or 0) + sum(count for count in counts if isinstance(count, int))
    return SessionUsage(dollars, tokens)


def json_events(output: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that a client printed, one per line."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def spent_dollars(records: Sequence[SessionRecord], *, cost_per_session: float | None) -> float | None:
    """Return what sessions cost together; None if the cost is unknown.

    A session without a report costs as much as the dearest one that has a report, or `cost_per_session`.
    """
    known = [record.usage.dollars for record in records if record.usage.dollars is not None]
    unknown = len(records) - len(known)
    guess = max([*known, *([] if cost_per_session is None else [cost_per_session])], default=None)
    if unknown and guess is None:
        return None
    return sum(known) + unknown * (guess or 0.0)
