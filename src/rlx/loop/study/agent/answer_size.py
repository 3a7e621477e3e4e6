"""Shorten the texts of an answer until it has at most 1 kB as JSON; commands and names stay whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlx import files
from rlx.loop.study.agent.history import shortened

MOST_BYTES = 980
"""The size of an answer as JSON. The printed document adds the schema's number and its brackets."""
TEXT_LENGTHS = (220, 160, 110, 70, 40)
"""The longest text, tried in this order."""
WHOLE = frozenset({"study", "status", "head", "action", "command", "propose", "metric", "also", "candidate",
                   "builds_on", "decision", "worktree"})  # fmt: skip
"""The keys whose texts are names or commands."""


def does_fit(answer: Mapping[str, Any]) -> bool:
    """Return whether an answer is short enough."""
    return len(files.encode(answer)) <= MOST_BYTES


def with_short_texts(answer: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return an answer with every text cut to `most` characters; commands and names stay whole."""
    return {key: value if key in WHOLE else _cut(value, most) for key, value in answer.items()}


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return shortened(value, most)
    if isinstance(value, Mapping):
        return with_short_texts(value, most)
    if isinstance(value, list):
        return [_cut(item, most) for item in value]
    return value
