"""Find the project files and installed packages that define an environment: a protocol's fingerprint covers them.

Not covered: data files that an environment reads, modules imported under a computed name, and a file edited after this
process imported it. An installed package is known by name and version, not by its content.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files

if TYPE_CHECKING:
    import gymnasium


@dataclass(frozen=True)
class Sources:
    """Hashes of the project's own files by their path from the root, and versions of the packages."""

    files: dict[str, str]
    packages: dict[str, str]


def find_sources(env: gymnasium.Env[Any, Any], names: Iterable[str], *, root: Path) -> Sources:
    """Find the sources of an environment: the classes in its wrapper chain, and the files named in its config."""
    project = root.resolve()
    own: set[Path] = set()
    packages: dict[str, str] = {}
    for module, file in {**_files_of(["gymnasium"]), **module_files(env)}.items():
        path = None if file is None else Path(file)
        if path is not None and _is_own(path, project):
            own.add(path)
        else:
            packages.update(_package(module, path))
    own.update(path for name in names if (path := _named_file(name, project)) is not None)
    hashes = {path.relative_to(project).as_posix(): files.sha256(path.read_bytes()) for path in _closure(own, project)}
    return Sources(files=dict(sorted(hashes.items())), packages=dict(sorted(packages.items())))


def files_behind(names: Iterable[str], *, root: Path, folders: Iterable[str] = (".",)) -> tuple[str, ...]:
    """Find, without running anything, the project files behind `file.py`, `file.py:Class` or `module:Class`.

    Imports start from `folders` of the project.
    """
    project = root.resolve()
    starts = tuple((project / folder).resolve() for folder in folders)
    named: set[Path] = set()
    for name in names:
        file = _named_file(name, project)
        module = name.partition(":")[0]
        if file:
            named.add(file)
        elif not module.endswith(".py"):
            named.update(_resolve(module, starts, project))
    return tuple(sorted(path.relative_to(project).as_posix() for path in _closure(named, project, starts)))


def changed_files(evaluations: Iterable[Mapping[str, Any]], *, root: Path) -> list[str]:
    """Return the project files behind evaluations that have changed, or no longer exist."""
    changed = set()
    for evaluation in evaluations:
        for name, digest in (evaluation.get("protocol") or {}).get("files", {}).items():
            if _digest(root / name) != digest:
                changed.add(name)
    return sorted(changed)


def _digest(path: Path) -> str | None:
    try:
        return files.sha256(path.read_bytes())
    except OSError:
        return None


def _package(module: str, path: Path | None) -> dict[str, str]:
    """Return name and version of a module's package. A single file outside the project has its hash as version."""
    name = module.partition(".")[0]
    if name in sys.stdlib_module_names:
        return {}
    version = _version(name)
    if version is not None:
        return {name: version}
    if path is None or not path.is_file():
        return {}
    return {module: files.sha256(path.read_bytes())}


def _modules(env: gymnasium.Env[Any, Any]) -> Iterator[str]:
    """Yield the module of every class, with its bases, from the outermost wrapper to the environment itself."""
    layer: Any = env
    while layer is not None:
        yield from (kind.__module__ for kind in type(layer).__mro__)
        layer = getattr(layer, "env", None)


def module_files(env: gymnasium.Env[Any, Any]) -> dict[str, str | None]:
    """Return the file of every module that defines an environment or its wrappers; None for built-in ones.

    An environment in another process knows them from there.
    """
    from rlx.envs.remote.remote_env import RemoteEnv

    if isinstance(env, RemoteEnv):
        return {name: file if isinstance(file, str) else None for name, file in env.module_files.items()}
    return _files_of(_modules(env))


def _files_of(modules: Iterable[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for module in modules:
        path = getattr(sys.modules.get(module), "__file__", None)
        found[module] = str(Path(path).resolve()) if path else None
    return found


def _is_own(path: Path, project: Path) -> bool:
    return path.is_relative_to(project) and "site-packages" not in path.parts


def _named_file(name: str, project: Path) -> Path | None:
    """Return the file of `path/file.py:Class`."""
    text = name.partition(":")[0]
    path = (project / text).resolve()
    return path if text.endswith(".py") and path.is_file() and _is_own(path, project) else None


def _closure(start: set[Path], project: Path, starts: tuple[Path, ...] = ()) -> set[Path]:
    """Return files with all project files that they import, directly or indirectly."""
    closure: set[Path] = set()
    waiting = sorted(start)
    while waiting:
        path = waiting.pop()
        if path not in closure:
            closure.add(path)
            waiting.extend(_imported_files(path, project, starts))
    return closure


def _imported_files(path: Path, project: Path, starts: tuple[Path, ...]) -> Iterator[Path]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolve(alias.name, (path.parent, project, *starts), project)
        elif isinstance(node, ast.ImportFrom):
            folders: tuple[Path, ...] = (path.parent, project, *starts)
            if node.level:
                folders = (path.parents[node.level - 1],)
            module = node.module or ""
            for name in [module, *(f"{module}.{alias.name}" for alias in node.names)]:
                yield from _resolve(name, folders, project)


def _resolve(name: str, folders: tuple[Path, ...], project: Path) -> Iterator[Path]:
    """Yield the project files behind a dotted module name, including its packages' `__init__`."""
    parts = [part for part in name.split(".") if part]
    for folder in folders:
        for depth in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:depth])
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.is_file() and _is_own(path.resolve(), project):
                    yield path.resolve()


@lru_cache(maxsize=64)
def _version(module: str) -> str | None:
    """Return the version of the distribution that a top-level module belongs to."""
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        pass
    names = metadata.packages_distributions().get(module)
    return metadata.version(names[0]) if names else None
