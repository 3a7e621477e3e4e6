"""Editors get a schema that knows every key and says what it means."""

from __future__ import annotations

import json
from typing import Any

from rlx.config.json_schema import json_schema
from rlx.config.schema import ALGORITHMS
from rlx.config.schema_map import OUTSIDE, SECTIONS, fields


def definition(model: type) -> dict[str, Any]:
    found: dict[str, Any] = json_schema()["$defs"][model.__name__]
    return found


def test_every_key_of_every_section_is_in_it_with_a_description() -> None:
    for name, model in SECTIONS.items():
        properties = definition(model)["properties"] if name else json_schema()["properties"]
        assert set(properties) == set(fields(model)) | (set(OUTSIDE) if not name else set())
        assert all(field.get("description") for field in properties.values())


def test_the_algorithms_keys_follow_from_its_name() -> None:
    rules = json_schema()["properties"]["algo"]["allOf"]
    assert [rule["if"]["properties"]["name"]["const"] for rule in rules] == list(ALGORITHMS)
    for rule, model in zip(rules, ALGORITHMS.values(), strict=True):
        assert rule["then"] == {"$ref": f"#/$defs/{model.__name__}"}
        assert set(definition(model)["properties"]) == set(model.model_fields)


def test_unknown_keys_are_underlined_and_nothing_is_required() -> None:
    document = json_schema()
    assert document["additionalProperties"] is False
    assert "required" not in document
    assert all("required" not in part for part in document["$defs"].values())


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(json_schema())
    names = {part.split('"')[0] for part in text.split("#/$defs/")[1:]}
    assert names <= set(json_schema()["$defs"])
