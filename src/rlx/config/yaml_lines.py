"""YAML as plain data, with the file and line of every key."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from rlx import files
from rlx.config import catalog
from rlx.errors import ConfigError, FileDamaged, NotFound, did_you_mean

KeyPath = tuple[str | int, ...]

LARGEST_FILE = 1_000_000  # bytes; a larger file is not a config, but perhaps a checkpoint
LARGEST_TREE = 20_000  # values after aliases are expanded
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class Place:
    """The origin of a key: a file and a line, or a command-line override."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.source
        return f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Document:
    """A mapping and the place of each key, by its path; a document from a file has the hash of its bytes."""

    source: str
    data: dict[str, Any]
    places: dict[KeyPath, Place] = field(default_factory=dict)
    sha256: str = ""

    def place(self, path: KeyPath) -> Place:
        """Return the place of a key, of the nearest key around it, or else of the whole file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return Place(self.source)


@dataclass(frozen=True)
class FileKind:
    """The kind of a file, with a hint for how to write one; used in error messages."""

    noun: str = "config"
    hint: str = "start with `env: {id: CartPole-v1}`"
    most_values: int = LARGEST_TREE

    @property
    def is_config(self) -> bool:
        return self.noun == "config"


CONFIG = FileKind()
RUN_SNAPSHOT = FileKind("config snapshot", "restore the file from a copy", most_values=10 * LARGEST_TREE)
NAME_ONE = "name a YAML file"


class _Loader(yaml.SafeLoader):
    """Safe YAML with scalars as in YAML 1.2: `3e-4` is a number, dates and `1:30` are text."""


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
    """Return a path or argument in a form that prints on one line, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace("\n", "\\n").replace("\r", "\\r")


def read(path: Path, *, kind: FileKind = CONFIG) -> Document:
    """Read a config file, or a file of another kind; every error is one line with a hint."""
    source = shown(path)
    content = _bytes(path, source, kind)
    return replace(parse(_decode(content, source), source=source, kind=kind), sha256=files.sha256(content))


def read_text(path: Path, *, kind: FileKind = CONFIG) -> str:
    """Read a small file of UTF-8 text."""
    source = shown(path)
    return _decode(_bytes(path, source, kind), source)


def parse(text: str, *, source: str, kind: FileKind = CONFIG) -> Document:
    """Parse the text of a config file."""
    node = _compose(text, source)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        raise ConfigError(f"{source}: the {kind.noun} is empty", hint=kind.hint)
    if not isinstance(node, yaml.MappingNode):
        actual = "a single value"
        if isinstance(node, yaml.SequenceNode):
            actual = "a list"
        message = f"{source}:{_line(node)}: a {kind.noun} is a mapping of keys to values; this is {actual}"
        raise ConfigError(message, hint=kind.hint)
    tree = _Tree(source, kind.most_values)
    return Document(source, tree.build(node, ()), tree.places)


def value(text: str, *, source: str) -> Any:
    """Parse one YAML value, as in an override."""
    node = _compose(text, source)
    if node is None:
        return None
    return _Tree(source).build(node, ())


def _bytes(path: Path, source: str, kind: FileKind) -> bytes:
    try:
        with files.reading(path) as stream:
            content = stream.read(LARGEST_FILE + 1)
    except FileDamaged:
        if not path.is_dir():
            message = f"{source}: not a regular file, or too large for a {kind.noun}"
            raise ConfigError(message, hint=kind.hint) from None
        hint = kind.hint
        if kind.is_config:
            hint = NAME_ONE
        inside = _configs_in(path)
        if inside:
            hint = f"name a file in it: {', '.join(map(shown, inside[:5]))}"
        raise ConfigError(f"{source}: this is a folder, not a {kind.noun} file", hint=hint) from None
    except (FileNotFoundError, NotADirectoryError):
        hint = kind.hint
        if kind.is_config:
            hint = near_files(path)
        raise NotFound(f"no {kind.noun} file `{source}`", hint=hint) from None
    except ValueError:  # a NUL in the name
        raise NotFound(f"no {kind.noun} file {source!r}", hint=near_files(Path("configs/x.yaml"))) from None
    except OSError as error:
        raise ConfigError(
            f"{source}: cannot be read: {error.strerror or error}", hint=f"check its permissions: ls -l {source}"
        ) from None
    if len(content) > LARGEST_FILE:
        hint = kind.hint
        if kind.is_config:
            hint = NAME_ONE
        raise ConfigError(f"{source}: too large for a {kind.noun} (over 1 MB)", hint=hint)
    return content


