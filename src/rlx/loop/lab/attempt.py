"""An attempt of a lab: one row per idea, whether it was refused, crashed, tried or confirmed; read from the ledgers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlx import files
from rlx.loop.lab.lab_config import Rung
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.study.agent.history import mean_score
from rlx.number_format import signed
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.records import Standing
from rlx.study.ledger.state import State, replay
from rlx.study.study_folder import Study

AttemptStatus = Literal["keep", "discard", "crash", "invalid", "refused", "settled", "failed", "open", "confirmed"]
STATUS: Mapping[str, AttemptStatus] = {
    "advanced": "keep", "confirmed": "confirmed", "rejected": "discard", "reverted": "discard", "debug": "crash",
    "withdrawn": "refused",
}  # fmt: skip
"""The status of a tried candidate by its state in the study; other states are `open`."""
CODES: Mapping[str, AttemptStatus] = {"SETTLED": "settled", "SESSION": "failed"}
"""The status of a refused attempt by the code of its first reason; others are `refused`."""
ACTION = "attempt"
"""The action of a refusal that no candidate exists for."""


@dataclass(frozen=True)
class Attempt:
    """One attempt. `row` names it in the whole lab; `candidate` is empty if it never became one."""

    row: str
    rung: Rung
    status: AttemptStatus
    description: str = ""
    candidate: str = ""
    parent: str = ""
    score: float | None = None
    effect: float | None = None
    interval: tuple[float, float] | None = None
    """The confidence interval of the effect, if both ends are finite."""
    against: str = ""
    reasons: tuple[Mapping[str, Any], ...] = ()
    time: float = 0.0
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_settled(self) -> bool:
        """Whether its result stands, so that the same idea is not trained again at this rung."""
        return self.status in ("keep", "discard", "confirmed", "invalid")

    @property
    def is_combined(self) -> bool:
        """Whether its diff holds two or more ideas, so that its effect belongs to none of them."""
        return len(self.notes.get("parts", ())) > 1

    @property
    def effect_text(self) -> str:
        """The effect with its interval, for people; empty if it was not measured."""
        if self.effect is None:
            return ""
        if self.interval is None:
            return signed(self.effect)
        low, high = self.interval
        return f"{signed(self.effect)} [{signed(low)}, {signed(high)}]"

    @property
    def lesson(self) -> str:
        return str(self.notes.get("lesson", ""))

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "row": self.row, "rung": self.rung.name, "status": self.status, "description": self.description,
            "candidate": self.candidate, "parent": self.parent, "score": self.score, "effect": self.effect,
            "interval": None if self.interval is None else list(self.interval), "against": self.against,
            "reasons": [dict(reason) for reason in self.reasons], "combined": self.is_combined, "time": self.time,
            **self.notes,
        }  # fmt: skip


def attempts(lab: Lab) -> list[Attempt]:
    """Return every attempt of the lab, from the first rung to the current one, in the order of its rows."""
    found: list[Attempt] = []
    for rung in lab.begun:
        found += rung_attempts(lab.study_at(rung), rung)
    return found


def rung_attempts(study: Study, rung: Rung) -> list[Attempt]:
    """Return the attempts of one rung in the order of their rows."""
    events = study.ledger.events()
    return list(_attempts(study, rung, events, replay(events)))


def _attempts(study: Study, rung: Rung, events: tuple[Event, ...], state: State) -> Iterator[Attempt]:
    notes = _notes(events)
    seen: set[str] = set()
    for number, event in enumerate(events, start=1):
        name = str(event.get("candidate", ""))
        if event.kind == "proposed" and name not in seen:
            seen.add(name)
            yield _of_candidate(study, rung, state, state.candidates[name], event, notes.get(name, {}))
        elif event.kind == "refused" and event.get("action") in (ACTION, "propose") and name not in seen:
            yield _of_refusal(study, rung, event, number)


def _notes(events: tuple[Event, ...]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.kind == "noted":
            found.setdefault(str(event["candidate"]), {}).update(event["note"])
    return found


def _of_candidate(
    study: Study, rung: Rung, state: State, standing: Standing, event: Event, notes: Mapping[str, Any]
) -> Attempt:
    candidate = study.candidate(standing.id)
    reasons: tuple[Mapping[str, Any], ...] = ()
    effect: float | None = None
    interval: tuple[float, float] | None = None
    against = ""
    status = STATUS.get(standing.state, "open")
    if standing.refusal is not None:
        reasons = tuple(standing.refusal["reasons"])
    elif standing.state == "withdrawn":
        reasons = ({"code": "WITHDRAW", "says": standing.taken_back},)
    if standing.state == "debug" and standing.decisions:
        status = "invalid"  # it trained, but its evidence does not hold
    if standing.decisions:
        last = standing.decisions[-1]
        value = last.get("effect")
        effect = float(value) if isinstance(value, (int, float)) else None
        interval = _bounded(last.get("interval"))
        against = str(last.get("against", ""))
    return Attempt(
        row=f"{study.name}/{standing.id}", rung=rung, status=status, description=candidate.hypothesis,
        candidate=standing.id, parent=candidate.builds_on, score=mean_score(state, standing.id), effect=effect,
        interval=interval, against=against, reasons=reasons, time=event.time, notes=dict(notes),
    )  # fmt: skip


def _bounded(interval: object) -> tuple[float, float] | None:
    """Return the two ends of a stored interval; None if one is open."""
    if not isinstance(interval, (list, tuple)) or len(interval) != 2 or not all(map(files.is_number, interval)):
        return None
    low, high = (files.number(end) for end in interval)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _of_refusal(study: Study, rung: Rung, event: Event, number: int) -> Attempt:
    reasons = tuple(event["reasons"])
    code = str(reasons[0].get("code", "")) if reasons else ""
    return Attempt(
        row=f"{study.name}/row{number}", rung=rung, status=CODES.get(code, "refused"),
        description=str(event.get("description", "")), reasons=reasons, time=event.time,
        notes=dict(event.get("note") or {}),
    )  # fmt: skip
