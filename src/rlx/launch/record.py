"""What ran is what was changed: modules in scope that a job loaded from anywhere but its worktree.

An editable install, a build that lies about, or a package that was installed from the same sources would run in the
place of the candidate's files, and a change that never ran would be measured.
What is not covered: code that hides what it loaded, files that are read and not imported, processes that were killed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath

from rlx.runs import loaded
from rlx.runs.loaded import Module
from rlx.runs.run import Run

PACKAGE = "__init__"
SOURCES = (".py", ".pyx", ".pyw")


def record_of(run: Run) -> tuple[Module, ...]:
    """Return what the processes of all seeds of a run loaded."""
    return tuple(dict.fromkeys(module for seed in run.seeds for module in loaded.read(seed.folder)))


def unrecorded(run: Run) -> tuple[int, ...]:
    """Return the seeds of which no process has said what it loaded."""
    return tuple(seed.number for seed in run.seeds if not loaded.read(seed.folder))


def elsewhere(record: Iterable[Module], worktree: Path, root: Path, in_scope: Collection[str]) -> tuple[str, ...]:
    """Name the modules of files in scope (paths in the worktree) that were loaded from somewhere else."""
    tree, project = worktree.resolve(), root.resolve()
    names = {name: path for path in in_scope for name in module_names(path, tree)}
    found = []
    for module in record:
        file = module.file.resolve()
        if file.is_relative_to(tree):
            continue
        path = _path_in(project, file, in_scope) or names.get(module.name)
        if path is not None:
            found.append(f"{module.name} ({path}) was loaded from {file}")
    return tuple(dict.fromkeys(found))


def _path_in(project: Path, file: Path, in_scope: Collection[str]) -> str | None:
    """Return the path in scope that a file of the project itself has."""
    path = file.relative_to(project).as_posix() if file.is_relative_to(project) else None
    return path if path in in_scope else None


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
