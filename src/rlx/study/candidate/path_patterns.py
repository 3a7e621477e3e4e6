"""Patterns of places: paths as globs, regions as `file.py::Class.method`, config keys as `algo.*`."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

REGION = "::"
_WILDCARD = re.compile(r"\*\*/|\*\*|\*|\?")
_MEANINGS = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def split(pattern: str) -> tuple[str, str | None]:
    """Split a pattern into its path and its region, or None if it names no region."""
    path, mark, region = pattern.partition(REGION)
    return path, region if mark else None


def is_glob(pattern: str) -> bool:
    """Say whether a path pattern has wildcards."""
    return "*" in pattern or "?" in pattern


def covers_path(pattern: str, path: str) -> bool:
    """Say whether a pattern (without its region) covers a path: `*` stays in a folder, `**` crosses folders.

    A pattern without wildcards covers the file of that name, and everything in the folder of that name.
    """
    return _regex(split(pattern)[0]).fullmatch(path) is not None


def any_covers_path(patterns: Iterable[str], path: str) -> bool:
    """Say whether one of the patterns covers a path."""
    return any(covers_path(pattern, path) for pattern in patterns)


@lru_cache(maxsize=512)
def _regex(pattern: str) -> re.Pattern[str]:
    text = pattern.removeprefix("./").rstrip("/")
    regex = ""
    end = 0
    for match in _WILDCARD.finditer(text):
        regex += re.escape(text[end : match.start()]) + _MEANINGS[match[0]]
        end = match.end()
    return re.compile(f"{regex}{re.escape(text[end:])}(?:/.*)?", re.DOTALL)


def nested(region: str, other: str) -> bool:
    """Say whether two regions are the same, or one lies inside the other."""
    return f"{region}.".startswith(f"{other}.") or f"{other}.".startswith(f"{region}.")


def covers_key(pattern: str, key: str) -> bool:
    """Say whether a pattern covers a dotted config key: the key itself, a key below it, or a wildcard match."""
    return key == pattern or key.startswith(f"{pattern}.") or fnmatch.fnmatchcase(key, pattern)


def any_covers_key(patterns: Iterable[str], key: str) -> bool:
    """Say whether one of the patterns covers a key."""
    return any(covers_key(pattern, key) for pattern in patterns)


def keys_overlap(pattern: str, other: str) -> bool:
    """Say whether two key patterns can mean the same key."""
    first = pattern.removesuffix(".*")
    second = other.removesuffix(".*")
    return covers_key(first, second) or covers_key(second, first)


def is_seed_key(key: str) -> bool:
    """Say whether a key is a seed by its name: a seed is a replicate, not a hyperparameter."""
    return "seed" in key.lower()


def path_problem(pattern: str) -> str | None:
    """Say why a path pattern is not valid: it must lie in the repository and mean one thing."""
    path, region = split(pattern)
    parts = path.removeprefix("./").rstrip("/").split("/")
    if not path or path.startswith(("/", "~")) or "\\" in path:
        return "is not a path inside the repository"
    if any(part in ("", ".", "..") for part in parts):
        return "has `.`, `..` or an empty part"
    if path != unicodedata.normalize("NFC", path) or not path.isprintable():
        return "has characters that look like others"
    if region is None:
        return None
    if is_glob(path) or not path.endswith(".py"):
        return "names a region, so its file must be one Python file"
    if not all(part.isidentifier() for part in region.split(".")):
        return "names a region that is not a `Class`, `function` or `Class.method`"
    return None
