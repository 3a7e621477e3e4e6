"""A repository's own config files: those that its training names, their keys and values, and what each key is about.

What is not covered: files that a config names in turn, and values that the program works out of others.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.config import yaml_lines
from rlx.errors import ConfigError
from rlx.study import patterns
from rlx.study.task import Argv, Surface

Value = str | int | float | bool | list[Any] | None
_FILE = re.compile(r"[\w./-]+\.(?:ya?ml|json|toml)\b")
_LEARNING = ("agent", "algo", "algorithm", "policy", "ppo", "sac", "runner", "train", "training", "optimizer", "model")
_SUBJECTS: tuple[tuple[Surface, re.Pattern[str]], ...] = (
    ("evaluator", re.compile(r"^eval", re.I)),
    ("hyperparameters", re.compile(rf"^({'|'.join(_LEARNING)})\.", re.I)),
    ("reward", re.compile(r"(^|\.)reward", re.I)),
    ("curriculum", re.compile(r"difficulty|level|curriculum|stage", re.I)),
    ("randomisation", re.compile(r"random|noise|friction|mass|perturb|delay|latency|push", re.I)),
    ("env", re.compile(r"^(env|environment|sim|simulation|task|scene|terrain|world|robot|asset)s?\.", re.I)),
)
"""What a key is about by its name, the first that fits; what fits none is a hyperparameter."""


def config_files(train: Argv, root: Path) -> tuple[str, ...]:
    """Return the config files of the repository that a training command names, wherever they stand in its words."""
    named = dict.fromkeys(one.removeprefix("./") for word in train for one in _FILE.findall(word))
    return tuple(one for one in named if patterns.path_problem(one) is None and (root / one).is_file())


def values(files: Iterable[str], root: Path) -> dict[str, Value]:
    """Return the keys of config files, with dots, and their values."""
    return {key: value for file in files for key, value in flat(read(root / file))}


def tunable(found: Mapping[str, Value], train: Argv) -> dict[str, Value]:
    """Return the keys that a change may give other values: no seeds, and nothing that rlx fills in.

    A value that the command gives itself is not the file's.
    """
    said = " ".join(train)
    given = {key: re.search(rf"(?<![\w.]){re.escape(key)}[= ](.?)", said) for key in found}
    return {
        key: None if given[key] else value
        for key, value in found.items()
        if not patterns.is_seed_key(key) and not ((match := given[key]) and match[1] == "{")
    }


def subjects(keys: Sequence[str]) -> dict[Surface, tuple[str, ...]]:
    """Return keys by what they are about."""
    found: dict[Surface, tuple[str, ...]] = {}
    for key in keys:
        about: Surface = next((name for name, sign in _SUBJECTS if sign.search(key)), "hyperparameters")
        found[about] = (*found.get(about, ()), key)
    return found


def read(path: Path) -> Mapping[str, Any]:
    """Return what a file says; nothing where it is no mapping that can be read."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        data = json.loads(text) if path.suffix == ".json" else yaml_lines.parse(text, source=path.name).data
    except (OSError, ValueError, RecursionError, ConfigError):
        return {}
    return data if isinstance(data, dict) else {}


def flat(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the keys of nested data, with dots, and their values."""
    for name, value in data.items():
        key = f"{above}{name}"
        if isinstance(value, dict) and value:
            yield from flat(value, f"{key}.")
        else:
            yield key, value if isinstance(value, (str, int, float, list)) else None
