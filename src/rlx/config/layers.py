"""The layers of one config, merged in order: the configs that it extends, the file itself, the overrides."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlx.config import catalog, config_grid, yaml_lines
from rlx.config.schema import Problem, canonical_algorithm, written_out
from rlx.config.yaml_lines import Document, KeyPath, Place
from rlx.errors import ConfigError, NotFound, UsageError

TASK_KEYS = ("total_timesteps", "gamma")  # they describe the task, so they survive a change of algorithm


@dataclass(frozen=True)
class Layers:
    """The merged document, and notes about the merge."""

    document: Document
    notes: tuple[Problem, ...] = ()


def stack(path: Path, overrides: Sequence[str] = ()) -> Layers:
    """Read a config (a file, or `catalog:NAME`) with the configs that it extends, and apply the overrides."""
    layers = _with_bases(_find(path), chain=())
    values = layers.document.data.pop(config_grid.GRID, None)
    if values is not None:
        config_grid.refuse_open_grid(values, overrides, source=layers.document.source)
    changes = Document("-s", {})
    for text in overrides:
        changes = _lay(changes, override(text))
    return _from_source(merge(layers, changes), layers.document.source)


def _from_source(layers: Layers, source: str) -> Layers:
    return replace(layers, document=replace(layers.document, source=source, sha256=""))


@dataclass(frozen=True)
class _Source:
    """A config: the name that people use, and its path."""

    name: str
    path: Path


def _find(path: Path) -> _Source:
    text = str(path)
    if text.startswith(catalog.PREFIX):
        return _Source(text, catalog.path(text.removeprefix(catalog.PREFIX)))
    return _Source(yaml_lines.shown(path), path)


def _with_bases(source: _Source, *, chain: tuple[_Source, ...]) -> Layers:
    document = _read(source)
    bases = document.data.pop("extends", None)
    merged = Layers(Document(source.name, {}))
    for base in _base_names(bases, document):
        base_source = _find_base(base, source, document)
        _refuse_cycle(base_source, (*chain, source), document)
        below = _with_bases(base_source, chain=(*chain, source))
        merged = merge(merged, below.document)
        merged = replace(merged, notes=(*merged.notes, *below.notes))
    return _from_source(merge(merged, document), source.name)


def _read(source: _Source) -> Document:
    if source.name == yaml_lines.shown(source.path):
        return yaml_lines.read(source.path)
    return yaml_lines.parse(source.path.read_text(encoding="utf-8"), source=source.name)


def _base_names(value: object, document: Document) -> list[str]:
    if value is None:
        return []
    names = value
    if not isinstance(names, list):
        names = [names]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"{document.place(('extends',))}: `extends` is {name!r}; expected a config file or `catalog:NAME`",
                hint="extends: base.yaml",
            )
    return [str(name) for name in names]


def _find_base(base: str, child: _Source, document: Document) -> _Source:
    """Return the config that `extends` names: a catalog entry, or a path relative to the file."""
    where = document.place(("extends",))
    path = Path(base)
    if not base.startswith(catalog.PREFIX):
        path = Path(os.path.normpath(child.path.parent / base))
    try:
        source = _find(path)
    except NotFound as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from None
    if not source.path.exists():
        hint = yaml_lines.near_files(source.path)
        raise ConfigError(f"{where}: extends `{base}`, but the file `{source.name}` does not exist", hint=hint)
    return source


def _refuse_cycle(source: _Source, chain: tuple[_Source, ...], document: Document) -> None:
    if any(source.path.resolve() == link.path.resolve() for link in chain):
        names = " → ".join(link.name for link in (*chain, source))
        raise ConfigError(
            f"{document.place(('extends',))}: configs extend each other in a circle: {names}",
            hint="remove one `extends`",
        )


def override(text: str) -> Document:
    """Read `a.b=c`; the value is YAML."""
    source = f"-s {yaml_lines.shown(text)}"
    key, equals, value = text.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts) or not key.isprintable():
        raise UsageError(f"{source}: an override is `key=value`", hint="for example -s algo.learning_rate=1e-3")
    if parts == ["extends"]:
        raise UsageError(f"{source}: `extends` cannot be overridden", hint="name that config instead of this one")
    data: Any = yaml_lines.value(value, source=source)
    for part in reversed(parts):
        data = {part: data}
    places: dict[KeyPath, Place] = {tuple(parts[: n + 1]): Place(source) for n in range(len(parts))}
    return Document(source, data, places)


def merge(base: Layers, over: Document) -> Layers:
    """Merge a document over the layers below: mappings merge, everything else is replaced.

    If a layer names another algorithm, only `total_timesteps` and `gamma` are kept of `algo`.
    """
    below = base.document
    notes = base.notes
    dropped = _foreign_algo_keys(below.data, over.data)
    if dropped:
        kept = {key: value for key, value in below.data["algo"].items() if key not in dropped}
        below = Document(below.source, {**below.data, "algo": kept}, below.places)
        settings = [key for key in dropped if key != "name"]
        if settings:
            notes = (*notes, _algo_note(over, settings))
    return Layers(_lay(below, over), notes)


def _lay(below: Document, over: Document) -> Document:
    places = dict(below.places)
    data = _merge_mapping(below.data, over.data, (), places, over.places)
    return Document(over.source, data, places)


def _foreign_algo_keys(below: dict[str, Any], over: dict[str, Any]) -> list[str]:
    old = below.get("algo")
    new = over.get("algo")
    if not isinstance(old, dict) or not isinstance(new, dict) or not isinstance(new.get("name"), str):
        return []
    if canonical_algorithm(new["name"]) == canonical_algorithm(str(old.get("name", "ppo"))):
        return []
    return [key for key in old if key not in TASK_KEYS]


def _algo_note(over: Document, dropped: list[str]) -> Problem:
    keys = ", ".join(f"`{key}`" for key in dropped)
    name = over.data["algo"]["name"]
    return Problem(
        "algo.name", f"`{name}` replaces the base config's algorithm, so these keys are dropped: {keys}", is_error=False
    )


def _merge_mapping(
    below: dict[str, Any],
    over: dict[str, Any],
    path: KeyPath,
    places: dict[KeyPath, Place],
    new_places: dict[KeyPath, Place],
) -> dict[str, Any]:
    merged = dict(below)
    for key, value in over.items():
        here = (*path, key)
        items = below.get(key)
        if key == "wrappers" and items is None:
            items = ()  # a config without wrappers has none: an index is then past the end of an empty list
        if _names_items(value) and isinstance(items, (list, tuple)):
            value = _merge_items(list(items), value, here)
        if isinstance(value, dict) and isinstance(below.get(key), dict) and not _is_schedule(value):
            merged[key] = _merge_mapping(below[key], value, here, places, new_places)
            if here in new_places:
                places[here] = new_places[here]
            continue
        merged[key] = value
        for old in [place for place in places if place[: len(here)] == here]:
            del places[old]
        places.update({new: at for new, at in new_places.items() if new[: len(here)] == here})
    return merged


def _names_items(value: object) -> bool:
    """Return whether a mapping changes items of a list by their index, as in `env.wrappers.0.kwargs.alive=0`."""
    return isinstance(value, dict) and bool(value) and all(str(key).isdecimal() for key in value)


def _merge_items(items: list[Any], over: dict[str, Any], path: KeyPath) -> list[Any]:
    """Merge changes into the items of a list; a wrapper's short form is written out first."""
    for key, value in over.items():
        index = int(key)
        if index >= len(items):
            name = ".".join(map(str, path))
            hint = f"indices begin at 0; {name} has {len(items)}"
            raise ConfigError(f"`{name}.{key}`: there is no such item", hint=hint)
        item = items[index]
        if path[-1] == "wrappers":
            item = written_out(item)
        if isinstance(item, dict) and isinstance(value, dict):
            value = _merge_mapping(item, value, (*path, key), {}, {})
        items[index] = value
    return items


def _is_schedule(value: dict[str, Any]) -> bool:
    """Return whether a mapping is a schedule, which is one value: merging two schedules makes no sense."""
    return bool(value) and set(value) <= {"linear", "cosine"}
