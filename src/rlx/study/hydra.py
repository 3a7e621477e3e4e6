"""The configs of a Hydra program, put together as far as its files say it: which files, and the values of their keys.

Read and never run: a program that imports a simulator would start it. What is not covered: configs that are written in
Python (their keys may be changed all the same), those of installed packages, and interpolated values, which are keys
without a value here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from rlx.study import foreign
from rlx.study.foreign import Value
from rlx.study.task import Argv

_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.M)
_CHOICE = re.compile(r"(\+{0,2})([\w/-]+)=([\w./-]+)")
_OPTIONS = {"--config-name": "config_name", "-cn": "config_name", "--config-path": "config_path", "-cp": "config_path"}
_DEEPEST = 16


def composed(entry: str, train: Argv, root: Path) -> tuple[tuple[str, ...], dict[str, Value]]:
    """Return the files and the values of what a program's `hydra.main` names, with the groups its command chooses."""
    found = _composition(entry, train, root)
    return tuple(path.relative_to(root.resolve()).as_posix() for path in found.files), found.values


def is_whole(entry: str, train: Argv, root: Path, *, sources: Iterable[str]) -> bool:
    """Say whether the files have all keys there are: none is missing, and no source makes configs in Python."""
    found = _composition(entry, train, root)
    is_read = bool(found.files) and not found.lacks
    return is_read and not any(b"ConfigStore" in (root / one).read_bytes() for one in sources)


def _composition(entry: str, train: Argv, root: Path) -> _Composition:
    said = {**_decorated(root / entry), **dict(_told(train))}
    top = ((root / entry).parent / said.get("config_path", ".")).resolve()
    if "config_name" not in said or not top.is_relative_to(root.resolve()):
        return _Composition(top, {})
    words = [match.groups() for word in train if (match := _CHOICE.fullmatch(word))]
    found = _Composition(top, {group: option for _, group, option in words})
    added = [_Named(f"{group}/{option}", group, group.replace("/", ".")) for sign, group, option in words if sign]
    every = [_Named(said["config_name"].removesuffix(".yaml")), *added]
    for one in every:
        found.choose(one)
    for one in every:
        found.take(one)
    return found


def _decorated(entry: Path) -> dict[str, str]:
    """Return what stands in the program's `@hydra.main(...)`."""
    try:
        nodes = list(ast.walk(ast.parse(entry.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return {}
    calls = [one for node in nodes if isinstance(node, ast.FunctionDef) for one in node.decorator_list]
    for call in calls:
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("hydra.main", "main"):
            told = {one.arg: one.value for one in call.keywords if one.arg}
            told |= dict(zip(("config_path", "config_name"), call.args, strict=False))
            known = {name: one.value for name, one in told.items() if isinstance(one, ast.Constant)}
            return {name: value for name, value in known.items() if isinstance(value, str)}
    return {}


def _told(train: Argv) -> Iterator[tuple[str, str]]:
    """Yield what the command itself says of the config: `--config-name=x` and `-cn x`."""
    for word, after in zip(train, (*train[1:], ""), strict=True):
        name, sign, value = word.partition("=")
        if name in _OPTIONS and (value or not sign):
            yield _OPTIONS[name], value if sign else after


@dataclass(frozen=True)
class _Named:
    """A config by its path in the folder, the group that it was chosen of, and the package that its keys go to."""

    path: str
    group: str = ""
    package: str = ""
    is_override: bool = False

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.path).parent).removeprefix(".")


@dataclass
class _Composition:
    """A config while it is put together: what comes later in a defaults list wins, as it does for Hydra."""

    top: Path
    choices: dict[str, str]
    files: dict[Path, None] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    lacks: bool = False
    """Whether something is named that is no file here: of an installed package, or written in Python."""

    def choose(self, one: _Named, depth: int = 0) -> None:
        """Take in the groups that `override` entries choose, wherever they stand; the command's own stay."""
        for default in self._defaults(one) if depth < _DEEPEST else ():
            if default is not None and default.is_override:
                self.choices.setdefault(default.group, PurePosixPath(default.path).name)
            elif default is not None:
                self.choose(default, depth + 1)

    def take(self, one: _Named, depth: int = 0) -> None:
        path, data, package = self._read(one)
        if path is None or depth > _DEEPEST:
            self.lacks = True
            return
        self.files[path] = None
        above = f"{package}." if package else ""
        own = {f"{above}{key}": _known(value) for key, value in foreign.flat(data) if key != "defaults"}
        for default in self._defaults(one):
            if default is None:
                self.values |= {key: value for key, value in own.items() if not key.startswith("hydra.")}
            elif not default.is_override:
                self.take(default, depth + 1)

    def _read(self, one: _Named) -> tuple[Path | None, dict[str, Any], str]:
        path = (self.top / f"{one.path}.yaml").resolve()
        if not path.is_file() or not path.is_relative_to(self.top):
            return None, {}, one.package
        header = _PACKAGE.search(path.read_text(encoding="utf-8", errors="replace"))
        said = header[1] if header else None
        package = one.package if said in (None, "_group_") else "" if said == "_global_" else str(said)
        return path, dict(foreign.read(path)), package

    def _defaults(self, one: _Named) -> Iterator[_Named | None]:
        """Yield the configs of a defaults list in their order; None is the config's own place among them, else last."""
        _, data, package = self._read(one)
        entries = data.get("defaults")
        entries = entries if isinstance(entries, list) else []
        for entry in entries:
            if entry == "_self_":
                yield None
            elif isinstance(entry, str):
                name, _, said = entry.partition("@")
                target = _package(said, name.rpartition("/")[0], package)
                yield _Named(_placed(name, one.folder).removesuffix(".yaml"), package=target)
            elif isinstance(entry, dict):
                for words, options in entry.items():
                    yield from self._chosen(str(words), options, one.folder, package)
        if "_self_" not in entries:
            yield None

    def _chosen(self, words: str, options: object, folder: str, package: str) -> Iterator[_Named]:
        """Yield what a `group@package: option` entry names, or what was chosen of the group instead."""
        *signs, name = words.split() or [""]
        name, _, said = name.partition("@")
        group, is_override = _placed(name, folder), "override" in signs
        told = options if is_override else self.choices.get(group, options)
        for option in told if isinstance(told, list) else [told]:
            if isinstance(option, str):
                path = f"{group}/{option}".removesuffix(".yaml")
                yield _Named(path, group, _package(said, name, package), is_override)


def _package(said: str, group: str, package: str) -> str:
    """Return where a config's keys go: as its entry says, else to its group inside of the package that names it."""
    if said == "_global_" or said.startswith("_global_."):
        return said.removeprefix("_global_").removeprefix(".")
    inside = "" if said == "_here_" else said or group.strip("/").replace("/", ".")
    return ".".join(filter(None, (package, inside)))


def _placed(name: str, folder: str) -> str:
    """Return a path from the configs' top; one without a stroke before it begins where it stands."""
    return name.lstrip("/") if name.startswith("/") or not folder else f"{folder}/{name}"


def _known(value: Value) -> Value:
    """Return a value that is said; an interpolation and one that must be given are none."""
    return None if isinstance(value, str) and ("${" in value or value == "???") else value
