"""The map of a config: the model of each section, its keys, and the values that each key takes."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from rlx.config import schema
from rlx.config.schema import ALGORITHMS, CustomAlgo, Section
from rlx.config.yaml_lines import KeyPath

SECTIONS: dict[str, type[Section]] = {
    "": schema.Experiment,
    "env": schema.Env,
    "env.wrappers": schema.Wrapper,
    "env.normalize": schema.Normalize,
    "policy": schema.Policy,
    "checkpoint": schema.CheckpointEvery,
    "eval": schema.EvalEvery,
    "eval.env": schema.EvalEnv,
    "eval.scenarios": schema.Scenario,
    "log": schema.Log,
    "log.wandb": schema.Wandb,
    "stop": schema.Stop,
    "stop.plateau": schema.Plateau,
    "stop.budget": schema.Budget,
    "resources": schema.Resources,
    "command": schema.Command,
    "command.metrics": schema.Source,
}
REPEATED: dict[KeyPath, type[Section]] = {
    ("env", "wrappers"): schema.Wrapper,
    ("eval", "env", "wrappers"): schema.Wrapper,
    ("eval", "scenarios"): schema.Scenario,
}
"""Lists and mappings in which every entry is such a section."""
OUTSIDE = ("extends", "schema")  # keys of a config file that are not part of the experiment
SCHEDULED = ("learning_rate", "clip_range", "delta_std")


def dotted(path: KeyPath) -> str:
    """Return a path as people write it: `env.wrappers.0.name`."""
    return ".".join(str(part) for part in path)


def section(path: KeyPath, algorithm: str) -> type[Section] | None:
    """Return the model of the mapping at `path`; None if any key is allowed there (kwargs), or none."""
    if path == ("algo",):
        return ALGORITHMS.get(algorithm, CustomAlgo)
    for several, model in REPEATED.items():
        if path[: len(several)] == several:
            is_entry = len(path) == len(several) + 1
            return (None, model)[is_entry]
    return SECTIONS.get(dotted(path))


def keys(path: KeyPath, algorithm: str) -> list[str]:
    """Return the keys the mapping at `path` may have."""
    model = section(path, algorithm)
    known: list[str] = []
    if model is not None:
        known += fields(model)
    if not path:
        known += OUTSIDE
    return known


def fields(model: type[Section]) -> dict[str, FieldInfo]:
    """Return a section's keys, as they are written in a config, with their fields."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def algorithms_with(key: str) -> list[str]:
    """Return the algorithms that have a key."""
    return [name for name, model in ALGORITHMS.items() if key in model.model_fields]


@cache
def all_keys(algorithm: str) -> dict[str, str]:
    """Return every dotted key outside lists and kwargs, by its last part; the first section wins."""
    by_last_part: dict[str, str] = {}
    for name in ("", "env", "algo", "env.normalize", *SECTIONS):
        for key in _section_keys(name, algorithm):
            by_last_part.setdefault(key.rpartition(".")[2], key)
    return by_last_part


@cache
def dotted_keys(algorithm: str) -> tuple[str, ...]:
    """Return every dotted key outside lists and kwargs, sections included."""
    return tuple(key for name in ("algo", *SECTIONS) for key in _section_keys(name, algorithm))


def _section_keys(name: str, algorithm: str) -> list[str]:
    """Return the dotted keys of a section; none for a section that is repeated in a list or mapping."""
    path: KeyPath = tuple(name.split("."))
    if not name:
        path = ()
    if path in REPEATED:
        return []
    return [dotted((*path, key)) for key in keys(path, algorithm)]


@cache
def _json_schema(model: type[Section]) -> dict[str, Any]:
    return model.model_json_schema()


def expected(model: type[Section], key: str) -> str:
    """Describe the values of a key: `a number from 0 to 1`, `true or false`."""
    document = _json_schema(model)
    return describe(document["properties"][key], document.get("$defs", {}))


def choices(model: type[Section], key: str) -> list[str]:
    """Return the words a key takes, if it takes words from a list."""
    return words(_json_schema(model)["properties"][key])


def words(node: dict[str, Any]) -> list[str]:
    """Return the words that a JSON Schema node takes, if it takes words from a list."""
    own = _literals(node)
    nested = [word for option in node.get("anyOf", node.get("oneOf", [])) for word in words(option)]
    return [word for word in [*own, *nested] if isinstance(word, str)]


def _literals(node: dict[str, Any]) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    return list(node.get("enum", []))


def describe(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Describe a JSON Schema node in words."""
    if "$ref" in node:
        if node["$ref"].endswith("/Schedule"):
            return "a schedule `{linear: [from, to]}`"
        return "a mapping"
    options = [option for option in node.get("anyOf", node.get("oneOf", [])) if option.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(describe(option, definitions) for option in options))
    literals = [_spelling(value) for value in _literals(node)]
    if literals:
        return " or ".join(part for part in (", ".join(literals[:-1]), literals[-1]) if part)
    return _describe_type(node, definitions)


def _spelling(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _describe_type(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    kind = node.get("type")
    if kind == "integer":
        return _describe_number("a whole number", node)
    if kind == "number":
        return _describe_number("a number", node)
    if kind == "array" and "prefixItems" not in node:
        item = describe(node.get("items", {}), definitions)
        return f"a list ({item.removeprefix('a ')} each)"
    plain = {"boolean": "true or false", "string": "text", "array": "a list", "object": "a mapping"}
    return plain.get(str(kind), "a value")


def _describe_number(kind: str, node: dict[str, Any]) -> str:
    bounds = []
    if "minimum" in node and "maximum" in node:
        return f"{kind} from {node['minimum']:g} to {node['maximum']:.10g}"
    if "exclusiveMinimum" in node:
        bounds.append(f"> {node['exclusiveMinimum']:g}")
    elif "minimum" in node:
        bounds.append(f"≥ {node['minimum']:g}")
    if "maximum" in node:
        bounds.append(f"≤ {node['maximum']:g}")
    return f"{kind} {' and '.join(bounds)}".rstrip()
