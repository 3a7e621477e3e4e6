"""Load a resolved `Experiment` from YAML, overrides or plain data, and write it back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from rlx import files
from rlx.config import devices as machine
from rlx.config import layers, yaml_lines
from rlx.config.cross_check import cross_check
from rlx.config.defaults import resolve, slug
from rlx.config.schema import COMMAND, SCHEMA, Experiment, Problem
from rlx.config.validate import quote, validate
from rlx.config.yaml_lines import Document, KeyPath, Place
from rlx.errors import ConfigError

NOT_IN_GROUP = ("run_name", "seed", "seeds", "device", "resources", "log", "stop")


@dataclass(frozen=True)
class LocatedProblem:
    """A problem and its file and line."""

    problem: Problem
    place: Place

    def __str__(self) -> str:
        return f"{self.place}: {self.problem.message}"

    @property
    def with_hint(self) -> str:
        """The problem on one line, with its hint."""
        if self.problem.hint:
            return f"{self} ({self.problem.hint})"
        return str(self)


@dataclass(frozen=True)
class CheckedConfig:
    """The result of checking a config: the experiment, if there are no errors, and every problem and note."""

    experiment: Experiment | None
    problems: tuple[LocatedProblem, ...]
    document: Document

    def also(self, problems: Sequence[Problem]) -> CheckedConfig:
        """Return this with further problems, for example a backend's."""
        more = [LocatedProblem(problem, self.document.place(_path(problem.key))) for problem in problems]
        return replace(self, problems=tuple(sorted((*self.problems, *more), key=_order)))

    @property
    def errors(self) -> list[LocatedProblem]:
        return [located for located in self.problems if located.problem.is_error]

    @property
    def notes(self) -> list[LocatedProblem]:
        return [located for located in self.problems if not located.problem.is_error]


def load(path: Path, *, overrides: Sequence[str] = (), devices: Collection[str] | None = None) -> Experiment:
    """Read a config file (or `catalog:NAME`) and its overrides; `devices` are this machine's by default."""
    if devices is None:
        devices = machine.present()
    return _required(check(path, overrides=overrides, devices=devices))


def read(path: Path, *, overrides: Sequence[str] = ()) -> Experiment:
    """Read a config like `load`, without checking that this machine has its device."""
    return _required(check(path, overrides=overrides))


def check(path: Path, *, overrides: Sequence[str] = (), devices: Collection[str] | None = None) -> CheckedConfig:
    """Return every problem and note of a config; raise if the file cannot be read at all."""
    stacked = layers.stack(Path(path), overrides)
    return _examine(stacked.document, devices=devices, notes=stacked.notes)


def parse(
    data: Mapping[str, Any], *, source: str = "config", lines: Mapping[KeyPath, Place] | None = None
) -> Experiment:
    """Read plain data: a run's snapshot, or a dict from Python. The device is not checked."""
    return _required(check_data(data, source=source, lines=lines))


def check_data(
    data: Mapping[str, Any], *, source: str = "config", lines: Mapping[KeyPath, Place] | None = None
) -> CheckedConfig:
    """Return every problem and note of plain data. The device is not checked."""
    return _examine(Document(source, _plain(dict(data)), dict(lines or {})))


def _examine(
    document: Document, *, devices: Collection[str] | None = None, notes: Sequence[Problem] = ()
) -> CheckedConfig:
    experiment, by_path = validate(document.data)
    problems = [(path, problem) for path, problem in by_path.items()]
    if experiment is not None:
        resolved = resolve(experiment)
        all_problems = [*_name_problems(experiment), *cross_check(resolved, devices=devices), *notes]
        problems = [(_path(problem.key), problem) for problem in all_problems]
        experiment = resolved
    located = [LocatedProblem(problem, document.place(path)) for path, problem in problems]
    if any(problem.is_error for _, problem in problems):
        experiment = None
    return CheckedConfig(experiment, tuple(sorted(located, key=_order)), document)


def _path(key: str) -> KeyPath:
    return tuple(key.split("."))


