"""Check that a job ran the code that was checked: modules in scope that it loaded from elsewhere, or edited files.

An editable install, an old build or an installed copy of the same package can run in place of the candidate's files.
Then rlx would measure a change that never ran. The same holds for a file that was edited after the check.
The hash of a module's file is taken when its process ends. Not covered: files that were edited and put back before
that, code that hides what it loaded, files that are read but not imported, processes that were killed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import rlx
from rlx.runs import loaded_modules, module_recorder
from rlx.runs.loaded_modules import Module
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study.candidate import path_patterns
from rlx.study.contract.contract import Contract, open_places
from rlx.study.task.task import Task

MOST_DIFFERENCES = 5
PACKAGE = "__init__"
SOURCES = (".py", ".pyx", ".pyw")


def problems(run: Run, *, worktree: Path, root: Path, contract: Contract, task: Task) -> tuple[str, ...]:
    """Say why a run may not have run the candidate: modules from elsewhere, edited files, seeds without a record."""
    found: list[str] = []
    loaded: dict[Module, None] = {}
    for seed in run.seeds:
        record = loaded_modules.read(seed.folder)
        loaded |= dict.fromkeys(record.modules)
        if seed.status.state == COMPLETED and not record.modules:
            found.append(f"no process of seed {seed.number} recorded which modules it loaded")
        found += [f"seed {seed.number}: {damage}" for damage in record.damage]
    found += loaded_from_elsewhere(loaded, worktree, root, _files_in_scope(worktree, contract, task))
    found += edited(loaded, worktree)
    return tuple(f"{run.name}: {problem}" for problem in found)


def differing_installations(ours: Iterable[Run], theirs: Iterable[Run], *, root: Path) -> tuple[str, ...]:
    """Name what differs between the interpreters of two sides: version, installed packages, files that both loaded.

    The files of the project itself are the candidate's own business, and rlx is known by its version.
    """
    first, second = _Installation.of(ours, root), _Installation.of(theirs, root)
    found = []
    if first.pythons and second.pythons and first.pythons != second.pythons:
        found.append(f"the interpreters differ: {_words(first.pythons)} and {_words(second.pythons)}")
    for name in sorted(first.versions.keys() & second.versions.keys()):
        if first.versions[name] != second.versions[name]:
            found.append(
                f"{name} differs: {_words(first.versions[name])} and {_words(second.versions[name])} were installed"
            )
    for file in sorted(first.files.keys() & second.files.keys()):
        if first.files[file] != second.files[file]:
            found.append(f"{file} was changed between the trainings of both sides")
    return tuple(found[:MOST_DIFFERENCES])


def _words(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


@dataclass(frozen=True)
class _Installation:
    """What the jobs of one side found installed: interpreters, versions of packages, hashes of loaded files."""

    pythons: frozenset[str]
    versions: Mapping[str, frozenset[str]]
    files: Mapping[Path, frozenset[str]]

    @classmethod
    def of(cls, runs: Iterable[Run], root: Path) -> _Installation:
        pythons: set[str] = set()
        versions: dict[str, set[str]] = {}
        hashes: dict[Path, set[str]] = {}
        own = (root.resolve(), Path(rlx.__file__).parent)
        for seed in (seed for run in runs for seed in run.seeds):
            record = loaded_modules.read(seed.folder)
            pythons |= record.pythons
            for name, version in record.distributions.items():
                versions.setdefault(name, set()).add(version)
            for module in record.modules:
                if module.sha256 and not any(module.file.is_relative_to(place) for place in own):
                    hashes.setdefault(module.file, set()).add(module.sha256)
        return cls(
            frozenset(pythons),
            {name: frozenset(found) for name, found in versions.items()},
            {file: frozenset(found) for file, found in hashes.items()},
        )


def edited(modules: Iterable[Module], worktree: Path) -> tuple[str, ...]:
    """Name the modules of a worktree whose file has changed since they ran."""
    tree = worktree.resolve()
    found = []
    for module in modules:
        file = _real(module.file)
        if file.is_relative_to(tree) and module.sha256 != module_recorder.digest(str(module.file)):
            found.append(f"{module.name} ran from another {file.relative_to(tree).as_posix()} than was checked")
    return tuple(found)


def _files_in_scope(worktree: Path, contract: Contract, task: Task) -> tuple[str, ...]:
    """Return the source files of a worktree that candidates may change, whole or in a region."""
    if contract.scope is None:
        return ()
    patterns = [path_patterns.split(pattern)[0] for pattern in open_places(contract.scope, task).paths]
    sources = (path.relative_to(worktree).as_posix() for path in worktree.rglob("*") if path.suffix in SOURCES)
    return tuple(sorted(path for path in sources if path_patterns.any_covers_path(patterns, path)))


def loaded_from_elsewhere(
    modules: Iterable[Module], worktree: Path, root: Path, in_scope: Collection[str]
) -> tuple[str, ...]:
    """Name modules that were loaded from outside the worktree although it has them.

    A file in scope is recognised by its module name, any other file of the project by its path.
    """
    tree = worktree.resolve()
    project = root.resolve()
    path_of = {name: path for path in in_scope for name in module_names(path, tree)}
    found = []
    for module in modules:
        file = _real(module.file)
        if file.is_relative_to(tree):
            continue
        path = path_of.get(module.name)
        if file.is_relative_to(project) and (tree / file.relative_to(project)).is_file():
            path = file.relative_to(project).as_posix()
        if path is not None:
            found.append(f"{module.name} ({path}) was loaded from {file}")
    return tuple(dict.fromkeys(found))


def _real(file: Path) -> Path:
    """Resolve links; a job may name links that form a circle, for which `Path.resolve` raises an error."""
    return Path(os.path.realpath(file))


def module_names(path: str, tree: Path) -> tuple[str, ...]:
    """Return the names a source file can be imported by: from the first folder that is not a package, or above."""
    file = PurePosixPath(path)
    if file.suffix not in SOURCES:
        return ()
    folders = file.parent.parts
    parts = folders if file.stem == PACKAGE else (*folders, file.stem)
    first = len(folders)
    while first > 0 and (tree.joinpath(*folders[:first]) / f"{PACKAGE}.py").exists():
        first -= 1
    return tuple(".".join(parts[start:]) for start in range(first + 1) if parts[start:])
