"""The documents of a study: read into a model with file and line of every problem, written with comments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError

from rlx.config import yaml_lines
from rlx.config.load import Found, config_error, dump_data
from rlx.config.schema import Problem, Section
from rlx.config.sections import describe, dotted, fields, words
from rlx.config.validate import quote
from rlx.config.yaml_lines import Document, KeyPath, Sort
from rlx.errors import ConfigError, did_you_mean

ModelT = TypeVar("ModelT", bound=Section)
WIDTH = 120
SCHEMA = 1
"""The newest form of a study's documents that is known here."""


def read(path: Path, model: type[ModelT], *, sort: Sort) -> ModelT:
    """Read a YAML file (or JSON, by its ending) into a model; all problems at once, each with file and line."""
    return build(load(path, sort=sort), model)


def load(path: Path, *, sort: Sort) -> Document:
    """Read a file as plain data with the line of every key."""
    if path.suffix != ".json":
        return yaml_lines.read(path, sort=sort)
    return parse_json(yaml_lines.read_text(path, sort=sort), source=yaml_lines.shown(path), sort=sort)


def parse_json(text: str, *, source: str, sort: Sort) -> Document:
    """Parse strict JSON: no key twice, no NaN; the lines come from reading it as YAML where that is possible."""
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}:{error.lineno}: not valid JSON: {error.msg}", hint=sort.hint) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: {error}", hint=sort.hint) from None
    if not isinstance(data, dict):
        raise ConfigError(f"{source}: a {sort.noun} is an object of keys and values", hint=sort.hint)
    try:
        places = yaml_lines.parse(text, source=source, sort=sort).places
    except ConfigError:  # JSON escapes characters in a way that YAML does not
        places = {}
    return Document(source, data, places)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key `{twice}` is there twice")
    return built


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not a number")


def build(document: Document, model: type[ModelT]) -> ModelT:
    """Build a model from plain data; what is null counts as not there."""
    data = _without_nulls(document.data, model)
    if isinstance(data.get("schema"), int) and data["schema"] > SCHEMA:
        says = f"{document.place(('schema',))}: `schema` is {data['schema']}; this rlx knows {SCHEMA}"
        raise ConfigError(says, hint="it was written by a newer rlx: upgrade")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found: dict[KeyPath, Found] = {}
        for one in error.errors(include_url=False):
            path = _written(one["loc"], data, is_missing=one["type"] == "missing")
            problem = _problem(one["type"], path, data, model)
            found.setdefault(path, Found(problem, document.place(path)))
        raise config_error(sorted(found.values(), key=_order)) from None


def _order(found: Found) -> tuple[bool, int]:
    """What is missing comes last: often it is there, misspelt."""
    return found.problem.message.endswith("is missing"), found.place.line or 0


def _without_nulls(data: Any, annotation: Any) -> Any:
    """Leave out the keys of sections that are null; inside free mappings null is a value."""
    if isinstance(data, list):
        return [_without_nulls(item, _inner(annotation, 0)) for item in data]
    if not isinstance(data, dict):
        return data
    is_section = _section(annotation) is not None
    return {
        key: _without_nulls(value, _inner(annotation, key))
        for key, value in data.items()
        if value is not None or not is_section
    }


def _written(location: tuple[str | int, ...], data: Any, *, is_missing: bool) -> KeyPath:
    """Return the path an error is about: pydantic's location without union tags."""
    path: KeyPath = ()
    node = data
    for index, part in enumerate(location):
        is_there = part in node if isinstance(node, dict) else isinstance(node, list) and isinstance(part, int)
        if not is_there and not (is_missing and index == len(location) - 1):
            continue
        path = (*path, part)
        node = node[part] if is_there else None
    return path


def _problem(kind: str, path: KeyPath, data: Any, model: type[Section]) -> Problem:
    key, around = dotted(path), _around(model, path)
    if kind == "missing":
        return Problem(key, f"`{key}` is missing", f"expected {describe(*_node(model, path))}")
    names = _names(around, model, path)
    if names is not None and str(path[-1]) not in names:
        near = did_you_mean(str(path[-1]), names)
        meant = _elsewhere(model, str(path[-1])) or (dotted((*path[:-1], near)) if near else "")
        hint = f"did you mean `{meant}`?" if meant else f"there are: {', '.join(names)}"
        return Problem(key, f"unknown key `{key}`", hint)
    value, (node, definitions) = _at(data, path), _node(model, path)
    near = did_you_mean(value, words(node)) if isinstance(value, str) and words(node) else None
    wanted = f"text like {node['pattern']}" if "pattern" in node else describe(node, definitions)
    return Problem(key, f"`{key}` is {quote(value)}; expected {wanted}", f"did you mean `{near}`?" if near else None)


