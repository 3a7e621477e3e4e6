"""Which project files and installed packages define an environment: what a protocol's fingerprint is taken over.

What is not covered: data files an environment reads, modules imported under a computed name, and a file edited after
this process imported it. An installed package is known by name and version, not by its content.
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
    """Hashes of the project's own files by path from the root, and versions of the packages."""

    files: dict[str, str]
    packages: dict[str, str]


def sources_of(env: gymnasium.Env[Any, Any], names: Iterable[str], *, root: Path) -> Sources:
    """Find what defines an environment: the classes in its wrapper chain, and the files named in its config."""
    project = root.resolve()
    own: set[Path] = set()
    packages: dict[str, str] = {}
    for module in {"gymnasium", *_modules(env)}:
        path = _file_of(module)
        if path is not None and _is_own(path, project):
            own.add(path)
        else:
            packages.update(_package(module, path))
    own.update(path for name in names if (path := _named_file(name, project)) is not None)
    hashes = {path.relative_to(project).as_posix(): files.sha256(path.read_bytes()) for path in _closure(own, project)}
    return Sources(files=dict(sorted(hashes.items())), packages=dict(sorted(packages.items())))


def files_behind(names: Iterable[str], *, root: Path, folders: Iterable[str] = (".",)) -> tuple[str, ...]:
    """Find, without running anything, the project files behind `file.py`, `file.py:Class` or `module:Class`.

    `folders` of the project are where imports start from.
    """
    project = root.resolve()
    starts = tuple((project / folder).resolve() for folder in folders)
    named: set[Path] = set()
    for name in names:
        file = _named_file(name, project)
        modules = () if file or name.partition(":")[0].endswith(".py") else (name.partition(":")[0],)
        named.update(path for module in modules for path in _resolve(module, starts, project))
        named.update((file,) if file else ())
    return tuple(sorted(path.relative_to(project).as_posix() for path in _closure(named, project, starts)))


def edited(evaluations: Iterable[Mapping[str, Any]], *, root: Path) -> list[str]:
    """Return the project files behind evaluations that are other now, or gone."""
    then = [item for one in evaluations for item in (one.get("protocol") or {}).get("files", {}).items()]
    return sorted({name for name, digest in then if _digest(root / name) != digest})


def _digest(path: Path) -> str | None:
    try:
        return files.sha256(path.read_bytes())
    except OSError:
        return None


def _package(module: str, path: Path | None) -> dict[str, str]:
    """Return name and version of the package a module is from; a loose file outside the project by its hash."""
    name = module.partition(".")[0]
    if name in sys.stdlib_module_names:
        return {}
    version = _version(name)
    if version is not None:
        return {name: version}
    return {module: files.sha256(path.read_bytes())} if path is not None and path.is_file() else {}


def _modules(env: gymnasium.Env[Any, Any]) -> Iterator[str]:
    """Yield the module of every class, with its bases, from the outermost wrapper to the environment itself."""
    layer: Any = env
    while layer is not None:
        yield from (kind.__module__ for kind in type(layer).__mro__)
        layer = getattr(layer, "env", None)


def _file_of(module: str) -> Path | None:
    path = getattr(sys.modules.get(module), "__file__", None)
    return Path(path).resolve() if path else None


def _is_own(path: Path, project: Path) -> bool:
    return path.is_relative_to(project) and "site-packages" not in path.parts


def _named_file(name: str, project: Path) -> Path | None:
    """Return the file of `path/file.py:Class`."""
    text = name.partition(":")[0]
    path = (project / text).resolve()
    return path if text.endswith(".py") and path.is_file() and _is_own(path, project) else None


def _closure(start: set[Path], project: Path, starts: tuple[Path, ...] = ()) -> set[Path]:
    """Add the project files that these import, and so on."""
    found: set[Path] = set()
    waiting = sorted(start)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_imported_files(path, project, starts))
    return found


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
            folders = (path.parents[node.level - 1],) if node.level else (path.parent, project, *starts)
            prefix = f"{node.module}." if node.module else ""
            for name in [node.module or "", *(prefix + alias.name for alias in node.names)]:
                yield from _resolve(name, folders, project)


def _resolve(name: str, folders: tuple[Path, ...], project: Path) -> Iterator[Path]:
    """Yield the project files behind a dotted module name, its packages' `__init__` included."""
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
