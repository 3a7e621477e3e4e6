"""Builds the arguments of a training command from its template and placeholders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

OVERRIDES = "{overrides}"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def fill(template: str, places: Mapping[str, str]) -> str:
    """Replace the names in braces that have a value; other braces stay."""
    return _PLACEHOLDER.sub(lambda match: places.get(match[1], match[0]), template)


def arguments(
    words: Sequence[str], places: Mapping[str, str], *, override: str, overrides: Mapping[str, Any]
) -> list[str]:
    """Return the arguments of a command; `{overrides}` becomes the arguments that set every key, in order."""
    argv: list[str] = []
    for word in words:
        if word == OVERRIDES:
            argv += override_arguments(override, overrides)
        else:
            argv.append(fill(word, places))
    return argv


def override_arguments(template: str, overrides: Mapping[str, Any]) -> list[str]:
    """Return the arguments that set keys; a template with a space gives two arguments per key.

    A template that ends with `...` joins the keys behind one option: `--set {key}:{value} ...` gives `--set a:1 b:2`.
    """
    parts = template.split()
    is_joined = parts[-1:] == ["..."]
    if is_joined:
        parts = parts[:-1]
    words: list[str] = []
    for index, (key, value) in enumerate(flat(overrides)):
        for part in parts:
            is_option = "{key}" not in part and "{value}" not in part
            if not (is_joined and is_option and index):
                words.append(fill(part, {"key": key, "value": spell(value)}))
    return words


def flat(overrides: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted keys and their values."""
    for key, value in overrides.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping) and value:
            yield from flat(value, name)
        else:
            yield name, value


def spell(value: object) -> str:
    """Return a value as an argument: text unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
