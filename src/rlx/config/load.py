"""From YAML, overrides or plain data to a resolved `Experiment`, and back."""

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
class Found:
    """A problem and where it stands."""

    problem: Problem
    place: Place

    def __str__(self) -> str:
        return f"{self.place}: {self.problem.message}"


@dataclass(frozen=True)
class Checked:
    """What a look at a config found: the experiment, unless there are errors, and every problem and note."""

    experiment: Experiment | None
    found: tuple[Found, ...]
    document: Document

    def also(self, problems: Sequence[Problem]) -> Checked:
        """Return this with what others (a backend) have found."""
        more = [Found(problem, self.document.place(_path(problem.key))) for problem in problems]
        return replace(self, found=tuple(sorted((*self.found, *more), key=_order)))

    @property
    def errors(self) -> list[Found]:
        return [found for found in self.found if found.problem.is_error]

    @property
    def notes(self) -> list[Found]:
        return [found for found in self.found if not found.problem.is_error]


def load(path: Path, *, overrides: Sequence[str] = (), devices: Collection[str] | None = None) -> Experiment:
    """Read a config file (or `catalog:NAME`) and its overrides; `devices` is what to train on, default this machine."""
    return _required(check(path, overrides=overrides, devices=machine.present() if devices is None else devices))


def read(path: Path, *, overrides: Sequence[str] = ()) -> Experiment:
    """Read a config to look at it: as `load`, without asking whether its device is here."""
    return _required(check(path, overrides=overrides))


def check(path: Path, *, overrides: Sequence[str] = (), devices: Collection[str] | None = None) -> Checked:
    """Return every problem and note of a config; a file that cannot be read at all raises."""
    stacked = layers.stack(Path(path), overrides)
    return _examine(stacked.document, devices=devices, notes=stacked.notes)


def parse(
    data: Mapping[str, Any], *, source: str = "config", lines: Mapping[KeyPath, Place] | None = None
) -> Experiment:
    """Read plain data: a run's snapshot, or a dict from Python. Never asks whether the device is here."""
    return _required(_examine(Document(source, _plain(dict(data)), dict(lines or {}))))


def _examine(document: Document, *, devices: Collection[str] | None = None, notes: Sequence[Problem] = ()) -> Checked:
    experiment, by_path = validate(document.data)
    problems = [(path, problem) for path, problem in by_path.items()]
    if experiment is not None:
        resolved = resolve(experiment)
        about = [*_name_problems(experiment), *cross_check(resolved, devices=devices), *notes]
        problems = [(_path(problem.key), problem) for problem in about]
        experiment = resolved
    found = [Found(problem, document.place(path)) for path, problem in problems]
    has_errors = any(one.problem.is_error for one in found)
    return Checked(None if has_errors else experiment, tuple(sorted(found, key=_order)), document)


def _path(key: str) -> KeyPath:
    return tuple(key.split("."))


def _order(found: Found) -> tuple[bool, bool, str, int]:
    """Errors first, then as they stand in their file, overrides last."""
    place = found.place
    return not found.problem.is_error, place.source.startswith("-s "), place.source, place.line or 0


def _name_problems(experiment: Experiment) -> list[Problem]:
    name = experiment.run_name
    safe = slug(name)
    if name and not safe:
        return [
            Problem(
                "run_name",
                f"`run_name` is {quote(name)}: no letter or digit is left for a folder name",
                "run_name: my_run",
            )
        ]
    if name != safe:
        return [Problem("run_name", f"`run_name` {quote(name)} becomes `{safe}` on disk", is_error=False)]
    return []


def _required(checked: Checked) -> Experiment:
    if checked.experiment is None:
        raise config_error(checked.errors)
    return checked.experiment


def config_error(errors: Sequence[Found]) -> ConfigError:
    """Return one error that tells all: the first with its hint, the others below it."""
    first, *others = errors
    lines = [str(first)]
    for other in others:
        lines.append(f"  also {other}" + (f" ({other.problem.hint})" if other.problem.hint else ""))
    return ConfigError("\n".join(lines), hint=first.problem.hint)


def _plain(value: Any) -> Any:
    """Return Python values as YAML would give them: lists for tuples, numbers for NumPy's, text for paths."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy, without importing it
        return value.tolist()
    return str(value) if isinstance(value, Path) else value


def document(experiment: Experiment) -> dict[str, Any]:
    """Return the experiment as plain data, in the schema's order, without what is not set."""
    plain: dict[str, Any] = _plain(_without_none(experiment.model_dump(by_alias=True)))
    if experiment.backend == COMMAND:  # the program has its own policy, and checkpoints when it likes
        plain = {key: value for key, value in plain.items() if key not in ("policy", "checkpoint")}
        plain["algo"] = {key: value for key, value in plain["algo"].items() if key in ("name", "total_timesteps")}
    return plain


def _without_none(value: dict[str, Any]) -> dict[str, Any]:
    """Drop open keys; inside kwargs and overrides, None is a value."""
    return {
        key: _without_none(item) if isinstance(item, dict) and key not in ("kwargs", "overrides") else item
        for key, item in value.items()
        if item is not None
    }


class _Dumper(yaml.SafeDumper):
    """YAML that both 1.1 and 1.2 readers understand alike, with lists of plain values on one line."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_list(dumper: _Dumper, items: list[Any]) -> yaml.Node:
    is_flat = not any(isinstance(item, (list, dict)) for item in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_flat)


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    # PyYAML writes the Unicode line breaks into single quotes, where reading folds them away
    style = '"' if any(char in text for char in "\x85\u2028\u2029\ufeff") else None
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
    """Return the sha256 of what makes runs replicates of each other: all but `NOT_IN_GROUP`."""
    return _hash({key: value for key, value in document(experiment).items() if key not in NOT_IN_GROUP})


def _hash(data: dict[str, Any]) -> str:
    return files.sha256(json.dumps(_canonical(data), sort_keys=True, separators=(",", ":")).encode())


def _canonical(value: Any) -> Any:
    """Return data whose JSON is one-to-one: a mapping with other keys than text becomes its sorted pairs."""
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if not isinstance(value, dict):
        return value
    if all(isinstance(key, str) for key in value):
        return {key: _canonical(item) for key, item in value.items()}
    return {"": sorted(([repr(key), _canonical(item)] for key, item in value.items()), key=lambda pair: pair[0])}
