"""Hints for unknown keys: the key that the user probably meant."""

from __future__ import annotations

from rlx.config.key_docs import OTHER_NAMES
from rlx.config.schema import Problem
from rlx.config.schema_map import algorithms_with, all_keys, dotted, keys
from rlx.config.yaml_lines import KeyPath
from rlx.errors import did_you_mean


def unknown_key(path: KeyPath, algorithm: str) -> Problem:
    """Return the problem, with the likeliest meaning as its hint."""
    return Problem(dotted(path), f"unknown key `{dotted(path)}`", _hint(path, algorithm), is_unknown_key=True)


def _hint(path: KeyPath, algorithm: str) -> str:
    word = str(path[-1])
    section = path[:-1]
    known = all_keys(algorithm)
    meant = _by_other_name(word, known)
    if meant is None:
        foreign = _of_other_algorithm(word, section, algorithm)
        if foreign:
            return foreign
        meant = known.get(word) or _close_in_section(word, section, algorithm) or _close_anywhere(word, known)
    if meant:
        return f"did you mean `{meant}`?"
    place = f"`{dotted(section)}`"
    if not section:
        place = "a config"
    return f"{place} has: {', '.join(keys(section, algorithm)) or 'no keys'}"


def _by_other_name(word: str, known: dict[str, str]) -> str | None:
    """Return the key for a name of another library, if this config's algorithm has that key."""
    meant = OTHER_NAMES.get(word.lower().replace("-", "_"))
    return next((key for key in known.values() if key == meant), None)


def _of_other_algorithm(word: str, section: KeyPath, algorithm: str) -> str | None:
    spelling = OTHER_NAMES.get(word, f"algo.{word}").removeprefix("algo.")
    owners = algorithms_with(spelling)
    if section not in ((), ("algo",)) or not owners or algorithm in owners:
        return None
    return f"`algo.{spelling}` is a key of {', '.join(owners)}; this config uses {algorithm}"


def _close_in_section(word: str, section: KeyPath, algorithm: str) -> str | None:
    known = keys(section, algorithm)
    near = did_you_mean(word, known) or next((key for key in known if _is_short_for(key, word)), None)
    if near:
        return dotted((*section, near))
    others = {name: meant for name, meant in OTHER_NAMES.items() if meant.rpartition(".")[0] == dotted(section)}
    meant = others.get(did_you_mean(word, list(others)) or "")
    return next((key for key in all_keys(algorithm).values() if key == meant), None)


def _is_short_for(key: str, word: str) -> bool:
    return min(len(key), len(word)) >= 3 and (key.startswith(word) or word.startswith(key))


def _close_anywhere(word: str, known: dict[str, str]) -> str | None:
    if len(word) <= 4:
        return None
    return known.get(did_you_mean(word, list(known)) or "")
