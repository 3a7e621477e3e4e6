"""How a task comes into being: derived or drafted, replaced, refreshed, shown."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config.yaml_lines import Document
from rlx.errors import ConfigError, NotFound, Refused, UsageError
from rlx.loop import stale
from rlx.loop.amending import looked_at, setting
from rlx.loop.overview import noticed
from rlx.runs.project import runs_folder
from rlx.study import contract as contracts
from rlx.study import derive
from rlx.study import document as documents
from rlx.study import task as tasks
from rlx.study.changes import laid
from rlx.study.contract import Contract
from rlx.study.study import Study, studies, task_folder, task_names, valid_name
from rlx.study.task import Task


def new_task(
    root: Path, name: str, *, config: Path | None = None, commands: derive.Commands | None = None,
    mission: str = "", replaces: bool = False,
) -> Task:  # fmt: skip
    """Write a task, derived from an rlx config or drafted from commands; one that is there only where it is replaced.

    Studies of a task that is replaced have its definition to look at again.
    """
    valid_name(name, kind="task")
    if name in task_names(root):
        _refuse_replacing(root, name, replaces=replaces)
    if config is not None:
        task = derive.task_of(config, root=root, name=name, mission=mission)
    else:
        assert commands is not None
        task = derive.task_from_commands(commands, root=root, name=name)
    write_task(root, task)
    return task


def _refuse_replacing(root: Path, name: str, *, replaces: bool) -> None:
    if not replaces:
        hint = f"rlx task refresh {name} reads its files again; the same command with --replace writes it anew"
        raise Refused(f"task `{name}` is there already", hint=hint)
    _refuse_approved(root, name)


def write_task(root: Path, task: Task) -> None:
    path = task_folder(root, task.name) / tasks.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore(root)
    files.write_atomic(path, tasks.dump(task).encode())


def _refuse_approved(root: Path, task: str) -> None:
    """Refuse to change a task that a study was approved on."""
    study = stale.approved(root, task)
    if study is not None:
        raise Refused(f"study `{study.name}` was approved on task `{task}` as it was", hint=stale.put_back(study))


def refresh_task(root: Path, name: str | None, *, mission: str | None = None, changes: Sequence[str] = ()) -> Task:
    """Read a task's facts again from the files as they are, unless a study of it was approved on the old ones.

    With a mission, that is what the task is about from now on; changes (`adapter.metrics.step=iteration`) are its keys.
    Studies whose point this settles have it confirmed.
    """
    task = _changed(root, find_task(root, name), changes)
    _refuse_approved(root, task.name)
    if task.adapter.config is not None:
        facts = derive.task_of(root / task.adapter.config, root=root, name=task.name).facts
    else:
        there = [one for one in task.facts if (root / one.file).is_file()]
        facts = tuple(derive.fact(one.what, one.file, root=root, line=one.line) for one in there)
        task = derive.told_anew(task, root)
    card = task.card if mission is None else task.card.model_copy(update={"mission": mission})
    task = task.model_copy(update={"facts": facts, "card": card})
    looked_at = [(one, _refreshed(one, task)) for one in studies(root) if one.task_name == task.name]
    write_task(root, task)
    for study, contract in looked_at:
        files.write_atomic(study.contract_path, contracts.dump(contract).encode())
        noticed(study)
    return task


def _changed(root: Path, task: Task, changes: Sequence[str]) -> Task:
    """Return a task with other values of some keys."""
    if not changes:
        return task
    document = documents.load(task_folder(root, task.name) / tasks.FILE, sort=tasks.SORT)
    wanted = {key: value for text in changes for key, value in [_task_setting(text)]}
    changed = documents.build(Document(document.source, laid(document.data, wanted), document.places), Task)
    if changed.name != task.name:
        raise Refused("a task keeps its name", hint="rlx task new NAME")
    return changed


def _task_setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; a template such as `{out}/*/model_*.pt`, which is no YAML, is text as it is typed."""
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
    return looked_at(study, contract, {"task"}, task)


_NO_TASK = "rlx task new NAME --config FILE, or --train COMMAND for a repository that trains with its own"


def find_task(root: Path, name: str | None) -> Task:
    """Return the task that is named, else the only one."""
    known = task_names(root)
    if name is None and len(known) == 1:
        name = known[0]
    if name is None:
        hint = f"name one: {', '.join(known)}" if known else _NO_TASK
        raise UsageError("which task?", hint=hint) if known else NotFound("there is no task here", hint=hint)
    path = task_folder(root, name) / "task.yaml"
    if not path.is_file():
        hint = f"there are {', '.join(known)}" if known else _NO_TASK
        raise NotFound(f"no task `{name}`", hint=hint)
    return tasks.read(path)


def describe(root: Path, name: str | None) -> dict[str, Any]:
    """Return a task for people: what it is, and what of it is missing or stale."""
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
    has_study = any(one.task_name == task.name for one in studies(root))
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
    """Return what follows a task: its study, and before that, what its facts are read from once more."""
    if has_study:
        return "rlx next"
    return f"rlx task refresh {task.name}" if any(tasks.stale(task, root)) else f"rlx study new NAME --task {task.name}"


def ignore(root: Path) -> None:
    """Keep what rlx writes out of the project's own git; a `runs` that is there already may be somebody else's."""
    for folder in (root / ".rlx", runs_folder(root)):
        is_ours = folder.name == ".rlx" or not folder.exists()
        if is_ours and not (folder / ".gitignore").exists():
            folder.mkdir(exist_ok=True)
            files.write_atomic(folder / ".gitignore", b"*\n")
