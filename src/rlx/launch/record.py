"""What ran is what was checked: modules in scope that a job loaded from elsewhere, or that were other files then.

An editable install, a build that lies about, or a package that was installed from the same sources would run in the
place of the candidate's files, and a change that never ran would be measured; so would one that was edited meanwhile.
A module's file is read when its process ends. What is not covered: files that are edited and put back before that, code
that hides what it loaded, files that are read and not imported, processes that were killed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from rlx.runs import loaded, recorder
from rlx.runs.loaded import Module
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study import patterns
from rlx.study.contract import Contract, allowed
from rlx.study.task import Task

PACKAGE = "__init__"
SOURCES = (".py", ".pyx", ".pyw")


def record_of(run: Run) -> tuple[Module, ...]:
    """Return what the processes of all seeds of a run loaded."""
    return tuple(dict.fromkeys(module for seed in run.seeds for module in loaded.read(seed.folder).modules))


def unrecorded(run: Run) -> tuple[int, ...]:
    """Return the completed seeds of which no process has said what it loaded."""
    completed = [seed for seed in run.seeds if seed.status.state == COMPLETED]
    return tuple(seed.number for seed in completed if not loaded.read(seed.folder).modules)


def problems(run: Run, *, worktree: Path, root: Path, contract: Contract, task: Task) -> tuple[str, ...]:
    """Say why what a run measured may not be the candidate: modules from elsewhere, seeds that did not tell."""
    silent = [f"no process of seed {seed} told which modules it loaded" for seed in unrecorded(run)]
    damaged = [f"seed {seed.number}: {says}" for seed in run.seeds for says in loaded.read(seed.folder).damage]
    record = record_of(run)
    found = elsewhere(record, worktree, root, files_in_scope(worktree, contract, task))
    return tuple(f"{run.name}: {says}" for says in (*silent, *damaged, *found, *edited(record, worktree)))


def edited(record: Iterable[Module], worktree: Path) -> tuple[str, ...]:
    """Name the modules of a worktree that were another file when they ran than the one that is there now."""
    tree = worktree.resolve()
    own = [module for module in record if _real(module.file).is_relative_to(tree)]
    return tuple(
        f"{module.name} ran from another {_real(module.file).relative_to(tree).as_posix()} than was checked"
        for module in own
        if module.sha256 != recorder.digest(str(module.file))
    )


def files_in_scope(worktree: Path, contract: Contract, task: Task) -> tuple[str, ...]:
    """Return the source files of a worktree that the contract lets candidates change, whole or in a region."""
    opened = allowed(contract.scope, task).paths if contract.scope else ()
    patterns_ = [patterns.split(one)[0] for one in opened]
    sources = (path.relative_to(worktree).as_posix() for path in worktree.rglob("*") if path.suffix in SOURCES)
    return tuple(sorted(path for path in sources if any(patterns.covers_path(one, path) for one in patterns_)))


def elsewhere(record: Iterable[Module], worktree: Path, root: Path, in_scope: Collection[str]) -> tuple[str, ...]:
    """Name modules that came from elsewhere: files in scope (worktree paths) by name, files of the project by place."""
    tree, project = worktree.resolve(), root.resolve()
    names = {name: path for path in in_scope for name in module_names(path, tree)}
    found = []
    for module in record:
        file = _real(module.file)
        if file.is_relative_to(tree):
            continue
        path = _twin(project, file, tree) or names.get(module.name)
        if path is not None:
            found.append(f"{module.name} ({path}) was loaded from {file}")
    return tuple(dict.fromkeys(found))


def _real(file: Path) -> Path:
    """Return where a file lies; a job may name links that lead in a circle, which `Path.resolve` raises for."""
    return Path(os.path.realpath(file))


def _twin(project: Path, file: Path, tree: Path) -> str | None:
    """Return the path of a file of the project itself that the worktree has, too."""
    path = file.relative_to(project) if file.is_relative_to(project) else None
    return path.as_posix() if path is not None and (tree / path).is_file() else None


def module_names(path: str, tree: Path) -> tuple[str, ...]:
    """Return the names a source file can be imported by: from the first folder that is no package, or from above."""
    file = PurePosixPath(path)
    if file.suffix not in SOURCES:
        return ()
    parts = list(file.parent.parts if file.stem == PACKAGE else (*file.parent.parts, file.stem))
    first = len(file.parent.parts)
    while first > 0 and (tree.joinpath(*file.parent.parts[:first]) / f"{PACKAGE}.py").exists():
        first -= 1
    return tuple(".".join(parts[start:]) for start in range(first + 1) if parts[start:])
