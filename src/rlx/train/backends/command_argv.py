"""The arguments of a training command: a template with its placeholders filled in; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

OVERRIDES = "{overrides}"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def fill(template: str, places: Mapping[str, str]) -> str:
    """Put values in the place of the names in braces that have one; other braces stay."""
    return _PLACEHOLDER.sub(lambda match: places.get(match[1], match[0]), template)


def arguments(
    words: Sequence[str], places: Mapping[str, str], *, override: str, overrides: Mapping[str, Any]
) -> list[str]:
    """Return the arguments of a command; `{overrides}` becomes those of every key, in order."""
    found: list[str] = []
    for word in words:
        found += override_arguments(override, overrides) if word == OVERRIDES else [fill(word, places)]
    return found


def override_arguments(template: str, overrides: Mapping[str, Any]) -> list[str]:
    """Return the arguments that set keys; a template with a space in it gives two for each."""
    return [
        fill(part, {"key": key, "value": spell(value)}) for key, value in flat(overrides) for part in template.split()
    ]


def flat(overrides: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield keys with dots and their values."""
    for key, value in overrides.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping) and value:
            yield from flat(value, name)
        else:
            yield name, value


def spell(value: object) -> str:
    """Return a value as an argument: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
