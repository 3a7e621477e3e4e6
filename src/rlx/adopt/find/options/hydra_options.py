"""Reads the keys of Hydra configs: as the defaults lists combine them, without running anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlx.adopt.find.options.option import ProgramOption
from rlx.adopt.repository import ForeignRepository, PythonFile, literal

if TYPE_CHECKING:
    from rlx.config.yaml_lines import Document

_DEEPEST = 5


def hydra_settings(call: ast.Call) -> dict[str, str]:
    values = {keyword.arg: literal(keyword.value) for keyword in call.keywords if keyword.arg}
    values |= {name: literal(node) for name, node in zip(("config_path", "config_name"), call.args, strict=False)}
    return {name: value for name, value in values.items() if isinstance(value, str) and name.startswith("config_")}


def hydra_options(
    repository: ForeignRepository, file: PythonFile, settings: Mapping[str, str]
) -> Iterator[ProgramOption]:
    folder = PurePosixPath(file.path).parent / settings.get("config_path", ".")
    name = settings.get("config_name", "config").removesuffix(".yaml")
    if folder.suffix == ".yaml":  # Hydra 0.11: the path names the file
        name = folder.stem
        folder = folder.parent
    yield from _composed(repository, folder, PurePosixPath(name), prefix="", depth=0)


def _composed(
    repository: ForeignRepository, folder: PurePosixPath, name: PurePosixPath, *, prefix: str, depth: int
) -> Iterator[ProgramOption]:
    """Yield the keys of a config and of the configs in its defaults list."""
    path = _normal(folder / f"{name}.yaml")
    if path not in repository.files or depth > _DEEPEST:
        return
    yield from _yaml_options(repository, path, prefix=prefix)
    for group, package, option in _defaults(repository, path):
        inner = name.parent / group / option
        if group.startswith("/"):
            inner = PurePosixPath(group.lstrip("/")) / option
        is_global = (
            package == "_global_" or "@package _global_" in repository.text(_normal(folder / f"{inner}.yaml"))[:400]
        )
        inside = f"{prefix}{package or group.strip('/').replace('/', '.')}.".lstrip(".")
        if is_global:
            inside = ""
        elif not group:
            inside = prefix
        yield from _composed(repository, folder, inner, prefix=inside, depth=depth + 1)


def _defaults(repository: ForeignRepository, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield the group, package and option of the entries in a defaults list."""
    entries = _yaml(repository, path).data.get("defaults")
    if not isinstance(entries, list):
        return
    for entry in entries:
        if isinstance(entry, str) and entry != "_self_":
            yield "", "", entry.partition("@")[0].removesuffix(".yaml")
        if not isinstance(entry, dict):
            continue
        for words, option in entry.items():
            group, _, package = str(words).split()[-1].partition("@")
            if isinstance(option, str) and "override" not in str(words):
                yield group, package, option.removesuffix(".yaml")


def _yaml(repository: ForeignRepository, path: str) -> Document:
    from rlx.config import yaml_lines
    from rlx.errors import ConfigError

    try:
        return yaml_lines.parse(repository.text(path), source=path)
    except (ConfigError, RecursionError):
        return yaml_lines.parse("", source=path)


def _yaml_options(repository: ForeignRepository, path: str, *, prefix: str) -> Iterator[ProgramOption]:
    document = _yaml(repository, path)
    for parts, place in document.places.items():
        value: object = document.data
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        if parts and parts[0] not in ("defaults", "hydra") and isinstance(value, (str, int, float, bool)):
            key = prefix + ".".join(map(str, parts))
            yield ProgramOption(key, f"{key}=", path, place.line or 1, value, type(value).__name__)


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