def _names(around: Any, model: type[Section], path: KeyPath) -> list[str] | None:
    """Return the keys that there are beside the last of a path; None where any goes."""
    section = _section(around)
    if section is not None:
        return list(fields(section))
    if isinstance(path[-1], int) or len(path) < 2:
        return None
    node, _ = _node(model, path[:-1])
    return words(node.get("propertyNames", {})) or None


def _elsewhere(model: Any, name: str) -> str:
    """Return where the sections below have a key of that very name; nothing where none or several have."""
    section = _section(model)
    below = {key: field.annotation for key, field in fields(section).items()} if section is not None else {}
    found = [f"{key}.{name}" for key, inner in below.items() if (at := _section(inner)) and name in fields(at)]
    found += [f"{key}.{deeper}" for key, inner in below.items() if (deeper := _elsewhere(inner, name))]
    return found[0] if len(found) == 1 else ""


def _around(model: Any, path: KeyPath) -> Any:
    for part in path[:-1]:
        model = _inner(model, part)
    return model


def _inner(annotation: Any, part: str | int) -> Any:
    """Return what describes a key of a section, an entry of a list or a value of a mapping; None where nothing does."""
    section = _section(annotation)
    if section is not None:
        known = fields(section)
        return known[str(part)].annotation if part in known else None
    bare = _bare(annotation)
    origin, parts = get_origin(bare), get_args(bare)
    return parts[1] if origin is dict else parts[0] if origin is tuple else None


def _section(annotation: Any) -> type[Section] | None:
    bare = _bare(annotation)
    return bare if isinstance(bare, type) and issubclass(bare, Section) else None


def _bare(annotation: Any) -> Any:
    """Strip what surrounds a type: its annotations, and None beside it."""
    while True:
        origin, parts = get_origin(annotation), [one for one in get_args(annotation) if one is not type(None)]
        if origin is Annotated or (origin in (Union, UnionType) and len(parts) == 1):
            annotation = parts[0]
        else:
            return annotation


def _node(model: type[Section], path: KeyPath) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON Schema of what stands at a path, and the definitions it may refer to."""
    whole = model.model_json_schema(by_alias=True)
    definitions = whole.get("$defs", {})
    node = whole
    for part in path:
        node = _resolved(node, definitions)
        beside = node.get("properties", {})
        node = beside[part] if part in beside else node.get("items") or node.get("additionalProperties") or {}
        node = node if isinstance(node, dict) else {}
    return node, definitions


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    options = [one for one in node.get("anyOf", ()) if one.get("type") != "null"]
    if len(options) == 1:
        node = options[0]
    found: dict[str, Any] = definitions[node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node
    return found


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def dump(data: Mapping[str, Any], *, comments: Mapping[str, str], head: str) -> str:
    """Return plain data as YAML with comments: above a top-level key, behind a key inside it where there is room."""
    text = dump_data(data)
    lines = text.rstrip("\n").split("\n")
    places = yaml_lines.parse(text, source=head).places
    by_line: dict[int | None, KeyPath] = {}
    for path, place in places.items():  # a list on one line has its entries there too
        by_line.setdefault(place.line, path)
    written = [f"# {head}"]
    for number, line in enumerate(lines, start=1):
        path = by_line.get(number, ())  # the outermost key that stands on this line
        comment = comments.get(dotted(path))
        if len(path) == 1:
            written += ["", f"# {comment}"] if comment else []
            written.append(line)
        elif comment and len(line) + len(comment) + 4 <= WIDTH and _is_whole(number, path, places):
            written.append(f"{line}  # {comment}")
        else:
            indent = " " * (len(line) - len(line.lstrip()))
            written += [f"{indent}# {comment}", line] if comment else [line]
    return "\n".join(written) + "\n"


def _is_whole(number: int, path: KeyPath, places: Mapping[KeyPath, yaml_lines.Place]) -> bool:
    """Say whether a key's value ends on its own line: nothing of it is on the next."""
    below = [place.line for other, place in places.items() if len(other) > len(path) and other[: len(path)] == path]
    starts = {place.line for place in places.values()}
    return all(line == number for line in below) and number + 1 in starts
