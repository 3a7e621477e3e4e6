"""Read `candidate/train.py` as data: the settings of a training, without running any code.

The file assigns one literal to `TRAINING`, with the sections `algo`, `policy` and `env` of an rlx config. rlx's own
learner trains with them, in another process than the candidate's environment. So a candidate cannot write weights.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from rlx.errors import ConfigError
from rlx.study.candidate.config_changes import flat_keys, is_plain

NAME = "TRAINING"
SECTIONS = ("algo", "policy", "env")
HINT = f'{NAME} = {{"algo": {{"learning_rate": 3e-4}}, "policy": {{}}, "env": {{}}}}, with literal values only'


def read_training(source: str, *, file: str) -> dict[str, Any]:
    """Return the settings that a training file assigns; anything but one literal is an error with its line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{file}: not valid Python: {error}", hint=HINT) from None
    found = [node for node in tree.body if _assigns(node)]
    if len(found) != 1:
        raise ConfigError(f"{file}: assigns {NAME} {len(found)} times, not once", hint=HINT)
    try:
        value = ast.literal_eval(found[0].value)  # type: ignore[attr-defined]
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        line = found[0].lineno
        raise ConfigError(f"{file}:{line}: {NAME} is computed; rlx reads it without running code", hint=HINT) from None
    value = _as_data(value)
    if not isinstance(value, dict) or not is_plain(value):
        raise ConfigError(f"{file}:{found[0].lineno}: {NAME} is not a mapping of plain values", hint=HINT)
    for section in SECTIONS:
        if not isinstance(value.get(section, {}), dict):
            raise ConfigError(f"{file}: {NAME}[{section!r}] is not a mapping", hint=HINT)
    return value


def _assigns(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == NAME for target in node.targets)
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == NAME


def _as_data(value: Any) -> Any:
    """Return tuples as lists, as YAML and JSON have them."""
    if isinstance(value, dict):
        return {key: _as_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_data(item) for item in value]
    return value


def with_training(base: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with the settings of a training file; keys that the lab owns stay unless the file names them."""
    config = {key: _as_data(value) for key, value in base.items()}
    steps = base["algo"]["total_timesteps"]
    config["algo"] = {"total_timesteps": steps, **training.get("algo", {})}
    config["policy"] = dict(training.get("policy", {}))
    config["env"] = {"id": base["env"]["id"], "num_envs": base["env"].get("num_envs", 1), **training.get("env", {})}
    config |= {key: value for key, value in training.items() if key not in SECTIONS}
    return config


def training_changes(below: Mapping[str, Any], config: Mapping[str, Any], *, file: str) -> dict[str, Any]:
    """Return the config keys in which a training differs from the one below it, by dotted name."""
    before = flat_keys(below)
    after = flat_keys(config)
    changes = {key: value for key, value in after.items() if key not in before or before[key] != value}
    if "algo.name" in changes:
        return {"algo.name": changes.pop("algo.name"), **changes}
    for key in before:
        if key not in after and key.partition(".")[0] in SECTIONS and before[key] not in ({}, None):
            raise ConfigError(f"{file}: `{key}` was {before[key]!r} and is missing now", hint="write its new value")
    return changes
