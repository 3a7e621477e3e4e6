"""Which executor starts jobs, and its settings: the `[executor]` section of `rlx.toml`.

`--executor NAME` wins over the variable `RLX_EXECUTOR`, which wins over `name` in the section. Without all three, jobs
run on this machine.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from rlx import plugins
from rlx.config.schema import Section, Text
from rlx.errors import ConfigError, NotFound, did_you_mean
from rlx.runs import project
from rlx.runs.job_folder import LOCAL

VARIABLE = "RLX_EXECUTOR"
SECTION = "executor"
_WORDS = tuple[Text, ...]


class ExecutorSettings(Section):
    """The settings of one executor; each executor reads those that it understands."""

    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    minutes: float | None = Field(default=None, gt=0)
    cores: int | None = Field(default=None, ge=1)
    gpus: float | None = Field(default=None, ge=0)
    memory_gb: float | None = Field(default=None, gt=0)
    setup: _WORDS = ()
    container: _WORDS = ()
    options: _WORDS = ()
    array_limit: int | None = Field(default=None, ge=1)
    requeue: bool = True
    signal_seconds: int = Field(default=90, ge=1)
    poll_seconds: float = Field(default=30.0, gt=0)
    attempts: int = Field(default=100, ge=1)
    address: Text = "auto"
    submit: _WORDS = ()
    poll: _WORDS = ()
    cancel: _WORDS = ()


def checked(settings: Mapping[str, Any], *, source: str = project.MARKER) -> ExecutorSettings:
    """Return settings that were checked; one line names the first key that is wrong."""
    try:
        return ExecutorSettings(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] != "extra_forbidden":
            raise ConfigError(f"{source}: [{SECTION}] {key}: {first['msg'].lower()}") from None
        near = did_you_mean(key, list(ExecutorSettings.model_fields))
        hint = f"known: {', '.join(ExecutorSettings.model_fields)}"
        if near:
            hint = f"did you mean `{near}`?"
        raise ConfigError(f"{source}: [{SECTION}] has no key `{key}`", hint=hint) from None


def chosen_name(root: Path) -> str:
    """Return the name of the executor for plain runs of a project."""
    return named_by_user() or str(section(root).get("name") or LOCAL)


def named_by_user() -> str:
    """Return the executor that the command line or the environment names; empty if neither does."""
    name = os.environ.get(VARIABLE, "")
    if name and name not in plugins.EXECUTORS:
        near = did_you_mean(name, list(plugins.EXECUTORS))
        hint = f"known: {', '.join(plugins.EXECUTORS)}"
        if near:
            hint = f"did you mean `{near}`?"
        raise NotFound(f"unknown executor `{name}`", hint=hint)
    return name


def read(root: Path) -> dict[str, Any]:
    """Return the settings in the project's `rlx.toml`, without the executor's name."""
    settings = {key: value for key, value in section(root).items() if key != "name"}
    checked(settings)
    return settings


def section(root: Path) -> Mapping[str, Any]:
    """Return the `[executor]` section as it stands in `rlx.toml`; empty if there is none."""
    path = root / project.MARKER
    try:
        document = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} cannot be read: {error}") from None
    found = document.get(SECTION, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{path.name}: `{SECTION}` is not a section", hint=f"write [{SECTION}]")
    name = found.get("name", LOCAL)
    if name not in plugins.EXECUTORS:
        raise ConfigError(
            f"{path.name}: [{SECTION}] name: unknown executor `{name}`", hint=f"known: {', '.join(plugins.EXECUTORS)}"
        )
    return found
