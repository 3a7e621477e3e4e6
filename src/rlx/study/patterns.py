"""Patterns of places: paths as globs, regions as `file.py::Class.method`, config keys as `algo.*`."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from functools import lru_cache

REGION = "::"


def split(pattern: str) -> tuple[str, str | None]:
    """Part a pattern into its path and, where it names one, its region."""
    path, mark, region = pattern.partition(REGION)
    return path, region if mark else None


def is_glob(pattern: str) -> bool:
    """Say whether a path pattern has wildcards."""
    return any(char in pattern for char in "*?")


def covers_path(pattern: str, path: str) -> bool:
    """Say whether a pattern (without its region) covers a path: `*` stays in a folder, `**` crosses them.

    A pattern without wildcards covers the file of that name, and everything in the folder of that name.
    """
    return _regex(split(pattern)[0]).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _regex(pattern: str) -> re.Pattern[str]:
    text = pattern.removeprefix("./").rstrip("/")
    built, rest = "", text
    while rest:
        if rest.startswith("**/"):
            built, rest = built + "(?:[^/]+/)*", rest[3:]
        elif rest.startswith("**"):
            built, rest = built + ".*", rest[2:]
        else:
            known = {"*": "[^/]*", "?": "[^/]"}
            built, rest = built + known.get(rest[0], re.escape(rest[0])), rest[1:]
    return re.compile(f"{built}(?:/.*)?", re.DOTALL)


def nested(one: str, other: str) -> bool:
    """Say whether of two regions one is the other, or lies inside it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def covers_key(pattern: str, key: str) -> bool:
    """Say whether a pattern covers a dotted config key: itself, what is below it, or what its wildcards match."""
    return key == pattern or key.startswith(f"{pattern}.") or fnmatch.fnmatchcase(key, pattern)


def keys_overlap(one: str, other: str) -> bool:
    """Say whether two key patterns can mean the same key."""
    a, b = one.removesuffix(".*"), other.removesuffix(".*")
    return covers_key(a, b) or covers_key(b, a)


def is_seed_key(key: str) -> bool:
    """Say whether a key is a seed by its name: replicates are no hyperparameter, whatever a repository calls them."""
    return "seed" in key.lower()


def path_problem(pattern: str) -> str | None:
    """Say what is wrong with a path pattern: it must lie in the repository and mean one thing."""
    path, region = split(pattern)
    parts = path.removeprefix("./").rstrip("/").split("/")
    if not path or path.startswith(("/", "~")) or "\\" in path:
        return "is not a path inside the repository"
    if any(part in ("", ".", "..") for part in parts):
        return "has `.`, `..` or an empty part"
    if path != unicodedata.normalize("NFC", path) or not path.isprintable():
        return "has characters that look like others"
    if region is not None and (is_glob(path) or not path.endswith(".py")):
        return "names a region, so its file must be one Python file"
    if region is not None and not all(part.isidentifier() for part in region.split(".")):
        return "names a region that is no `Class`, `function` or `Class.method`"
    return None
