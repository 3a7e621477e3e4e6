"""What a person says when a study is begun, and asking for what cannot be inferred."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlx.errors import UsageError
from rlx.study import evaluator
from rlx.study import task as tasks
from rlx.study.prefill import Question
from rlx.study.task import Task


@dataclass(frozen=True)
class Wishes:
    """What a person said when a study was begun; the rest is inferred, or asked for."""

    metric: str | None = None
    guards: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    seeds: int | None = None
    hours: float | None = None
    until: str | None = None
    is_unattended: bool = False
    settings: tuple[str, ...] = ()


Ask = Callable[[str], str]
"""Asks a person a question and returns the answer, empty where there is none."""


def asked(questions: Sequence[Question], ask: Ask, task: Task, wishes: Wishes, root: Path) -> tuple[Task, Wishes]:
    """Ask what cannot be inferred, each until its answer can be read; what is not answered stays open."""
    for question in questions:
        choices = f" ({', '.join(question.choices)})" if question.choices else ""
        text = f"{question.text}{choices}"
        while answer := ask(text):
            try:
                task, wishes = _answered(question, answer, task, wishes, root)
            except UsageError as error:
                text = f"{error.message}; {error.hint}"
            else:
                break
    return task, wishes


def _answered(question: Question, answer: str, task: Task, wishes: Wishes, root: Path) -> tuple[Task, Wishes]:
    """Return task and wishes with an answer in its place."""
    if question.point == "task":
        return _with_mission(task, answer), wishes
    if question.point == "scope":
        return task, _opened(re.split(r"[,\s]+", answer), task, wishes, root)
    if question.point == "budget":
        return task, replace(wishes, hours=_hours(answer))
    name = answer.partition(":")[0]
    if question.choices and name not in question.choices:
        raise UsageError(f"there is no figure `{name}`", hint=f"one of {', '.join(question.choices)}")
    return task, replace(wishes, metric=answer)


def _hours(answer: str) -> float:
    try:
        hours = float(answer)
    except ValueError:
        hours = math.nan
    if not 0 < hours < math.inf:
        raise UsageError(f"`{answer}` is no number of hours", hint="for example 4, or 0.5")
    return hours


def _opened(words: Sequence[str], task: Task, wishes: Wishes, root: Path) -> Wishes:
    """Return wishes with places and keys that may be changed, each told by what it is: a surface, a place or a key."""
    known = evaluator.known_keys(task, root)
    for word in filter(None, words):
        problem = tasks.place_problem(word, root)
        is_key = evaluator.unknown_key(word, known) is None if known else "/" not in word and "::" not in word
        if word in task.surfaces and word != "evaluator":
            wishes = replace(wishes, surfaces=(*wishes.surfaces, word))
        elif problem is None:
            wishes = replace(wishes, paths=(*wishes.paths, word))
        elif is_key and _takes_keys(task):
            wishes = replace(wishes, keys=(*wishes.keys, word))
        else:
            near = tasks.place_meant(word, root) or evaluator.unknown_key(word, known)
            hint = f"did you mean `{near}`?" if near else "a path, file.py::Class, a config key or a surface"
            raise UsageError(f"`{word}` {problem}, and is no key", hint=hint)
    return wishes


def _takes_keys(task: Task) -> bool:
    return task.adapter.kind == "rlx" or any("{overrides}" in word for word in task.adapter.train)


def _with_mission(task: Task, mission: str) -> Task:
    return task.model_copy(update={"card": task.card.model_copy(update={"mission": mission})}) if mission else task
