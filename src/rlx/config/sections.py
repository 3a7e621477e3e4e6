"""The map of a config: which model describes which part, which keys it has, and what each key takes."""

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
"""Lists and mappings of which every entry is such a section."""
OUTSIDE = ("extends", "schema")  # keys of a config file that are not part of the experiment
SCHEDULED = ("learning_rate", "clip_range", "delta_std")


def dotted(path: KeyPath) -> str:
    """Return a path as people write it: `env.wrappers.0.name`."""
    return ".".join(str(part) for part in path)


def section(path: KeyPath, algorithm: str) -> type[Section] | None:
    """Return the model of the mapping at `path`, or None where any key goes (kwargs) or none does."""
    if path == ("algo",):
        return ALGORITHMS.get(algorithm, CustomAlgo)
    for several, model in REPEATED.items():
        if path[: len(several)] == several:
            return model if len(path) == len(several) + 1 else None
    return SECTIONS.get(dotted(path))


def keys(path: KeyPath, algorithm: str) -> list[str]:
    """Return the keys the mapping at `path` may have."""
    model = section(path, algorithm)
    own = list(fields(model)) if model else []
    return own if path else [*own, *OUTSIDE]


def fields(model: type[Section]) -> dict[str, FieldInfo]:
    """Return a section's keys, as they are written in a config, and what describes them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def algorithms_with(key: str) -> list[str]:
    """Return the algorithms that have a key."""
    return [name for name, model in ALGORITHMS.items() if key in model.model_fields]


@cache
def all_keys(algorithm: str) -> dict[str, str]:
    """Return every dotted key outside lists and kwargs, by its last part; the first section wins."""
    found: dict[str, str] = {}
    for name in ("", "env", "algo", "env.normalize", *SECTIONS):
        path = tuple(name.split(".")) if name else ()
        for key in keys(path, algorithm) if path not in REPEATED else []:
            found.setdefault(key, dotted((*path, key)))
    return found


@cache
def dotted_keys(algorithm: str) -> tuple[str, ...]:
    """Return every dotted key there is outside lists and kwargs, sections included."""
    paths = [tuple(name.split(".")) if name else () for name in ("algo", *SECTIONS)]
    return tuple(dotted((*path, key)) for path in paths if path not in REPEATED for key in keys(path, algorithm))


@cache
def _json_schema(model: type[Section]) -> dict[str, Any]:
    return model.model_json_schema()


def expected(model: type[Section], key: str) -> str:
    """Say what a key takes: `a number from 0 to 1`, `true or false`."""
    document = _json_schema(model)
    return describe(document["properties"][key], document.get("$defs", {}))


def choices(model: type[Section], key: str) -> list[str]:
    """Return the words a key takes, if it takes words from a list."""
    return words(_json_schema(model)["properties"][key])


def words(node: dict[str, Any]) -> list[str]:
    """Return the words that a JSON Schema node takes, if it takes words from a list."""
    own = [node["const"]] if "const" in node else node.get("enum", [])
    nested = [word for option in node.get("anyOf", node.get("oneOf", [])) for word in words(option)]
    return [word for word in [*own, *nested] if isinstance(word, str)]


def describe(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Put a JSON Schema node into words."""
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        return "a schedule `{linear: [from, to]}`" if name == "Schedule" else "a mapping"
    options = [option for option in node.get("anyOf", node.get("oneOf", [])) if option.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(describe(option, definitions) for option in options))
    if "const" in node or "enum" in node:
        named = [_word(word) for word in ([node["const"]] if "const" in node else node["enum"])]
        return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"
    return _describe_type(node, definitions)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe_type(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    kind = node.get("type")
    if kind in ("integer", "number"):
        return _describe_number("a whole number" if kind == "integer" else "a number", node)
    if kind == "array" and "prefixItems" not in node:
        item = describe(node.get("items", {}), definitions)
        return f"a list ({item.removeprefix('a ')} each)"
    plain = {"boolean": "true or false", "string": "text", "array": "a list", "object": "a mapping"}
    return plain.get(str(kind), "a value")


def _describe_number(kind: str, node: dict[str, Any]) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None:
        return f"{kind} from {low:g} to {high:.10g}"
    if "exclusiveMinimum" in node:
        return f"{kind} > {node['exclusiveMinimum']:g}" + (f" and ≤ {high:g}" if high is not None else "")
    return f"{kind} ≥ {low:g}" if low is not None else kind
