"""The open points of a study's contract and what settles them, also when files of its task have changed."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path

from rlx import external_programs, files
from rlx.command import Command, rlx, shell
from rlx.errors import RlxError
from rlx.launch.study_jobs.launch_facts import blocked, is_applied
from rlx.study.contract import contract_checks
from rlx.study.contract.contract import Contract
from rlx.study.contract.contract_checks import OpenPoint
from rlx.study.ledger.state import State
from rlx.study.refusal import Refusal
from rlx.study.study_folder import Study, list_studies
from rlx.study.task import task as tasks
from rlx.study.task.task import Fact, Task


def open_points(study: Study, state: State, contract: Contract) -> tuple[Refusal, ...]:
    """Return why points are not settled. Until an approval, a passed deadline is an open point too."""
    task = study.task()
    points = list(contract_checks.problems(contract, task, root=study.root))
    if is_applied(study, state):
        refresh = rlx("task", "refresh", study.task_name)
        points = [point for point in points if point.fix != refresh]  # the files have the confirmed change
    elif any(tasks.stale_facts(task, study.root)):
        points = _restoring(study, points)
    if state.approval is None:
        points += contract_checks.overdue(contract, now=time.time())
    return tuple(map(blocked, points))


def _restoring(study: Study, points: list[OpenPoint]) -> list[OpenPoint]:
    """Return the points of a stale task. If a study was approved on its files, they are restored, not read again."""
    owner = approved_study(study.root, study.task_name)
    if owner is None:
        return points
    refresh = rlx("task", "refresh", study.task_name)
    restore = _restore_command(owner)
    edited = ", ".join(_uncommitted(owner))
    note = ""
    if restore is None:
        note = f"; describe {_other_task(owner.task())}"
    elif edited:
        note = f"; a person does this: the edits in {edited} are in no commit, and git stashes them"
    restored = []
    for point in points:
        if point.fix == refresh:
            point = replace(point, message=point.message + note, fix=restore or "")
        restored.append(point)
    return restored


def approved_study(root: Path, task: str) -> Study | None:
    """Return a study that was approved on a task."""
    known = [study for study in list_studies(root) if study.task_name == task]
    return next((study for study in known if study.state().approval is not None), None)


def stale_task_hint(root: Path, task: str) -> str:
    """Return what helps if a task's files have changed."""
    study = approved_study(root, task)
    if study is None:
        return str(rlx("task", "refresh", task))
    other = _other_task(study.task())
    return f"for the files as they are, {other}; to go on with `{study.name}`, {restore_hint(study)}"


def restore_hint(study: Study) -> str:
    """Return what makes a stale task of an approved study true again, else how to describe another task."""
    command = _restore_command(study)
    if command is None:
        return f"describe {_other_task(study.task())}"
    return f"restore its files: {command}"


def _other_task(task: Task) -> str:
    source = f"--config {shlex.quote(task.adapter.config)}" if task.adapter.config else "--train COMMAND"
    return f"another task: rlx task new NAME {source}"


def _restore_command(study: Study) -> Command | None:
    """Return the command that restores a task's files; None if the pinned commit has other contents, too."""
    changed, baseline = _changed_facts(study), study.contract().baseline
    if is_applied(study, study.state()):  # to restore them would undo it
        return None
    if not changed or baseline is None or not all(_is_in(baseline.commit, fact, study.root) for fact in changed):
        return None
    checkout = shlex.join(
        ("git", "checkout", baseline.commit[:12], "--", *dict.fromkeys(fact.file for fact in changed))
    )
    edited = _uncommitted(study)
    if not edited:
        return shell(checkout)
    return shell(f"{shlex.join(('git', 'stash', 'push', '--all', '--', *edited))} && {checkout}", needs_person=True)


def _changed_facts(study: Study) -> list[Fact]:
    """Return the facts of a task whose files have changed."""
    task = study.task()
    return [
        fact for fact in task.facts if any(tasks.stale_facts(task.model_copy(update={"facts": (fact,)}), study.root))
    ]


def _uncommitted(study: Study) -> list[str]:
    """Return the changed files of a task whose contents are in no commit: to restore them would lose the edits."""
    names = dict.fromkeys(fact.file for fact in _changed_facts(study))
    return [name for name in names if (study.root / name).is_file() and _is_edited(name, study.root)]


def _is_edited(name: str, root: Path) -> bool:
    try:
        return external_programs.git_bytes("show", f"HEAD:./{name}", folder=root) != files.read_bytes(root / name)
    except RlxError:
        return True  # the last commit has no such file


def _is_in(commit: str, fact: Fact, root: Path) -> bool:
    """Whether a commit has a file with the contents that the fact was read from."""
    try:
        return files.sha256(external_programs.git_bytes("show", f"{commit}:./{fact.file}", folder=root)) == fact.sha256
    except RlxError:
        return False
