"""Validate plain data against the schema; every problem is one clear line."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError

from rlx.config.key_docs import MEANINGS
from rlx.config.schema import ALGORITHMS, COMMAND, SCHEMA, Experiment, Problem, canonical_algorithm
from rlx.config.schema_map import REPEATED, SCHEDULED, choices, dotted, expected, fields, keys, section
from rlx.config.unknown_key import unknown_key
from rlx.config.yaml_lines import KeyPath
from rlx.errors import hint_for

LONGEST_QUOTE = 60


def validate(data: dict[str, Any]) -> tuple[Experiment | None, dict[KeyPath, Problem]]:
    """Return the experiment, or every problem by the path of its key."""
    prepared, problems = _prepare(data)
    try:
        experiment = Experiment.model_validate(prepared)
    except ValidationError as error:
        return None, problems | _problems(error, prepared, skip_algo=("algo", "name") in problems)
    if problems:
        return None, problems
    return experiment, {}


def _problems(error: ValidationError, data: dict[str, Any], *, skip_algo: bool) -> dict[KeyPath, Problem]:
    """Return one problem per key (the deepest if a union has several), and only one for an unknown algorithm."""
    algorithm = _algorithm(data)
    problems: dict[KeyPath, Problem] = {}
    for detail in error.errors(include_url=False):
        path = _field_path(detail["loc"], data, algorithm, is_missing=detail["type"] == "missing")
        if not (skip_algo and path[0] == "algo"):
            problems.setdefault(path, _problem(detail["type"], path, data, algorithm))
    return {path: problem for path, problem in problems.items() if not _has_deeper(path, problems)}


def _has_deeper(path: KeyPath, problems: dict[KeyPath, Problem]) -> bool:
    return any(len(other) > len(path) and other[: len(path)] == path for other in problems)


def _prepare(data: dict[str, Any]) -> tuple[dict[str, Any], dict[KeyPath, Problem]]:
    """Fill in the algorithm, normalise its name, and drop keys set to null, which stands for the default."""
    problems: dict[KeyPath, Problem] = {}
    prepared = {key: value for key, value in data.items() if key != "schema"}
    if data.get("schema", SCHEMA) != SCHEMA:
        hint = f"schema: {SCHEMA}"
        if isinstance(data["schema"], int) and data["schema"] > SCHEMA:
            hint = "it was written by a newer rlx: upgrade"
        problems[("schema",)] = Problem("schema", f"config format {quote(data['schema'])} is not known", hint)
    is_command = prepared.get("backend") == COMMAND
    if is_command and prepared.get("env") is None:
        prepared["env"] = {"id": COMMAND}
    if prepared.get("algo") is None:
        prepared["algo"] = {}
    if isinstance(prepared["algo"], dict):
        name = prepared["algo"].get("name")
        if name is None:
            name = ("ppo", COMMAND)[is_command]
        elif isinstance(name, str):
            name = canonical_algorithm(name)
        prepared["algo"] = {**prepared["algo"], "name": name}
        is_known = name in ALGORITHMS or (is_command and name == COMMAND)
        if isinstance(name, str) and not is_known and ":" not in name:
            problems[("algo", "name")] = _unknown_algorithm(name)
    return _without_nulls(prepared, (), _algorithm(prepared)), problems


def _unknown_algorithm(name: str) -> Problem:
    known = f"known: {', '.join(ALGORITHMS)}, or `file.py:Class`"
    return Problem("algo.name", f"unknown algorithm `{name}`", hint_for(name, list(ALGORITHMS), otherwise=known))


def _algorithm(data: dict[str, Any]) -> str:
    algo = data.get("algo")
    if not isinstance(algo, dict):
        return "ppo"
    return str(algo.get("name", "ppo"))


def _without_nulls(data: dict[str, Any], path: KeyPath, algorithm: str) -> dict[str, Any]:
    known = keys(path, algorithm)
    kept: dict[str, Any] = {}
    for key, value in data.items():
        here = (*path, key)
        if value is None and key in known:
            continue
        if isinstance(value, dict) and section(here, algorithm) is not None:
            value = _without_nulls(value, here, algorithm)
        kept[str(key)] = value
    return kept


def _field_path(location: KeyPath, data: dict[str, Any], algorithm: str, *, is_missing: bool) -> KeyPath:
    """Return the key of an error: pydantic's location without union tags, no deeper than a section's key."""
    path: KeyPath = ()
    node: Any = data
    for index, part in enumerate(location):
        is_item = isinstance(node, list) and isinstance(part, int)
        is_there = is_item or (isinstance(node, dict) and part in node)
        if not is_there and not (is_missing and index == len(location) - 1 and isinstance(node, dict)):
            continue
        path = (*path, part)
        if section(path, algorithm) is None and path not in REPEATED:
            break
        node = None
        if is_there:
            node = _at(data, path)
    return path


def _problem(kind: str, path: KeyPath, data: dict[str, Any], algorithm: str) -> Problem:
    key = dotted(path)
    name = str(path[-1])
    around = _at(data, path[:-1])
    model = section(path[:-1], algorithm)
    if kind == "missing" and isinstance(around, dict) and name not in around:
        return Problem(key, f"`{key}` is missing", _MISSING_HINTS.get(key) or _meaning(path))
    if isinstance(around, list) or model is None:
        form = "a mapping"
        if isinstance(around, list):
            form = "a name, or `name: {argument: value}`"
        return Problem(key, f"`{key}` is {quote(around[path[-1]])}; expected {form}", _meaning(path[:-1]))
    if name not in fields(model):
        return unknown_key(path, algorithm)
    hint = _value_hint(path, around[name], choices(model, name)) or _meaning(path)
    return Problem(key, f"`{key}` is {quote(around[name])}; expected {expected(model, name)}", hint)


def _meaning(path: KeyPath) -> str | None:
    key = dotted(tuple(part for part in path if isinstance(part, str)))
    if path[:2] == ("eval", "scenarios"):
        key = dotted((*path[:2], *path[3:]))
    if key not in MEANINGS:
        return None
    return f"`{key}`: {MEANINGS[key]}"


_MISSING_HINTS = {
    "env": "env: {id: CartPole-v1}",
    "env.id": "id: CartPole-v1 (`rlx envs` lists more), or `path/file.py:Class`",
}
_SECTION_KEYS = {"env": "id", "algo": "name", "policy": "type"}


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def quote(value: object) -> str:
    """Return a value as JSON, shortened to one line."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    if len(text) > LONGEST_QUOTE:
        return text[: LONGEST_QUOTE - 1] + "…"
    return text


def _value_hint(path: KeyPath, value: object, words: list[str]) -> str | None:
    key = dotted(path)
    if key in _SECTION_KEYS and isinstance(value, str):
        return f"{key}: {{{_SECTION_KEYS[key]}: {value}}}"
    if isinstance(value, dict) and set(value) & {"linear", "cosine"} and path[-1] not in SCHEDULED:
        return f"schedules work for {', '.join(f'`algo.{name}`' for name in SCHEDULED)}"
    if isinstance(value, str):
        return _text_hint(str(path[-1]), value, words)
    if path[-1] in ("run_name", "id") and isinstance(value, (int, float)):
        return f'put it in quotes: {path[-1]}: "{value}"'
    return None


_WITH_UNIT = re.compile(r"^([0-9]+(?:\.[0-9]+)?) ?([kKmM])$")


def _text_hint(key: str, value: str, words: list[str]) -> str | None:
    if words:
        return hint_for(value, words)
    if match := _WITH_UNIT.match(value):
        number = float(match[1]) * {"k": 1000, "m": 1_000_000}[match[2].lower()]
        return f"{key}: {int(number)}"
    try:
        float(value)
    except ValueError:
        return None
    return f"write it without quotes: {key}: {value}"
