"""The candidates that were tried, one line each: the change, the score, the effect, the decision and the lesson.

The lines of earlier studies of the same task come first, so that a new study begins with their lessons.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.errors import RlxError
from rlx.number_format import counted, figure, signed
from rlx.study.candidate.candidate import BASELINE, Candidate
from rlx.study.candidate.config_changes import flat_keys, is_close
from rlx.study.ledger.records import Standing
from rlx.study.ledger.state import State
from rlx.study.study_folder import Study, list_studies
from rlx.study.verdict_words import verdict_words

FAILED = ("rejected", "debug", "reverted")
"""The states of ideas that did not work."""
SHOWN = 6
"""How many lines are shown in full; older ones are counted."""
LONGEST_CHANGE = 70


@dataclass(frozen=True)
class Lesson:
    """One candidate that was tried, in this study or an earlier one (then `study` names it)."""

    candidate: str
    study: str
    changes: Mapping[str, Any]
    text: str
    state: str
    score: float | None
    effect: float | None
    against: str
    learned: str

    @property
    def name(self) -> str:
        return f"{self.study}/{self.candidate}" if self.study else self.candidate

    @property
    def line(self) -> str:
        """The lesson in one line."""
        score = "" if self.score is None else f": {figure(self.score)}"
        effect = "" if self.effect is None else f" ({signed(self.effect)} v {self.against})"
        return f"{self.name} {self.text}{score}{effect} {self.state}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {"candidate": self.name, "change": self.text, "score": self.score, "effect": self.effect,
                "against": self.against, "state": self.state, "learned": self.learned}  # fmt: skip


def mean_score(state: State, name: str) -> float | None:
    """Return the mean score of a candidate in the search: on fresh seeds if it has some, else those it raced with."""
    for phase in ("baseline", "promotion", "trial"):
        scores = list(state.usable(name, phase).values())
        if scores:
            return sum(scores) / len(scores)
    return None


def change_text(candidate: Candidate) -> str:
    """Return a candidate's change in a few words: its keys with their values, else its hypothesis."""
    changes = flat_keys(candidate.changes)
    text = ", ".join(f"{short_key(key)}={json.dumps(value)}" for key, value in changes.items())
    if not text:
        text = " ".join(candidate.hypothesis.split())
    return shortened(text, LONGEST_CHANGE)


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters; one that was cut ends with `…`."""
    if len(text) <= most:
        return text
    return f"{text[: most - 1]}…"


def rounded(value: object) -> float | None:
    """Return a number with four digits, which is enough to read; None for anything else."""
    if not isinstance(value, (int, float)):
        return None
    return float(f"{value:.4g}")


def short_key(key: str) -> str:
    """Return the last part of a key, which is what people call it."""
    return key.rpartition(".")[2]


def lessons(study: Study, state: State, *, has_earlier: bool = True) -> list[Lesson]:
    """Return every candidate that was tried: those of earlier studies of the same task, then this study's."""
    found = earlier_lessons(study) if has_earlier else []
    return [*found, *_own_lessons(study, state, label="")]


def earlier_lessons(study: Study) -> list[Lesson]:
    """Return what the other studies of the same task tried; one that cannot be read teaches nothing."""
    found: list[Lesson] = []
    for other in list_studies(study.root):
        if other.task_name != study.task_name or other.name == study.name:
            continue
        try:
            found += _own_lessons(other, other.state(), label=other.name)
        except RlxError:
            continue
    return found


def _own_lessons(study: Study, state: State, *, label: str) -> list[Lesson]:
    return [_lesson(study, state, standing, label) for standing in state.candidates.values() if _is_tried(standing)]


def _is_tried(standing: Standing) -> bool:
    return bool(standing.decisions) or standing.state in FAILED


def _lesson(study: Study, state: State, standing: Standing, label: str) -> Lesson:
    candidate = study.candidate(standing.id)
    effect: float | None = None
    against = ""
    learned = "it did not run"
    if standing.decisions:
        last = standing.decisions[-1]
        against = str(last.get("against", ""))
        value = last.get("effect")
        if isinstance(value, (int, float)) and math.isfinite(value):
            effect = float(value)
        learned = verdict_words(str(last["decision"]), last.fields)
    return Lesson(standing.id, label, flat_keys(candidate.changes), change_text(candidate), standing.state,
                  mean_score(state, standing.id), effect, against, learned)  # fmt: skip


def told_lines(found: Sequence[Lesson], *, most: int = SHOWN) -> list[str]:
    """Return the newest lessons as lines; older ones are counted by their result."""
    newest = list(found)[-most:]
    older = list(found)[: len(found) - len(newest)]
    lines = [lesson.line for lesson in newest]
    if older:
        counts: dict[str, int] = {}
        for lesson in older:
            counts[lesson.state] = counts.get(lesson.state, 0) + 1
        summed = ", ".join(f"{count} {state}" for state, count in counts.items())
        lines.insert(0, f"{counted(len(older), 'earlier candidate')}: {summed}")
    return lines


def repeats(changes: Mapping[str, Any], found: Sequence[Lesson]) -> list[Lesson]:
    """Return the earlier candidates that made the same change, whatever they were built on."""
    flat = flat_keys(changes)
    return [lesson for lesson in found if flat and is_close(flat, dict(lesson.changes))]


def repeat_note(lesson: Lesson) -> str:
    """Say that a change was tried before, and with which result."""
    on = f" (built on another head, against {lesson.against})" if lesson.against not in ("", BASELINE) else ""
    return f"{lesson.name} made the same change{on}: {lesson.state}, {lesson.learned}"
