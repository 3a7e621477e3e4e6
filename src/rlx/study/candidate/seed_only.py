"""Recognise a code change that only reseeds random numbers: it is another replicate, not a candidate.

Not covered: a seed with another name, or a seed among other changes. Fresh training seeds, and episodes that are
drawn afterwards, keep such a change from gaining anything.
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
    """Say whether a patch only changes lines that seed a generator; lines of the patch `below` do not count."""
    lines = [line for line in (_changed(patch) - _changed(below)) if not _EMPTY.fullmatch(line)]
    return any(b"seed" in line.lower() for line in lines) and all(_SEEDING.search(line) for line in lines)


def _changed(patch: bytes) -> Counter[bytes]:
    lines = [line for line in patch.splitlines() if line[:1] in (b"+", b"-")]
    return Counter(line[1:] for line in lines if not line.startswith((b"+++ ", b"--- ")))
