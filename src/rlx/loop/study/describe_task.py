"""Describe a task: infer it from a config or commands, replace it, refresh it, show it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.yaml_lines import Document
from rlx.errors import ConfigError, NotFound, Refused, UsageError
from rlx.loop.study.amend import confirm_changed, setting
from rlx.loop.study.open_points import approved_study, restore_hint
from rlx.loop.study.study_status import notice_amendment
from rlx.runs import project
from rlx.runs.project import runs_folder
from rlx.study.candidate.config_changes import apply_changes
from rlx.study.contract import contract as contracts
from rlx.study.contract import document as documents
from rlx.study.contract.contract import Contract
from rlx.study.study_folder import Study, list_studies, task_folder, task_names, valid_name
from rlx.study.task import infer_task
from rlx.study.task import task as tasks
from rlx.study.task.task import Task


def new_task(
    root: Path, name: str, *, config: Path | None = None, commands: infer_task.Commands | None = None,
    mission: str = "", replaces: bool = False,
) -> Task:  # fmt: skip
    """Write a task, inferred from an rlx config or from commands; `replaces` allows it to overwrite an existing one.

    The studies of a replaced task must confirm its definition again.
    """
    _refuse_taken(root, name, replaces=replaces)
    if config is not None:
        task = infer_task.task_from_config(config, root=root, name=name, mission=mission)
    else:
        assert commands is not None
        task = infer_task.task_from_commands(commands, root=root, name=name)
    write_task(root, task)
    return task


def store_task(root: Path, task: Task, *, replaces: bool = False) -> None:
    """Write a task that was inferred elsewhere, under the same rules as a new one."""
    _refuse_taken(root, task.name, replaces=replaces)
    write_task(root, task)


def _refuse_taken(root: Path, name: str, *, replaces: bool) -> None:
    valid_name(name, kind="task")
    if name in task_names(root):
        _refuse_replacing(root, name, replaces=replaces)


def _refuse_replacing(root: Path, name: str, *, replaces: bool) -> None:
    if not replaces:
        hint = f"rlx task refresh {name} reads its files again; the same command with --replace overwrites it"
        raise Refused(f"task `{name}` exists already", hint=hint)
    _refuse_approved(root, name)


def write_task(root: Path, task: Task) -> None:
    path = task_folder(root, task.name) / tasks.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore(root)
    files.write_atomic(path, tasks.dump(task).encode())
    project.mark_own(root)


def _refuse_approved(root: Path, task: str) -> None:
    """Refuse to change a task that an approved study uses."""
    study = approved_study(root, task)
    if study is not None:
        raise Refused(f"study `{study.name}` was approved on task `{task}` as it was", hint=restore_hint(study))


def refresh_task(root: Path, name: str | None, *, mission: str | None = None, changes: Sequence[str] = ()) -> Task:
    """Read a task's facts again from its files, unless a study was approved on the old ones.

    A mission replaces the task's mission; changes set its keys (`adapter.metrics.step=iteration`). If this settles a
    point of a study, the point is confirmed.
    """
    task = _changed(root, find_task(root, name), changes)
    _refuse_approved(root, task.name)
    if task.adapter.config is not None:
        facts = infer_task.task_from_config(root / task.adapter.config, root=root, name=task.name).facts
    else:
        there = [one for one in task.facts if (root / one.file).is_file()]
        facts = tuple(infer_task.fact(one.what, one.file, root=root, line=one.line) for one in there)
        task = infer_task.reread(task, root)
    card = task.card if mission is None else task.card.model_copy(update={"mission": mission})
    task = task.model_copy(update={"facts": facts, "card": card})
    looked_at = [(one, _refreshed(one, task)) for one in list_studies(root) if one.task_name == task.name]
    write_task(root, task)
    for study, contract in looked_at:
        files.write_atomic(study.contract_path, contracts.dump(contract).encode())
        notice_amendment(study)
    return task


def copy_task(root: Path, name: str, new_name: str, *, mission: str | None = None, changes: Sequence[str] = ()) -> Task:
    """Write a copy of a task under another name, and read its facts again; the original and its studies stay."""
    original = find_task(root, name)
    store_task(root, original.model_copy(update={"name": new_name}))
    return refresh_task(root, new_name, mission=mission, changes=changes)


def _changed(root: Path, task: Task, changes: Sequence[str]) -> Task:
    """Return a task with other values of some keys."""
    if not changes:
        return task
    document = documents.load(task_folder(root, task.name) / tasks.FILE, kind=tasks.FILE_KIND)
    wanted = {key: value for text in changes for key, value in [_task_setting(text)]}
    changed = documents.build(Document(document.source, apply_changes(document.data, wanted), document.places), Task)
    if changed.name != task.name:
        raise Refused("a task keeps its name", hint="rlx task new NAME")
    return changed


def _task_setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; a template such as `{out}/*/model_*.pt` is not YAML, so it stays as typed."""
    try:
        return setting(text)
    except ConfigError:
        key, _, value = text.partition("=")
        if not tasks.placeholders(value):
            raise
        return key.strip(), value


