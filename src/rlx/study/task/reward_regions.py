"""The regions of a repository that compute a reward: in an environment, its imports and its wrappers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from rlx.diagnose.reward_review.reward_ast import reward_functions
from rlx.diagnose.reward_review.wrapper_reward import reward_wrappers
from rlx.errors import ConfigError, NotFound
from rlx.evaluate.env_sources import files_behind
from rlx.study.candidate import path_patterns, source_region


def reward_regions(env_id: str, root: Path) -> tuple[str, ...]:
    """Return the regions that compute the reward of an env in a project file; `step` only if it has no other."""
    parts = file_and_name(env_id, root)
    if parts is None:
        return ()
    file, name = parts
    functions = _rewards(root / file, name, place=file)
    regions_of_file = [f"{file}{path_patterns.REGION}{function}" for function in functions]
    without_step = [
        region for region in regions_of_file if not region.endswith((".step", f"{path_patterns.REGION}step"))
    ]
    regions = [*without_step, *_imported_rewards(file, root)] or regions_of_file
    return tuple(region for region in regions if _exists(region, root))


def wrapper_regions(reference: str, root: Path) -> tuple[str, ...]:
    """Return the methods of one wrapper in a project file that change the reward."""
    parts = file_and_name(reference, root)
    if parts is None:
        return ()
    methods = _reward_wrappers(parts[0], root).get(parts[1], ())
    return tuple(f"{parts[0]}{path_patterns.REGION}{method}" for method in methods)


def factory_wrappers(reference: str, root: Path) -> tuple[str, ...]:
    """Return the methods that change the reward in wrappers that an env's file uses: its own, and imported ones."""
    parts = file_and_name(reference, root)
    return () if parts is None else _used_wrappers(parts[0], root, import_roots(root))


def wrappers_behind(entries: Sequence[str], root: Path, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the methods that change the reward, in wrappers that a training program and its imports use."""
    sources = dict.fromkeys((*entries, *files_behind(entries, root=root, folders=folders)))
    regions = [region for file in sources for region in _used_wrappers(file, root, folders)]
    return tuple(dict.fromkeys(regions))


def _used_wrappers(file: str, root: Path, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the methods that change the reward, in wrappers that a file names and that it or its imports define."""
    try:
        nodes = list(ast.walk(ast.parse((root / file).read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return ()
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    regions = []
    for place in dict.fromkeys((file, *files_behind([file], root=root, folders=folders))):
        for name, methods in _reward_wrappers(place, root).items():
            if name in used:
                regions += [f"{place}{path_patterns.REGION}{method}" for method in methods]
    return tuple(region for region in regions if _exists(region, root))


def _reward_wrappers(file: str, root: Path) -> dict[str, tuple[str, ...]]:
    try:
        return reward_wrappers(ast.parse((root / file).read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return {}


def _rewards(path: Path, name: str | None, *, place: str) -> list[str]:
    try:
        return [function.name for function in reward_functions(ast.parse(path.read_bytes()), name, place=place)]
    except (NotFound, ConfigError, SyntaxError, ValueError, OSError):
        return []


def _imported_rewards(file: str, root: Path) -> list[str]:
    """Return the imported parts of an env's reward: files with reward in their name, else imported functions."""
    behind = files_behind([file], root=root, folders=import_roots(root))
    reward_files = [name for name in behind if name != file and "reward" in Path(name).stem.lower()]
    if reward_files:
        return reward_files
    imported = []
    for node in ast.walk(ast.parse((root / file).read_bytes())):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        for base in (root, (root / file).parent):
            path = base / f"{node.module.replace('.', '/')}.py"
            if path.is_file():
                place = path.relative_to(root).as_posix()
                functions = set(_rewards(path, None, place=place))
                names = [alias.name for alias in node.names if alias.name in functions]
                imported += [f"{place}{path_patterns.REGION}{name}" for name in names]
                break
    return imported


def file_and_name(reference: str, root: Path) -> tuple[str, str] | None:
    """Return the parts of `path/file.py:Class`; None if it is not a file of the project."""
    file, _, name = reference.rpartition(":")
    is_own = file.endswith(".py") and path_patterns.path_problem(file) is None and (root / file).is_file()
    if not is_own or not name.isidentifier():
        return None
    return file.removeprefix("./"), name


def _exists(pattern: str, root: Path) -> bool:
    file, name = path_patterns.split(pattern)
    return name is None or is_region((root / file).read_bytes(), name)


def is_region(source: bytes, name: str) -> bool:
    """Say whether a source has exactly one definition of this name."""
    try:
        source_region.find(source, name)
    except ValueError:
        return False
    return True


def import_roots(root: Path) -> tuple[str, ...]:
    """Return the import path that the layout suggests: the top, and a `src` with packages."""
    if any((root / "src").glob("*/__init__.py")) and not (root / "src" / "__init__.py").is_file():
        return ("src", ".")
    return (".",)
