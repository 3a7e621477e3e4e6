"""Validate plain data against the schema and put every problem into one clear line."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError

from rlx.config.keys import MEANINGS
from rlx.config.schema import ALGORITHMS, COMMAND, SCHEMA, Experiment, Problem, canonical_algorithm
from rlx.config.sections import REPEATED, SCHEDULED, choices, dotted, expected, fields, keys, section
from rlx.config.unknown_key import unknown_key
from rlx.config.yaml_lines import KeyPath
from rlx.errors import did_you_mean

LONGEST_QUOTE = 60


def validate(data: dict[str, Any]) -> tuple[Experiment | None, dict[KeyPath, Problem]]:
    """Return the experiment, or every problem by the path of its key."""
    prepared, problems = _prepare(data)
    try:
        experiment = Experiment.model_validate(prepared)
    except ValidationError as error:
        return None, problems | _problems(error, prepared, skip_algo=("algo", "name") in problems)
    return (None if problems else experiment), problems


def _problems(error: ValidationError, data: dict[str, Any], *, skip_algo: bool) -> dict[KeyPath, Problem]:
    """Return one problem a key, the deepest where a union has several; of an unknown algorithm, nothing more."""
    algorithm = _algorithm(data)
    problems: dict[KeyPath, Problem] = {}
    for one in error.errors(include_url=False):
        path = _field_path(one["loc"], data, algorithm, is_missing=one["type"] == "missing")
        if not (skip_algo and path[0] == "algo"):
            problems.setdefault(path, _problem(one["type"], path, data, algorithm))
    return {path: problem for path, problem in problems.items() if not _has_deeper(path, problems)}


def _has_deeper(path: KeyPath, problems: dict[KeyPath, Problem]) -> bool:
    return any(len(other) > len(path) and other[: len(path)] == path for other in problems)


def _prepare(data: dict[str, Any]) -> tuple[dict[str, Any], dict[KeyPath, Problem]]:
    """Fill in the algorithm, spell its name, and leave out keys set to null, which means the default."""
    problems: dict[KeyPath, Problem] = {}
    prepared = {key: value for key, value in data.items() if key != "schema"}
    if data.get("schema", SCHEMA) != SCHEMA:
        hint = "it was written by a newer rlx: upgrade" if _is_newer(data["schema"]) else f"schema: {SCHEMA}"
        problems[("schema",)] = Problem("schema", f"config format {quote(data['schema'])} is not known", hint)
    is_command = prepared.get("backend") == COMMAND
    if is_command and prepared.get("env") is None:
        prepared["env"] = {"id": COMMAND}
    if prepared.get("algo") is None:
        prepared["algo"] = {}
    if isinstance(prepared["algo"], dict):
        name = prepared["algo"].get("name")
        name = (
            (COMMAND if is_command else "ppo")
            if name is None
            else canonical_algorithm(name)
            if isinstance(name, str)
            else name
        )
        prepared["algo"] = {**prepared["algo"], "name": name}
        is_known = name in ALGORITHMS or (is_command and name == COMMAND)
        if isinstance(name, str) and not is_known and ":" not in name:
            problems[("algo", "name")] = _unknown_algorithm(name)
    return _without_nulls(prepared, (), _algorithm(prepared)), problems


def _is_newer(version: object) -> bool:
    return isinstance(version, int) and version > SCHEMA


def _unknown_algorithm(name: str) -> Problem:
    near = did_you_mean(name, list(ALGORITHMS))
    hint = f"did you mean `{near}`?" if near else f"known: {', '.join(ALGORITHMS)}, or `file.py:Class`"
    return Problem("algo.name", f"unknown algorithm `{name}`", hint)


def _algorithm(data: dict[str, Any]) -> str:
    algo = data.get("algo")
    return str(algo.get("name", "ppo")) if isinstance(algo, dict) else "ppo"


def _without_nulls(data: dict[str, Any], path: KeyPath, algorithm: str) -> dict[str, Any]:
    known = keys(path, algorithm)
    kept: dict[str, Any] = {}
    for key, value in data.items():
        here = (*path, key)
        if value is None and key in known:
            continue
        is_section = isinstance(value, dict) and section(here, algorithm) is not None
        kept[str(key)] = _without_nulls(value, here, algorithm) if is_section else value
    return kept


def _field_path(location: KeyPath, data: dict[str, Any], algorithm: str, *, is_missing: bool) -> KeyPath:
    """Return the key an error is about: pydantic's location without union tags, no deeper than a section's key."""
    path: KeyPath = ()
    node: Any = data
    for index, part in enumerate(location):
        is_there = part in node if isinstance(node, dict) else isinstance(node, list) and isinstance(part, int)
        if not is_there and not (is_missing and index == len(location) - 1 and isinstance(node, dict)):
            continue
        path = (*path, part)
        if section(path, algorithm) is None and path not in REPEATED:
            break
        node = _at(data, path) if is_there else None
    return path


def _problem(kind: str, path: KeyPath, data: dict[str, Any], algorithm: str) -> Problem:
    key, name = dotted(path), str(path[-1])
    around, model = _at(data, path[:-1]), section(path[:-1], algorithm)
    if kind == "missing" and isinstance(around, dict) and name not in around:
        return Problem(key, f"`{key}` is missing", _MISSING_HINTS.get(key) or _meaning(path))
    if isinstance(around, list) or model is None:
        wanted = "a name, or `name: {argument: value}`" if isinstance(around, list) else "a mapping"
        return Problem(key, f"`{key}` is {quote(around[path[-1]])}; expected {wanted}", _meaning(path[:-1]))
    if name not in fields(model):
        return unknown_key(path, algorithm)
    hint = _value_hint(path, around[name], choices(model, name)) or _meaning(path)
    return Problem(key, f"`{key}` is {quote(around[name])}; expected {expected(model, name)}", hint)


def _meaning(path: KeyPath) -> str | None:
    key = dotted(tuple(part for part in path if isinstance(part, str)))
    if path[:2] == ("eval", "scenarios"):
        key = dotted((*path[:2], *path[3:]))
    return f"`{key}`: {MEANINGS[key]}" if key in MEANINGS else None


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
    """Return a value as JSON, cut to a line."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


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
        near = did_you_mean(value, words)
        return f"did you mean `{near}`?" if near else None
    if match := _WITH_UNIT.match(value):
        number = float(match[1]) * (1000 if match[2] in "kK" else 1_000_000)
        return f"{key}: {int(number)}"
    try:
        float(value)
    except ValueError:
        return None
    return f"write it without quotes: {key}: {value}"
