"""Read the documents of a study into models, every problem with file and line, and write them with comments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from rlx.config import yaml_lines
from rlx.config.load import LocatedProblem, config_error, dump_data
from rlx.config.schema import Problem, Section
from rlx.config.schema_map import describe, dotted, words
from rlx.config.validate import quote
from rlx.config.yaml_lines import Document, FileKind, KeyPath
from rlx.errors import ConfigError, did_you_mean

ModelT = TypeVar("ModelT", bound=Section)
WIDTH = 120
SCHEMA = 1  # the newest format of a study's documents that this version knows


def read(path: Path, model: type[ModelT], *, kind: FileKind) -> ModelT:
    """Read a YAML or JSON file into a model; report all problems at once, each with file and line."""
    return build(load(path, kind=kind), model)


def load(path: Path, *, kind: FileKind) -> Document:
    """Read a file as plain data with the line of every key."""
    if path.suffix != ".json":
        return yaml_lines.read(path, kind=kind)
    return parse_json(yaml_lines.read_text(path, kind=kind), source=yaml_lines.shown(path), kind=kind)


def parse_json(text: str, *, source: str, kind: FileKind) -> Document:
    """Parse strict JSON: no key twice, no NaN; the lines come from parsing it as YAML if that is possible."""
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}:{error.lineno}: not valid JSON: {error.msg}", hint=kind.hint) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: {error}", hint=kind.hint) from None
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: a {kind.noun} is an object of keys and values", hint=kind.hint)
    try:
        places = yaml_lines.parse(text, source=source, kind=kind).places
    except ConfigError:  # JSON escapes characters in a way that YAML does not
        places = {}
    return Document(source, data, places)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise ValueError(f"key `{key}` appears twice")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not a number")


def build(document: Document, model: type[ModelT]) -> ModelT:
    """Build a model from plain data; a key that is null counts as missing."""
    data = document.data
    if _has_null(data):
        data = _schema(model).without_nulls(data, ())
    if isinstance(data.get("schema"), int) and data["schema"] > SCHEMA:
        message = f"{document.place(('schema',))}: `schema` is {data['schema']}, but this rlx only reads {SCHEMA}"
        raise ConfigError(message, hint="a newer rlx wrote it: upgrade rlx")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems: dict[KeyPath, LocatedProblem] = {}
        details = error.errors(include_url=False)
        for detail in sorted(details, key=lambda detail: detail["type"] == "missing"):  # it is often there, misspelt
            is_missing = detail["type"] == "missing"
            path = _existing_path(detail["loc"], data, is_missing=is_missing)
            problem = _schema(model).problem(path, data, is_missing=is_missing)
            problems.setdefault(path, LocatedProblem(problem, document.place(path)))
        raise config_error(list(problems.values())) from None


def _has_null(data: Any) -> bool:
    """Say whether a value inside plain data is null. Only then is the model's schema needed, which is slow to make."""
    if isinstance(data, dict):
        return any(map(_has_null, data.values()))
    if isinstance(data, list):
        return any(map(_has_null, data))
    return data is None


def _existing_path(location: tuple[str | int, ...], data: Any, *, is_missing: bool) -> KeyPath:
    """Return the path of an error: pydantic's location without union tags."""
    path: KeyPath = ()
    node: Any = data
    for part in location:
        is_item = isinstance(node, list) and isinstance(part, int)
        if is_item or (isinstance(node, dict) and part in node):
            path = (*path, part)
            node = node[part]
    return (*path, location[-1]) if is_missing else path


