"""What helps a task whose files changed: to read them again, or to put them back where a study was approved on them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlx import files, tools
from rlx.errors import RlxError
from rlx.study import task as tasks
from rlx.study.points import Problem
from rlx.study.study import Study, studies
from rlx.study.task import Fact, Task


def approved(root: Path, task: str) -> Study | None:
    """Return a study that was approved on a task."""
    known = [one for one in studies(root) if one.task_name == task]
    return next((one for one in known if one.state().approval is not None), None)


def helps(root: Path, task: str) -> str:
    """Return what helps a task whose files changed: to read them again, unless a study was approved on the old ones."""
    study = approved(root, task)
    if study is None:
        return f"rlx task refresh {task}"
    return f"for the files as they are, {_another(study.task())}; to go on with `{study.name}`, {put_back(study)}"


def put_back(study: Study) -> str:
    """Return what makes a task that went stale under an approved study true again; else how another one is begun."""
    command = _checkout(study)
    return f"put it back: {command}" if command else f"describe {_another(study.task())}"


def settled(study: Study, problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return a contract's problems with what settles them now: a task that was approved on is not read again."""
    refresh = f"rlx task refresh {study.task_name}"
    if not any(one.hint == refresh for one in problems):
        return tuple(problems)
    owner = approved(study.root, study.task_name)
    if owner is None:
        return tuple(problems)
    hint = _checkout(owner) or f"describe {_another(owner.task())}"
    edited = ", ".join(_edits(owner)) if hint.startswith("git ") else ""
    told = f"; a person does this: what was edited in {edited} is in no commit, and is put aside" if edited else ""
    return tuple(replace(one, says=one.says + told, hint=hint) if one.hint == refresh else one for one in problems)


def _another(task: Task) -> str:
    config = task.adapter.config
    return f"another task: rlx task new NAME {f'--config {shlex.quote(config)}' if config else '--train COMMAND'}"


def _checkout(study: Study) -> str:
    """Return the command that puts a task's files back; empty where the pinned commit has them otherwise, too."""
    gone, baseline = _gone(study), study.contract().baseline
    if not gone or baseline is None or not all(_is_in(baseline.commit, one, study.root) for one in gone):
        return ""
    edited = _edits(study)
    keeps = f"git stash push --all -- {shlex.join(edited)} && " if edited else ""
    return f"{keeps}git checkout {baseline.commit[:12]} -- {shlex.join(dict.fromkeys(one.file for one in gone))}"


def _gone(study: Study) -> list[Fact]:
    """Return what a task was read from and is no longer so."""
    task = study.task()
    return [one for one in task.facts if any(tasks.stale(task.model_copy(update={"facts": (one,)}), study.root))]


def _edits(study: Study) -> list[str]:
    """Return the files of a task that went stale by what no commit has: to put them back would lose it."""
    return [name for name in dict.fromkeys(one.file for one in _gone(study)) if _is_edited(name, study.root)]


def _is_edited(name: str, root: Path) -> bool:
    if not (root / name).is_file():
        return False
    try:
        return tools.git_bytes("show", f"HEAD:./{name}", folder=root) != files.read_bytes(root / name)
    except RlxError:
        return True  # the last commit has no such file


def _is_in(commit: str, fact: Fact, root: Path) -> bool:
    """Say whether a commit has a file as the fact was read from it."""
    try:
        return files.sha256(tools.git_bytes("show", f"{commit}:./{fact.file}", folder=root)) == fact.sha256
    except RlxError:
        return False
