"""Follows the imports of a program to the project's own files."""

from __future__ import annotations

from collections.abc import Mapping

from rlx.adopt.repository import ForeignRepository, PythonFile


def imported_files(repository: ForeignRepository, program: PythonFile, *, depth: int = 2) -> list[PythonFile]:
    """Return the project files that a program imports, directly or through another one."""
    known: dict[tuple[str, int], list[PythonFile]] = repository.cache.setdefault("imported files", {})
    if (program.path, depth) not in known:
        known[program.path, depth] = _imported(repository, program, depth)
    return known[program.path, depth]


def _imported(repository: ForeignRepository, program: PythonFile, depth: int) -> list[PythonFile]:
    index = module_index(repository)
    reached: dict[str, PythonFile] = {program.path: program}
    border = [program]
    for _ in range(depth):
        following: list[PythonFile] = []
        for file in border:
            for module in file.imports:
                path = resolve(module, file, index)
                if path is None or path in reached:
                    continue
                target = repository.by_path(path)
                if target is not None:
                    reached[path] = target
                    following.append(target)
        border = following
    return list(reached.values())[1:]


def module_index(repository: ForeignRepository) -> Mapping[str, str]:
    """Return the paths of the project's modules by every name that could import them."""
    index: dict[str, str] = repository.cache.setdefault("modules", {})
    if not index:
        for path in repository.modules:
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                index.setdefault(".".join(parts[start:]), path)
    return index


def resolve(module: str, file: PythonFile, index: Mapping[str, str]) -> str | None:
    """Return the path of the project's module that an import means; None if it is not of the project."""
    folder = file.path.split("/")[:-1]
    if module.startswith("."):
        level = len(module) - len(module.lstrip("."))
        above = folder[: len(folder) - level + 1]
        return index.get(".".join([*above, *filter(None, module.lstrip(".").split("."))]))
    sibling = index.get(".".join([*folder, module]))
    if sibling is not None:
        return sibling
    if module.partition(".")[0] in _INSTALLED:
        return None
    return index.get(module)


_INSTALLED = frozenset(
    ("torch", "numpy", "gymnasium", "gym", "wandb", "typing", "random", "time", "os", "logging", "json", "copy", "math")
)
