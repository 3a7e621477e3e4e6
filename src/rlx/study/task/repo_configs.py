"""A repository's own config files: the files that its training command names, their keys, values and subjects.

Not covered: files that a config refers to, and values that the program computes from others.
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
from rlx.study.candidate import path_patterns
from rlx.study.task.task import Argv, Surface

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
"""The subject of a key by its name; the first match counts, and a key without a match is a hyperparameter."""


def config_files(train: Argv, root: Path) -> tuple[str, ...]:
    """Return the config files of the repository that a training command names, anywhere in its arguments."""
    names = dict.fromkeys(name.removeprefix("./") for word in train for name in _FILE.findall(word))
    return tuple(name for name in names if path_patterns.path_problem(name) is None and (root / name).is_file())


def values(files: Iterable[str], root: Path) -> dict[str, Value]:
    """Return the dotted keys of config files and their values."""
    return {key: value for file in files for key, value in flat(read(root / file))}


def tunable(config: Mapping[str, Value], train: Argv) -> dict[str, Value]:
    """Return the keys that a candidate may change: not seeds, and not the keys that rlx fills in.

    A key that the command sets itself has no known value.
    """
    command = " ".join(train)
    keys: dict[str, Value] = {}
    for key, value in config.items():
        in_command = re.search(rf"(?<![\w.]){re.escape(key)}[= ](.?)", command)
        if path_patterns.is_seed_key(key) or (in_command and in_command[1] == "{"):
            continue
        keys[key] = value
        if in_command:
            keys[key] = None
    return keys


def subjects(keys: Sequence[str]) -> dict[Surface, tuple[str, ...]]:
    """Return keys by their subject."""
    by_subject: dict[Surface, tuple[str, ...]] = {}
    for key in keys:
        subject: Surface = next((name for name, pattern in _SUBJECTS if pattern.search(key)), "hyperparameters")
        by_subject[subject] = (*by_subject.get(subject, ()), key)
    return by_subject


def read(path: Path) -> Mapping[str, Any]:
    """Return the content of a file; an empty mapping if it cannot be read as one."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix != ".json":
            return yaml_lines.parse(text, source=path.name).data
        data = json.loads(text)
    except (OSError, ValueError, RecursionError, ConfigError):
        return {}
    if not isinstance(data, dict):
        return {}
    return data


def flat(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the dotted keys of nested data and their values."""
    for name, value in data.items():
        key = f"{above}{name}"
        if isinstance(value, dict) and value:
            yield from flat(value, f"{key}.")
        elif isinstance(value, (str, int, float, list)):
            yield key, value
        else:
            yield key, None