def _order(located: LocatedProblem) -> tuple[bool, bool, str, int]:
    """Sort errors first, then by their line in the file, overrides last."""
    place = located.place
    return not located.problem.is_error, place.source.startswith("-s "), place.source, place.line or 0


def _name_problems(experiment: Experiment) -> list[Problem]:
    name = experiment.run_name
    safe = slug(name)
    if name and not safe:
        message = f"`run_name` is {quote(name)}: it has no letter or digit for a folder name"
        return [Problem("run_name", message, "run_name: my_run")]
    if name != safe:
        return [Problem("run_name", f"`run_name` {quote(name)} becomes `{safe}` on disk", is_error=False)]
    return []


def _required(checked: CheckedConfig) -> Experiment:
    if checked.experiment is None:
        raise config_error(checked.errors)
    return checked.experiment


def config_error(errors: Sequence[LocatedProblem]) -> ConfigError:
    """Return one error with all problems: the first with its hint, the others below it."""
    first, *others = errors
    lines = [str(first), *(f"  also {other.with_hint}" for other in others)]
    return ConfigError("\n".join(lines), hint=first.problem.hint)


def _plain(value: Any) -> Any:
    """Return Python values as YAML would load them: tuples as lists, NumPy values as numbers, paths as text."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy, without importing it
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    return value


def document(experiment: Experiment) -> dict[str, Any]:
    """Return the experiment as plain data, in the schema's order, without unset keys."""
    plain: dict[str, Any] = _plain(_without_none(experiment.model_dump(by_alias=True)))
    if experiment.backend == COMMAND:  # the program has its own policy and checkpoints
        plain = {key: value for key, value in plain.items() if key not in ("policy", "checkpoint")}
        plain["algo"] = {key: value for key, value in plain["algo"].items() if key in ("name", "total_timesteps")}
    return plain


def _without_none(value: dict[str, Any]) -> dict[str, Any]:
    """Drop unset keys; inside kwargs and overrides, None is a value."""
    kept = {}
    for key, item in value.items():
        if isinstance(item, dict) and key not in ("kwargs", "overrides"):
            kept[key] = _without_none(item)
        elif item is not None:
            kept[key] = item
    return kept


class _Dumper(yaml.SafeDumper):
    """Writes YAML that readers of 1.1 and 1.2 understand alike, with lists of plain values on one line."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_list(dumper: _Dumper, items: list[Any]) -> yaml.Node:
    is_flat = not any(isinstance(item, (list, dict)) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_flat)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None
    if any(char in text for char in "\x85\u2028\u2029\ufeff"):
        style = '"'  # PyYAML would write Unicode line breaks into single quotes, and reading would fold them
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(str, _represent_text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", yaml_lines.FLOAT, list("-+0123456789."))


def dump(experiment: Experiment) -> str:
    """Return the resolved config as YAML; parsing it gives the same experiment."""
    return dump_data({"schema": SCHEMA, **document(experiment)})


def dump_data(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML, in its own order."""
    text: str = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def config_hash(experiment: Experiment) -> str:
    """Return the sha256 of everything in the config."""
    return _hash(document(experiment))


def group_hash(experiment: Experiment) -> str:
    """Return the sha256 of the keys that replicates have in common: all but `NOT_IN_GROUP`."""
    return _hash({key: value for key, value in document(experiment).items() if key not in NOT_IN_GROUP})


def _hash(data: dict[str, Any]) -> str:
    return files.sha256(json.dumps(_canonical(data), sort_keys=True, separators=(",", ":")).encode())


def _canonical(value: Any) -> Any:
    """Return data with unambiguous JSON: a mapping with keys that are not text becomes its sorted pairs."""
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if not isinstance(value, dict):
        return value
    if all(isinstance(key, str) for key in value):
        return {key: _canonical(item) for key, item in value.items()}
    return {"": sorted(([repr(key), _canonical(item)] for key, item in value.items()), key=lambda pair: pair[0])}
