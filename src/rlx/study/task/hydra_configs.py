"""The config of a Hydra program, composed statically: its files and the values of their keys.

The files are read and never run: a program that imports a simulator would start it. Not covered: configs that are
written in Python (their keys can still be changed), configs of installed packages, and interpolated values, which are
keys without a value here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from rlx.study.task import repo_configs
from rlx.study.task.repo_configs import Value
from rlx.study.task.task import Argv

_PACKAGE = re.compile(r"^#\s*@package\s+(\S+)", re.M)
_CHOICE = re.compile(r"(\+{0,2})([\w/-]+)=([\w./-]+)")
_OPTIONS = {"--config-name": "config_name", "-cn": "config_name", "--config-path": "config_path", "-cp": "config_path"}
_DEEPEST = 16


def composed(entry: str, train: Argv, root: Path) -> tuple[tuple[str, ...], dict[str, Value]]:
    """Return the files and values of the config that `hydra.main` names, with the groups that the command chooses."""
    composition = _composition(entry, train, root)
    return tuple(path.relative_to(root.resolve()).as_posix() for path in composition.files), composition.values


def is_whole(entry: str, train: Argv, root: Path, *, sources: Iterable[str]) -> bool:
    """Return whether the files have all keys: no file is missing, and no source builds configs in Python."""
    composition = _composition(entry, train, root)
    is_read = bool(composition.files) and not composition.lacks
    return is_read and not any(b"ConfigStore" in (root / source).read_bytes() for source in sources)


def _composition(entry: str, train: Argv, root: Path) -> _Composition:
    settings = {**_decorator_settings(root / entry), **dict(_command_settings(train))}
    top = ((root / entry).parent / settings.get("config_path", ".")).resolve()
    if "config_name" not in settings or not top.is_relative_to(root.resolve()):
        return _Composition(top, {})
    choices = [match.groups() for word in train if (match := _CHOICE.fullmatch(word))]
    composition = _Composition(top, {group: option for _, group, option in choices})
    configs = [_ConfigRef(settings["config_name"].removesuffix(".yaml"))]
    for sign, group, option in choices:
        if sign:
            configs.append(_ConfigRef(f"{group}/{option}", group, group.replace("/", ".")))
    for config in configs:
        composition.choose(config)
    for config in configs:
        composition.take(config)
    return composition


def _decorator_settings(entry: Path) -> dict[str, str]:
    """Return the arguments of the program's `@hydra.main(...)`."""
    try:
        nodes = list(ast.walk(ast.parse(entry.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return {}
    calls = [call for node in nodes if isinstance(node, ast.FunctionDef) for call in node.decorator_list]
    for call in calls:
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("hydra.main", "main"):
            arguments = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            arguments |= dict(zip(("config_path", "config_name"), call.args, strict=False))
            constants = {name: node.value for name, node in arguments.items() if isinstance(node, ast.Constant)}
            return {name: value for name, value in constants.items() if isinstance(value, str)}
    return {}


def _command_settings(train: Argv) -> Iterator[tuple[str, str]]:
    """Yield the settings in the command itself: `--config-name=x` and `-cn x`."""
    for word, after in zip(train, (*train[1:], ""), strict=True):
        name, sign, value = word.partition("=")
        if name in _OPTIONS and not sign:
            yield _OPTIONS[name], after
        elif name in _OPTIONS and value:
            yield _OPTIONS[name], value


@dataclass(frozen=True)
class _ConfigRef:
    """A config: its path in the config folder, its group, and the package of its keys."""

    path: str
    group: str = ""
    package: str = ""
    is_override: bool = False

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.path).parent).removeprefix(".")


@dataclass
class _Composition:
    """A config while it is composed: later entries of a defaults list win, as in Hydra."""

    top: Path
    choices: dict[str, str]
    files: dict[Path, None] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    lacks: bool = False
    """Whether a named config is not a file here: it belongs to an installed package, or is written in Python."""

    def choose(self, config: _ConfigRef, depth: int = 0) -> None:
        """Apply the group choices of all `override` entries; the command's own choices have priority."""
        if depth >= _DEEPEST:
            return
        for default in self._defaults(config):
            if default is not None and default.is_override:
                self.choices.setdefault(default.group, PurePosixPath(default.path).name)
            elif default is not None:
                self.choose(default, depth + 1)

    def take(self, config: _ConfigRef, depth: int = 0) -> None:
        """Add the files and values of a config and of its defaults."""
        path, data, package = self._read(config)
        if path is None or depth > _DEEPEST:
            self.lacks = True
            return
        self.files[path] = None
        above = f"{package}.".removeprefix(".")
        own = {f"{above}{key}": _known(value) for key, value in repo_configs.flat(data) if key != "defaults"}
        for default in self._defaults(config):
            if default is None:
                self.values |= {key: value for key, value in own.items() if not key.startswith("hydra.")}
            elif not default.is_override:
                self.take(default, depth + 1)

    def _read(self, config: _ConfigRef) -> tuple[Path | None, dict[str, Any], str]:
        path = (self.top / f"{config.path}.yaml").resolve()
        if not path.is_file() or not path.is_relative_to(self.top):
            return None, {}, config.package
        package = config.package
        header = _PACKAGE.search(path.read_text(encoding="utf-8", errors="replace"))
        if header and header[1] != "_group_":
            package = header[1].removeprefix("_global_")
        return path, dict(repo_configs.read(path)), package

    def _defaults(self, config: _ConfigRef) -> Iterator[_ConfigRef | None]:
        """Yield the configs of a defaults list in order; None marks the config's own place, by default the last."""
        _, data, package = self._read(config)
        entries = data.get("defaults")
        if not isinstance(entries, list):
            entries = []
        for entry in entries:
            if entry == "_self_":
                yield None
            elif isinstance(entry, str):
                name, _, target = entry.partition("@")
                target = _package(target, name.rpartition("/")[0], package)
                yield _ConfigRef(_from_top(name, config.folder).removesuffix(".yaml"), package=target)
            elif isinstance(entry, dict):
                for words, options in entry.items():
                    yield from self._chosen(str(words), options, config.folder, package)
        if "_self_" not in entries:
            yield None

    def _chosen(self, words: str, options: object, folder: str, package: str) -> Iterator[_ConfigRef]:
        """Yield the configs of a `group@package: option` entry, or the ones chosen for that group instead."""
        *signs, name = words.split() or [""]
        name, _, target = name.partition("@")
        group = _from_top(name, folder)
        is_override = "override" in signs
        if not is_override:
            options = self.choices.get(group, options)
        if not isinstance(options, list):
            options = [options]
        for option in options:
            if isinstance(option, str):
                path = f"{group}/{option}".removesuffix(".yaml")
                yield _ConfigRef(path, group, _package(target, name, package), is_override)


def _package(target: str, group: str, package: str) -> str:
    """Return the package of a config's keys: the entry's, or else its group inside the package that names it."""
    if target == "_global_" or target.startswith("_global_."):
        return target.removeprefix("_global_").removeprefix(".")
    inside = target or group.strip("/").replace("/", ".")
    if target == "_here_":
        inside = ""
    return ".".join(filter(None, (package, inside)))


def _from_top(name: str, folder: str) -> str:
    """Return a path from the top of the configs; a name without a leading slash is relative to its folder."""
    if name.startswith("/") or not folder:
        return name.lstrip("/")
    return f"{folder}/{name}"


def _known(value: Value) -> Value:
    """Return a literal value; None for an interpolation or a value that must be set."""
    if isinstance(value, str) and ("${" in value or value == "???"):
        return None
    return value