class _Schema:
    """The JSON schema of a model, which explains errors by their path."""

    def __init__(self, model: type[Section]) -> None:
        self._root = model.model_json_schema(by_alias=True)
        self._definitions = self._root.get("$defs", {})

    def without_nulls(self, data: Any, path: KeyPath) -> Any:
        """Leave out keys of sections that are null; inside free mappings null is a value."""
        if isinstance(data, list):
            return [self.without_nulls(item, (*path, 0)) for item in data]
        if not isinstance(data, dict):
            return data
        is_section = "properties" in self._resolved(self._node(path))
        kept = {key: value for key, value in data.items() if value is not None or not is_section}
        return {key: self.without_nulls(value, (*path, key)) for key, value in kept.items()}

    def problem(self, path: KeyPath, data: Any, *, is_missing: bool) -> Problem:
        key = dotted(path)
        node = self._node(path)
        if is_missing:
            return Problem(key, f"`{key}` is missing", f"expected {describe(node, self._definitions)}")
        around = self._resolved(self._node(path[:-1]))
        names = list(around.get("properties", ())) or words(around.get("propertyNames", {}))
        name = str(path[-1])
        if names and name not in names:
            return Problem(key, f"unknown key `{key}`", self._key_hint(path[:-1], name, names))
        for part in path:
            data = data[part]
        expected = describe(node, self._definitions)
        if "pattern" in node:
            expected = f"text like {node['pattern']}"
        near = did_you_mean(str(data), words(node))
        return Problem(key, f"`{key}` is {quote(data)}; expected {expected}", near and f"did you mean `{near}`?")

    def _key_hint(self, parent: KeyPath, name: str, names: list[str]) -> str:
        """Name the key that was meant: the same name in another section, or a similar name here."""
        elsewhere = list(self._paths_of(name, self._root))
        if len(elsewhere) == 1:
            return f"did you mean `{elsewhere[0]}`?"
        near = did_you_mean(name, names)
        if near:
            return f"did you mean `{dotted((*parent, near))}`?"
        return f"there are: {', '.join(names)}"

    def _paths_of(self, name: str, node: dict[str, Any]) -> Iterator[str]:
        """Yield the dotted path of every key with this name in the sections below a node."""
        for key, inner in self._resolved(node).get("properties", {}).items():
            if name in self._resolved(inner).get("properties", {}):
                yield f"{key}.{name}"
            yield from (f"{key}.{deeper}" for deeper in self._paths_of(name, inner))

    def _node(self, path: KeyPath) -> dict[str, Any]:
        """Return the schema of the value at a path; empty if there is none."""
        node = self._root
        for part in path:
            around = self._resolved(node)
            inner = around.get("properties", {}).get(part) or around.get("items") or around.get("additionalProperties")
            node = inner if isinstance(inner, dict) else {}
        return node

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
        if len(options) == 1:
            node = options[0]
        name = node.get("$ref", "").rpartition("/")[2]
        resolved: dict[str, Any] = self._definitions.get(name, node)
        return resolved


@cache
def _schema(model: type[Section]) -> _Schema:
    return _Schema(model)


def dump(data: Mapping[str, Any], *, comments: Mapping[str, str], head: str) -> str:
    """Return plain data as YAML with comments: above a top-level key, or after an inner key if there is room."""
    text = dump_data(data)
    lines = text.rstrip("\n").split("\n")
    places = yaml_lines.parse(text, source=head).places
    by_line: dict[int | None, KeyPath] = {}
    for path, place in places.items():  # the entries of a list can be on the same line
        by_line.setdefault(place.line, path)
    written = [f"# {head}"]
    for number, line in enumerate(lines, start=1):
        path = by_line.get(number, ())  # the outermost key on this line
        comment = comments.get(dotted(path), "")
        if comment and len(path) > 1 and len(line) + len(comment) + 4 <= WIDTH and _is_whole(number, path, places):
            line = f"{line}  # {comment}"
        elif comment:
            indent = line[: len(line) - len(line.lstrip())]
            written += [""] * (len(path) == 1) + [f"{indent}# {comment}"]
        written.append(line)
    return "\n".join(written) + "\n"


def _is_whole(number: int, path: KeyPath, places: Mapping[KeyPath, yaml_lines.Place]) -> bool:
    """Say whether a key's value ends on the line of the key."""
    below = [place.line for other, place in places.items() if len(other) > len(path) and other[: len(path)] == path]
    starts = {place.line for place in places.values()}
    return all(line == number for line in below) and number + 1 in starts
