"""YAML as plain data, together with the file and line every key was written on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from rlx import files
from rlx.config import catalog
from rlx.errors import ConfigError, FileDamaged, NotFound, did_you_mean

KeyPath = tuple[str | int, ...]

LARGEST_FILE = 1_000_000  # bytes; a config is a page, and a checkpoint given by mistake is not
LARGEST_TREE = 20_000  # values after aliases are written out
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Place:
    """Where something was written: a file and a line, or a command-line override."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Document:
    """A mapping and the place of each of its keys, addressed by path; of a file also the hash of its bytes."""

    source: str
    data: dict[str, Any]
    places: dict[KeyPath, Place] = field(default_factory=dict)
    sha256: str = ""

    def place(self, path: KeyPath) -> Place:
        """Return where a key stands, or the nearest key around it; the whole file where there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return Place(self.source)


@dataclass(frozen=True)
class Sort:
    """What a file is meant to be, and how one begins or is made, for what is said about a bad one."""

    noun: str = "config"
    hint: str = "start with `env: {id: CartPole-v1}`"

    @property
    def is_config(self) -> bool:
        return self.noun == "config"


CONFIG = Sort()
NAME_ONE = "name a YAML file"


class _Loader(yaml.SafeLoader):
    """Safe YAML with the scalars of YAML 1.2 where 1.1 surprises: `3e-4` is a number, dates and `1:30` are text."""


_Loader.yaml_constructors = {
    tag: yaml.SafeLoader.yaml_constructors[tag]
    for tag in (f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str"))
}
_Loader.yaml_implicit_resolvers = {}

FLOAT = re.compile(
    r"""^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+
        |[-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$""",
    re.VERBOSE,
)
_INT = re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0o[0-7_]+|[-+]?(?:0|[1-9][0-9_]*))$")
_BOOL = re.compile(r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")

for _kind, _pattern, _first in (
    ("float", FLOAT, "-+0123456789."),
    ("int", _INT, "-+0123456789"),
    ("bool", _BOOL, "yYnNtTfFoO"),
    ("null", _NULL, ["~", "n", "N", ""]),
    ("merge", re.compile("^<<$"), "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, list(_first))


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(str(loader.construct_scalar(node)).replace("_", ""), 0)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def shown(path: Path | str) -> str:
    """Return a path or argument as it can be printed on one line, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace("\n", "\\n").replace("\r", "\\r")


def read(path: Path, *, sort: Sort = CONFIG) -> Document:
    """Read a config file, or one of another sort; every way a file can be bad is one line with a hint."""
    source = shown(path)
    content = _bytes(path, source, sort)
    return replace(parse(_decode(content, source), source=source, sort=sort), sha256=files.sha256(content))


def read_text(path: Path, *, sort: Sort = CONFIG) -> str:
    """Read a file that is a page of UTF-8 text."""
    source = shown(path)
    return _decode(_bytes(path, source, sort), source)


def parse(text: str, *, source: str, sort: Sort = CONFIG) -> Document:
    """Parse the text of a config file."""
    node = _compose(text, source)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        raise ConfigError(f"{source}: the {sort.noun} is empty", hint=sort.hint)
    if not isinstance(node, yaml.MappingNode):
        kind = "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
        raise ConfigError(
            f"{source}:{_line(node)}: a {sort.noun} is a mapping of keys to values; this is {kind}", hint=sort.hint
        )
    tree = _Tree(source)
    return Document(source, tree.build(node, ()), tree.places)


def value(text: str, *, source: str) -> Any:
    """Parse one YAML value, as in an override."""
    node = _compose(text, source)
    return None if node is None else _Tree(source).build(node, ())


def _bytes(path: Path, source: str, sort: Sort) -> bytes:
    try:
        with files.reading(path) as stream:
            content = stream.read(LARGEST_FILE + 1)
    except FileDamaged:
        if not path.is_dir():
            raise ConfigError(f"{source}: no plain file, or too large for a {sort.noun}", hint=sort.hint) from None
        inside = _configs_in(path)
        raise ConfigError(
            f"{source}: this is a folder, not a {sort.noun} file",
            hint=f"name a file in it: {', '.join(map(shown, inside[:5]))}" if inside else NAME_ONE,
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        hint = near_files(path) if sort.is_config else sort.hint
        raise NotFound(f"no {sort.noun} file `{source}`", hint=hint) from None
    except ValueError:  # a NUL in the name
        raise NotFound(f"no {sort.noun} file {source!r}", hint=near_files(Path("configs/x.yaml"))) from None
    except OSError as error:
        raise ConfigError(
            f"{source}: cannot be read: {error.strerror or error}", hint=f"look at its permissions: ls -l {source}"
        ) from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(
            f"{source}: too large for a {sort.noun} (over 1 MB)", hint=NAME_ONE if sort.is_config else sort.hint
        )
    return content


def near_files(path: Path) -> str:
    """Say which config file may have been meant."""
    folders = {folder.resolve(): folder for folder in (Path("configs"), Path(), path.parent)}.values()
    known = [file for folder in folders for file in _configs_in(folder)]
    names = {file.stem: file for file in reversed(known)}
    close = did_you_mean(path.stem if path.suffix in SUFFIXES else path.name, list(names))
    if close:
        return f"did you mean `{shown(names[close])}`?"
    if path.stem in catalog.names():
        return f"did you mean `{catalog.PREFIX}{path.stem}`?"
    return f"there are: {', '.join(map(shown, known[:5]))}" if known else "make one: rlx init --here"


def _configs_in(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file())
    except (OSError, ValueError):
        return []


def _decode(content: bytes, source: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{source}:{line}: not UTF-8 text (byte 0x{content[error.start]:02x})", hint="save the file as UTF-8"
        ) from None
    return text


def _compose(text: str, source: str) -> yaml.Node | None:
    try:
        node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, source) from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise ConfigError(
            f"{source}:{line}: character U+{ord(text[error.position]):04X} is not allowed in YAML",
            hint="remove it, or write it as an escape in double quotes",
        ) from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply", hint="a config has a few levels") from None
    return node


def _syntax_error(error: yaml.MarkedYAMLError, text: str, source: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    if r"'\t'" in (error.problem or "") or _is_indented_by_tab(text, line):
        return ConfigError(
            f"{source}:{line}: a tab where YAML wants spaces", hint="replace the tabs of this line by spaces"
        )
    what = " ".join(part for part in (error.context, error.problem) if part)
    where = f"look at colons, quotes and indentation around column {mark.column + 1}" if mark else "look at its syntax"
    return ConfigError(f"{source}:{line}: not valid YAML: {what}", hint=where)


def _is_indented_by_tab(text: str, line: int) -> bool:
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    return "\t" in written[: len(written) - len(written.lstrip())]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Tree:
    """Builds plain data from YAML nodes and notes where each key stands."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.places: dict[KeyPath, Place] = {}
        self._loader = _Loader("")
        self._open: list[yaml.Node] = []
        self._size = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        """Return the node as None, bool, int, float, str, list or dict."""
        self._size += 1
        if self._size > LARGEST_TREE or len(path) > 50:
            raise ConfigError(f"{self.source}:{_line(node)}: too many or too deep values", hint="use fewer aliases")
        if node in self._open:
            raise ConfigError(f"{self.source}:{_line(node)}: an alias refers to itself", hint="write the value out")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.append(node)
        built = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._sequence(node, path)
        self._open.pop()
        return built

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag not in _Loader.yaml_constructors:
            raise self._bad_tag(node)
        try:
            built = self._loader.construct_object(node)
            return built if not isinstance(built, str) else built.encode().decode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{self.source}:{_line(node)}: half a character (a lone surrogate)", hint="remove it"
            ) from None
        except ValueError as error:  # an integer of more digits than Python reads, an explicit tag on a bad scalar
            raise ConfigError(f"{self.source}:{_line(node)}: {error}", hint="look at this value") from None

    def _sequence(self, node: yaml.Node, path: KeyPath) -> list[Any]:
        self._refuse_tag(node, "seq")
        for index, item in enumerate(node.value):
            self.places[(*path, index)] = Place(self.source, _line(item))
        return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[Any, Any]:
        self._refuse_tag(node, "map")
        built: dict[Any, Any] = {}
        own: dict[Any, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                built = {**self._merged(value_node, path), **built}
                continue
            key = self._key(key_node)
            if key in own:
                where = ".".join(map(str, (*path, key)))
                raise ConfigError(
                    f"{self.source}:{_line(key_node)}: key `{where}` is there twice",
                    hint=f"it is on line {own[key]} already: keep one",
                )
            own[key] = _line(key_node)
            self._forget(built, (*path, key))
            self.places[(*path, key)] = Place(self.source, _line(key_node))
            built[key] = self.build(value_node, (*path, key))
        return built

    def _merged(self, node: yaml.Node, path: KeyPath) -> dict[Any, Any]:
        """Return what `<<: *anchor` brings in; keys written out win, and keep their places."""
        kept = {place: self.places[place] for place in self.places if place[: len(path)] == path and place != path}
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[Any, Any] = {}
        for source in reversed(sources):
            if not isinstance(source, yaml.MappingNode):
                raise ConfigError(f"{self.source}:{_line(node)}: `<<` takes a mapping", hint="<<: *anchor")
            merged.update(self.build(source, path))
        self.places.update(kept)
        return merged

    def _forget(self, built: dict[Any, Any], path: KeyPath) -> None:
        """Drop the places under a key that `<<` brought in and that is now written out."""
        if path[-1] in built:
            self.places = {place: at for place, at in self.places.items() if place[: len(path)] != path}

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise ConfigError(f"{self.source}:{_line(node)}: a key cannot be a list or mapping", hint="quote it")
        return self._scalar(node)

    def _refuse_tag(self, node: yaml.Node, kind: str) -> None:
        if node.tag != f"tag:yaml.org,2002:{kind}":
            raise self._bad_tag(node)

    def _bad_tag(self, node: yaml.Node) -> ConfigError:
        return ConfigError(
            f"{self.source}:{_line(node)}: YAML tag `{node.tag.removeprefix('tag:yaml.org,2002:')}` is not allowed",
            hint="use numbers, text, true/false, lists and mappings",
        )
