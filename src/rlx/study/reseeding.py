"""Reseeding: a change of code that only seeds random numbers anew is another replicate, and no candidate.

What is not covered: a seed that hides behind another name, or among other changes; fresh training seeds and episodes
drawn afterwards are what such a change gains nothing on.
"""

from __future__ import annotations

import re
from collections import Counter

_SEEDING = re.compile(
    rb"\b(\w*seed\w*|default_rng|RandomState|PRNGKey|Generator)\s*[(=:]|\bimport (random|numpy|torch|secrets)\b",
    re.IGNORECASE,
)
_EMPTY = re.compile(rb"\s*(#.*)?")


def is_seed_only(patch: bytes, *, below: bytes = b"") -> bool:
    """Say whether all that a patch changes beside the one it builds on are lines that seed a generator."""
    lines = [line for line in (_changed(patch) - _changed(below)) if not _EMPTY.fullmatch(line)]
    return any(b"seed" in line.lower() for line in lines) and all(_SEEDING.search(line) for line in lines)


def _changed(patch: bytes) -> Counter[bytes]:
    lines = [line for line in patch.splitlines() if line[:1] in (b"+", b"-")]
    return Counter(line[1:] for line in lines if not line.startswith((b"+++ ", b"--- ")))