def _refreshed(study: Study, task: Task) -> Contract:
    """Return a study's contract for its task as it is now."""
    contract = study.contract().model_copy(update={"task_sha256": tasks.sha256(task)})
    return confirm_changed(study, contract, {"task"}, task)


_NO_TASK = "rlx task new NAME --config FILE, or --train COMMAND for a repository that trains with its own"


def find_task(root: Path, name: str | None) -> Task:
    """Return the named task, or the only one."""
    known = task_names(root)
    if name is None and len(known) == 1:
        name = known[0]
    if name is None:
        hint = f"name one: {', '.join(known)}" if known else _NO_TASK
        raise UsageError("which task?", hint=hint) if known else NotFound("this project has no task", hint=hint)
    path = task_folder(root, name) / "task.yaml"
    if not path.is_file():
        hint = f"there are {', '.join(known)}" if known else _NO_TASK
        raise NotFound(f"no task `{name}`", hint=hint)
    return tasks.read(path)


def describe(root: Path, name: str | None) -> dict[str, Any]:
    """Return a task for people, with its problems."""
    task = find_task(root, name)
    adapter = task.adapter
    told = {
        "config": adapter.config,
        "train": shlex.join((*adapter.prefix, *adapter.train)),
        "eval": shlex.join((*adapter.prefix, *adapter.eval)) if adapter.eval else "",
        "metrics": f"{adapter.metrics.reader} {adapter.metrics.path}" if adapter.metrics else "",
        "checkpoint": adapter.checkpoint,
        "launcher": adapter.launcher.executor,
    }
    problems = tasks.problems(task, root)
    has_study = any(one.task_name == task.name for one in list_studies(root))
    return {
        "task": task.name,
        "kind": adapter.kind,
        "mission": task.card.mission,
        "adapter": {key: value for key, value in told.items() if value},
        "surfaces": {name: [*place.paths, *place.keys] for name, place in task.surfaces.items()},
        "facts": len(task.facts),
        "problems": list(problems),
        "file": (task_folder(root, task.name) / "task.yaml").relative_to(root).as_posix(),
        "command": _after_task(root, task, has_study=has_study),
    }


def _after_task(root: Path, task: Task, *, has_study: bool) -> str:
    """Return the command that follows a task: a refresh if it is stale, else its study."""
    if has_study:
        return "rlx next"
    return (
        f"rlx task refresh {task.name}"
        if any(tasks.stale_facts(task, root))
        else f"rlx study new NAME --task {task.name}"
    )


def ignore(root: Path) -> None:
    """Keep rlx's files out of the project's git. An existing `runs` folder may belong to another tool."""
    for folder in (root / ".rlx", runs_folder(root)):
        is_ours = folder.name == ".rlx" or not folder.exists()
        if is_ours and not (folder / ".gitignore").exists():
            folder.mkdir(exist_ok=True)
            files.write_atomic(folder / ".gitignore", b"*\n")