def near_files(path: Path) -> str:
    """Return a hint with the config file that the user probably meant."""
    folders = {folder.resolve(): folder for folder in (Path("configs"), Path(), path.parent)}.values()
    known = [file for folder in folders for file in _configs_in(folder)]
    names = {file.stem: file for file in reversed(known)}
    name = path.name
    if path.suffix in SUFFIXES:
        name = path.stem
    close = did_you_mean(name, list(names))
    if close:
        return f"did you mean `{shown(names[close])}`?"
    if path.stem in catalog.names():
        return f"did you mean `{catalog.PREFIX}{path.stem}`?"
    if known:
        return f"there are: {', '.join(map(shown, known[:5]))}"
    return "create one: rlx init --here"


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
        node = _nodes(text)
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


@lru_cache(maxsize=32)
def _nodes(text: str) -> yaml.Node | None:
    """Return the nodes of a text, which nothing changes; a command reads the documents of its study many times."""
    node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    return node


def _syntax_error(error: yaml.MarkedYAMLError, text: str, source: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    line = 1
    hint = "check its syntax"
    if mark:
        line = mark.line + 1
        hint = f"check colons, quotes and indentation around column {mark.column + 1}"
    if r"'\t'" in (error.problem or "") or _is_indented_by_tab(text, line):
        message = f"{source}:{line}: a tab, but YAML needs spaces"
        return ConfigError(message, hint="replace the tabs of this line by spaces")
    problem = " ".join(part for part in (error.context, error.problem) if part)
    return ConfigError(f"{source}:{line}: not valid YAML: {problem}", hint=hint)


def _is_indented_by_tab(text: str, line: int) -> bool:
    return any("\t" in re.match(r"\s*", written)[0] for written in text.splitlines()[line - 1 : line])  # type: ignore[index]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Tree:
    """Builds plain data from YAML nodes and records the place of each key."""

    def __init__(self, source: str, most_values: int = LARGEST_TREE) -> None:
        self.source = source
        self._most_values = most_values
        self.places: dict[KeyPath, Place] = {}
        self._loader = _Loader("")
        self._open: list[yaml.Node] = []
        self._size = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        """Return the node as None, bool, int, float, str, list or dict."""
        self._size += 1
        if self._size > self._most_values or len(path) > 50:
            raise ConfigError(f"{self.source}:{_line(node)}: too many or too deep values", hint="use fewer aliases")
        if node in self._open:
            raise ConfigError(f"{self.source}:{_line(node)}: an alias refers to itself", hint="write the value out")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.append(node)
        built: Any
        if isinstance(node, yaml.MappingNode):
            built = self._mapping(node, path)
        else:
            built = self._sequence(node, path)
        self._open.pop()
        return built

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag not in _Loader.yaml_constructors:
            raise self._bad_tag(node)
        try:
            built = self._loader.construct_object(node)
            if isinstance(built, str):
                built.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"{self.source}:{_line(node)}: half a character (a lone surrogate)", hint="remove it"
            ) from None
        except ValueError as error:  # an integer of more digits than Python reads, an explicit tag on a bad scalar
            raise ConfigError(f"{self.source}:{_line(node)}: {error}", hint="check this value") from None
        return built

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
                    f"{self.source}:{_line(key_node)}: key `{where}` appears twice",
                    hint=f"it is already on line {own[key]}: keep one",
                )
            own[key] = _line(key_node)
            self._forget(built, (*path, key))
            self.places[(*path, key)] = Place(self.source, _line(key_node))
            built[key] = self.build(value_node, (*path, key))
        return built

    def _merged(self, node: yaml.Node, path: KeyPath) -> dict[Any, Any]:
        """Return the mapping of `<<: *anchor`; keys that are written out win and keep their places."""
        kept = {place: self.places[place] for place in self.places if place[: len(path)] == path and place != path}
        sources = [node]
        if isinstance(node, yaml.SequenceNode):
            sources = node.value
        merged: dict[Any, Any] = {}
        for source in reversed(sources):
            if not isinstance(source, yaml.MappingNode):
                raise ConfigError(f"{self.source}:{_line(node)}: `<<` takes a mapping", hint="<<: *anchor")
            merged.update(self.build(source, path))
        self.places.update(kept)
        return merged

    def _forget(self, built: dict[Any, Any], path: KeyPath) -> None:
        """Drop the places under a key that came from `<<` and is now written out."""
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
