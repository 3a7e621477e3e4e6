"""Import the plans of other experiment tools as drafts: a task, an unapproved study and candidate files each."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from rlx import files
from rlx.adopt.plans import autorl_state, rlxp_state
from rlx.adopt.plans.foreign_plan import ForeignPlan, PlannedCandidate, PlannedStudy, PlannedTask
from rlx.command import Command, rlx
from rlx.errors import NotFound, RlxError
from rlx.loop.adopt.adopt_repository import FIRST_HOURS, FIRST_SEEDS, slug_of
from rlx.loop.study.describe_task import new_task
from rlx.loop.study.new_study import Wishes, new_study
from rlx.study.candidate.candidate import SCHEMA, Kind
from rlx.study.study_folder import task_folder, task_names
from rlx.study.task.infer_task import Commands

PLANS = {"rlxp": (rlxp_state.FOLDER, rlxp_state.read), "autorl": (autorl_state.FOLDER, autorl_state.read)}
DRAFTS = "drafts"
_KINDS = (
    ("reward engineer", "reward engineering"), ("reward", "reward tuning"), ("generat", "environment generation"),
    ("schedul", "curriculum schedule"), ("curricul", "curriculum sampling"), ("probe", "randomisation probe"),
    ("dr", "randomisation tuning"), ("random", "randomisation tuning"), ("code", "code"),
)  # fmt: skip
_SEED = re.compile(r"(?P<key>(?:^|[.\s-])seed[ =])\s*\d+")


@dataclass
class PlanReport:
    """The drafts that an import made, and what it left behind."""

    format: str
    tasks: list[str] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    approvals: int = 0
    notes: list[str] = field(default_factory=list)


def plan_format(path: Path) -> str | None:
    """Return the format of a plan folder, or of the one inside a repository; None if there is none."""
    for name, (folder, _) in PLANS.items():
        if path.name == folder and path.is_dir():
            return name
    return None


def import_plans(path: Path, *, root: Path, format_name: str) -> PlanReport:
    """Store every task of a plan that is not here yet. Approvals stay behind, and nothing is run."""
    folder_name, read = PLANS[format_name]
    folder = path if path.name == folder_name else path / folder_name
    if not folder.is_dir():
        raise NotFound(f"{path} has no {folder_name} folder", hint=f"rlx import {folder_name}")
    plan: ForeignPlan = read(folder)
    report = PlanReport(format_name, approvals=plan.approvals, notes=plan.notes)
    for task in plan.tasks:
        name = slug_of(task.name)
        if name in task_names(root):
            report.present.append(name)
            continue
        _store(task, name, root, report)
    return report


def _store(task: PlannedTask, name: str, root: Path, report: PlanReport) -> None:
    if not task.train:
        report.notes.append(f"{name}: no training command is written there: rlx adopt drafts one")
        return
    mission = task.mission or f"Continue {name} of {report.format}."
    commands = Commands(
        train=_argv(task.train, "{overrides}"), eval=_argv(task.eval), prefix=tuple(shlex.split(task.prefix)),
        mission=mission,
    )  # fmt: skip
    try:
        new_task(root, name, commands=commands)
    except RlxError as error:
        report.notes.append(f"{name}: {error.message}")
        return
    report.tasks.append(name)
    for study in task.studies:
        _store_study(study, name, root, report)


def _argv(command: str, *more: str) -> tuple[str, ...]:
    """Return a command as words, with its seed as a placeholder."""
    try:
        words = shlex.split(_SEED.sub(lambda match: f"{match['key']}{{seed}}", command))
    except ValueError:
        words = command.split()
    return (*words, *(word for word in more if words and word not in words))


def _store_study(study: PlannedStudy, task: str, root: Path, report: PlanReport) -> None:
    """Write the candidates and the history as files, and the contract as an unapproved study."""
    name = slug_of(study.name)
    folder = task_folder(root, task) / DRAFTS / name
    for candidate in study.candidates:
        path = folder / f"{slug_of(candidate.name)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, _document(candidate))
        report.candidates.append(path.relative_to(root).as_posix())
    if study.ledger:
        folder.mkdir(parents=True, exist_ok=True)
        files.write_atomic(folder / "history.jsonl", b"".join(files.encode(row) + b"\n" for row in study.ledger))
    direction = ":min" if study.is_minimized else ""
    wishes = Wishes(
        metric=f"{study.metric}{direction}" if study.metric else None, paths=tuple(study.paths), keys=tuple(study.keys),
        seeds=study.seeds or FIRST_SEEDS, hours=study.hours or FIRST_HOURS,
    )  # fmt: skip
    try:
        new_study(root, name, wishes, task=task)
    except RlxError as error:
        report.notes.append(f"study {name}: {error.message}; then type {_new_study(name, task, wishes)}")
        return
    report.studies.append(f"{task}/{name}")
    report.notes += [f"study {name}: add the guardrail `{guardrail}` yourself" for guardrail in study.guardrails]


def _new_study(name: str, task: str, wishes: Wishes) -> Command:
    """Return the command that drafts the study later."""
    command = rlx("study", "new", name, "--task", task, "--seeds", str(wishes.seeds), "--hours", str(wishes.hours))
    if wishes.metric:
        command = command.plus("--metric", wishes.metric)
    for path in wishes.paths:
        command = command.plus("--edit", path)
    for key in wishes.keys:
        command = command.plus("--key", key)
    return command


def _document(candidate: PlannedCandidate) -> dict[str, object]:
    text = candidate.hypothesis or f"taken over from {candidate.name}"
    if candidate.status:
        text += f" (status there: {candidate.status})"
    return {
        "schema": SCHEMA, "id": slug_of(candidate.name), "kind": _kind(candidate), "hypothesis": text,
        "changes": candidate.changes,
    }  # fmt: skip


def _kind(candidate: PlannedCandidate) -> str:
    words = candidate.kind.lower().replace("_", " ").replace("-", " ")
    if words in get_args(Kind):
        return words
    for mark, kind in _KINDS:
        if mark in words:
            return kind
    return "hyperparameter"
