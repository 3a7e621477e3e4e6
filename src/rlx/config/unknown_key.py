"""What was meant by a key that does not exist."""

from __future__ import annotations

from rlx.config.keys import OTHER_NAMES
from rlx.config.schema import Problem
from rlx.config.sections import algorithms_with, all_keys, dotted, keys
from rlx.config.yaml_lines import KeyPath
from rlx.errors import did_you_mean


def unknown_key(path: KeyPath, algorithm: str) -> Problem:
    """Return the problem, with the likeliest meaning as its hint."""
    return Problem(dotted(path), f"unknown key `{dotted(path)}`", _hint(path, algorithm))


def _hint(path: KeyPath, algorithm: str) -> str:
    word, section = str(path[-1]), path[:-1]
    known = all_keys(algorithm)
    for meant in (
        _by_other_name(word, known),
        _of_other_algorithm(word, section, algorithm),
        f"did you mean `{known[word]}`?" if word in known else None,
        _close_in_section(word, section, algorithm),
        _close_anywhere(word, known),
    ):
        if meant:
            return meant
    where = f"`{dotted(section)}` has" if section else "a config has"
    return f"{where}: {', '.join(keys(section, algorithm)) or 'no keys'}"


def _by_other_name(word: str, known: dict[str, str]) -> str | None:
    """Look in the names other libraries use; a name of an algorithm that this is not, is no help."""
    meant = OTHER_NAMES.get(word.lower().replace("-", "_"))
    return f"did you mean `{meant}`?" if meant in known.values() else None


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
        return f"did you mean `{dotted((*section, near))}`?"
    others = {name: meant for name, meant in OTHER_NAMES.items() if meant.rpartition(".")[0] == dotted(section)}
    meant = others.get(did_you_mean(word, list(others)) or "")
    return f"did you mean `{meant}`?" if meant in all_keys(algorithm).values() else None


def _is_short_for(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= 3 and (one.startswith(other) or other.startswith(one))


def _close_anywhere(word: str, known: dict[str, str]) -> str | None:
    near = did_you_mean(word, list(known)) if len(word) > 4 else None
    return f"did you mean `{known[near]}`?" if near else None
