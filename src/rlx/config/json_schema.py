"""The JSON Schema of a config file, for editors: completion, descriptions and errors while typing."""

from __future__ import annotations

from typing import Any

from rlx.config.key_docs import MEANINGS
from rlx.config.schema import ALGORITHMS, SCHEMA, CustomAlgo, Experiment, Section
from rlx.config.schema_map import SECTIONS


def json_schema() -> dict[str, Any]:
    """Return the schema; no key is required, because a config may extend another."""
    document = Experiment.model_json_schema()
    definitions = {name: _optional(definition) for name, definition in document.pop("$defs").items()}
    for prefix, model in _models():
        _describe(definitions.get(model.__name__, document), prefix)
    either = {"anyOf": [{"type": "string"}, {"type": "object"}]}
    definitions["Env"]["properties"]["wrappers"]["items"] = either
    definitions["EvalEnv"]["properties"]["wrappers"]["anyOf"][0]["items"] = either
    properties = document["properties"]
    properties["algo"] = _algo()
    properties["extends"] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    properties["schema"] = {"const": SCHEMA}
    _describe(document, "")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rlx experiment",
        **{key: value for key, value in document.items() if key not in ("title", "required")},
        "$defs": definitions,
    }


def _models() -> list[tuple[str, type[Section]]]:
    models = [(name, model) for name, model in SECTIONS.items() if name]
    return [*models, *(("algo", model) for model in ALGORITHMS.values()), ("algo", CustomAlgo)]


def _optional(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key not in ("required", "title")}


def _describe(definition: dict[str, Any], prefix: str) -> None:
    for key, field in definition["properties"].items():
        field.pop("title", None)
        meaning = MEANINGS.get(f"{prefix}.{key}".removeprefix("."))
        if meaning:
            field["description"] = meaning


def _algo() -> dict[str, Any]:
    """Choose the algorithm's keys by its name, which editors follow better than a union."""
    return {
        "type": "object",
        "properties": {"name": {"anyOf": [{"enum": list(ALGORITHMS)}, {"type": "string", "pattern": ":"}]}},
        "allOf": [
            {
                "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
                "then": {"$ref": f"#/$defs/{model.__name__}"},
            }
            for name, model in ALGORITHMS.items()
        ],
    }
