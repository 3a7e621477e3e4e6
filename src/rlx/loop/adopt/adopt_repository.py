"""Adopt a repository: scan it, draft its task, store the draft, and say what to do next."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.adopt.draft import Draft, draft_of
from rlx.adopt.eval_templates import FILE as EVAL_FILE
from rlx.adopt.eval_templates import use_eval_script, write_eval_script
from rlx.adopt.scan import Scan, scan
from rlx.command import Command, rlx
from rlx.errors import NotFound, Refused
from rlx.launch import adopt_smoke
from rlx.loop.study.describe_task import store_task
from rlx.study.study_folder import task_folder
from rlx.study.task.task_from_scan import task_from_scan

FIRST_SEEDS = 40
FIRST_HOURS = 4
"""The budget of the proposed first study."""


@dataclass(frozen=True)
class AdoptWishes:
    """What `adopt` should do besides the report."""

    program: str | None = None
    writes: bool = False
    writes_eval: bool = False
    smokes: bool = False
    smoke_seconds: float = adopt_smoke.SECONDS
    name: str | None = None
    mission: str = ""
    replaces: bool = False

    @property
    def needs_draft(self) -> bool:
        return bool(self.program or self.writes or self.writes_eval or self.smokes)


def adopt(folder: Path, wishes: AdoptWishes) -> dict[str, Any]:
    """Scan a repository and draft its task; store the draft, write an evaluation or try the training as wished."""
    found = scan(folder)
    draft: Draft | None = None
    try:
        draft = draft_of(found, program=wishes.program)
    except NotFound:
        if wishes.needs_draft:
            raise
    name = wishes.name or slug_of(found.root.name)
    file = ""
    eval_file = ""
    smoke: dict[str, Any] | None = None
    if draft is not None:
        if wishes.writes_eval:
            eval_file = _write_eval(found, draft, replaces=wishes.replaces)
        if wishes.writes or wishes.smokes:
            task = task_from_scan(found, draft, name=name, mission=wishes.mission)
            if wishes.smokes:
                smoke = adopt_smoke.smoke(found, draft, task, seconds=wishes.smoke_seconds)
            if wishes.writes:
                store_task(found.root, task, replaces=wishes.replaces)
                file = (task_folder(found.root, name) / "task.yaml").relative_to(found.root).as_posix()
    return {
        **found.document(),
        "draft": _document(draft) if draft else None,
        "task": name,
        "task_file": file,
        "eval_file": eval_file,
        "smoke": smoke,
        "command": str(next_command(found, draft, name, is_written=bool(file))),
    }


def _write_eval(found: Scan, draft: Draft, *, replaces: bool) -> str:
    path = write_eval_script(found, draft, replaces=replaces)
    if path is None:
        raise Refused(f"{EVAL_FILE} exists already", hint="the same command with --replace overwrites it")
    use_eval_script(draft)
    return EVAL_FILE


def slug_of(text: str) -> str:
    """Return a folder's name as the name of a task."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:64] or "task"


def _document(draft: Draft) -> dict[str, Any]:
    metrics = ""
    if draft.metrics is not None:
        metrics = f"{draft.metrics.reader} {draft.metrics.path}".strip()
    length = ""
    if draft.unit:
        length = f"{draft.steps or 'unknown'} ({draft.unit})"
    notes = [*draft.profile.notes]
    if draft.profile.seed_spacing:
        notes.append(draft.profile.seed_spacing)
    return {
        "program": draft.program.file,
        "train": shlex.join([*draft.prefix, *draft.train]),
        "argv": [*draft.prefix, *draft.train],
        "metrics": metrics,
        "names": dict(draft.metrics.names) if draft.metrics else {},
        "cwd": draft.cwd,
        "steps": draft.steps,
        "length": length,
        "override": draft.override,
        "notes": notes,
        "questions": [question.document() for question in draft.questions],
    }


def next_command(found: Scan, draft: Draft | None, task: str, *, is_written: bool) -> Command:
    """Return the next command: write the draft, or start its first study."""
    if draft is None:
        return rlx("task", "new", "NAME", "--train", "COMMAND")
    if not is_written:
        return rlx("adopt", str(found.root), "--write")
    metric = "METRIC"
    if draft.eval:
        metric = "return"
    elif draft.metrics is not None:
        metric = next(iter(draft.metrics.names), "METRIC")
    new = rlx("study", "new", "first", "--task", task, "--metric", metric, "--surface", "hyperparameters")
    return new.plus("--seeds", str(FIRST_SEEDS), "--hours", str(FIRST_HOURS))
