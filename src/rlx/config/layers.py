"""The layers of one config, laid over each other: what it extends, the file itself, the overrides."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.config import catalog, yaml_lines
from rlx.config.schema import Problem, canonical_algorithm
from rlx.config.yaml_lines import Document, KeyPath, Place
from rlx.errors import ConfigError, NotFound, UsageError

TASK_KEYS = ("total_timesteps", "gamma")  # said about the task, so they outlive a change of algorithm


@dataclass(frozen=True)
class Layers:
    """The merged document, and what is worth saying about the merge."""

    document: Document
    notes: tuple[Problem, ...] = ()


def stack(path: Path, overrides: Sequence[str] = ()) -> Layers:
    """Read a config (a file, or `catalog:NAME`), what it extends, and lay the overrides on top."""
    layers = _with_bases(_find(path), chain=())
    asked = Document("-s", {})
    for text in overrides:
        asked = _lay(asked, override(text))
    return Layers(*_parts(merge(layers, asked), layers.document.source))


def _parts(layers: Layers, source: str) -> tuple[Document, tuple[Problem, ...]]:
    return Document(source, layers.document.data, layers.document.places), layers.notes


@dataclass(frozen=True)
class _Source:
    """A config by what people call it and where it is."""

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
        found = _find_base(base, source, document)
        _refuse_cycle(found, (*chain, source), document)
        below = _with_bases(found, chain=(*chain, source))
        merged = _noted(merge(merged, below.document), below.notes)
    return Layers(*_parts(merge(merged, document), source.name))


def _read(source: _Source) -> Document:
    if source.name == yaml_lines.shown(source.path):
        return yaml_lines.read(source.path)
    return yaml_lines.parse(source.path.read_text(encoding="utf-8"), source=source.name)


def _base_names(value: object, document: Document) -> list[str]:
    names = value if isinstance(value, list) else [] if value is None else [value]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"{document.place(('extends',))}: `extends` is {name!r}; expected a config file or `catalog:NAME`",
                hint="extends: base.yaml",
            )
    return [str(name) for name in names]


def _find_base(base: str, child: _Source, document: Document) -> _Source:
    """Return the config that `extends` names: a catalog entry, or a path from the file that says it."""
    where = document.place(("extends",))
    try:
        found = _find(Path(base) if base.startswith(catalog.PREFIX) else _beside(child.path, base))
    except NotFound as error:
        raise ConfigError(f"{where}: {error.message}", hint=error.hint) from None
    if not found.path.exists():
        raise ConfigError(
            f"{where}: extends `{base}`, but there is no file `{found.name}`", hint=yaml_lines.near_files(found.path)
        )
    return found


def _beside(path: Path, base: str) -> Path:
    return Path(os.path.normpath(path.parent / base))


def _refuse_cycle(found: _Source, chain: tuple[_Source, ...], document: Document) -> None:
    if any(found.path.resolve() == link.path.resolve() for link in chain):
        names = " → ".join(link.name for link in (*chain, found))
        raise ConfigError(
            f"{document.place(('extends',))}: configs extend each other in a circle: {names}",
            hint="remove one `extends`",
        )


def _noted(layers: Layers, notes: tuple[Problem, ...]) -> Layers:
    return Layers(layers.document, (*layers.notes, *notes))


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
    """Lay a document over the layers below: mappings merge, everything else is replaced whole.

    A layer that names another algorithm starts `algo` afresh, except for `total_timesteps` and `gamma`.
    """
    below, notes = base.document, base.notes
    dropped = _foreign_algo_keys(below.data, over.data)
    if dropped:
        kept = {key: value for key, value in below.data["algo"].items() if key not in dropped}
        below = Document(below.source, {**below.data, "algo": kept}, below.places)
        if told := [key for key in dropped if key != "name"]:
            notes = (*notes, _algo_note(over, told))
    return Layers(_lay(below, over), notes)


def _lay(below: Document, over: Document) -> Document:
    places = dict(below.places)
    data = _merge_mapping(below.data, over.data, (), places, over.places)
    return Document(over.source, data, places)


def _foreign_algo_keys(below: dict[str, Any], over: dict[str, Any]) -> list[str]:
    old, new = below.get("algo"), over.get("algo")
    if not isinstance(old, dict) or not isinstance(new, dict) or not isinstance(new.get("name"), str):
        return []
    if canonical_algorithm(new["name"]) == canonical_algorithm(str(old.get("name", "ppo"))):
        return []
    return [key for key in old if key not in TASK_KEYS]


def _algo_note(over: Document, dropped: list[str]) -> Problem:
    keys = ", ".join(f"`{key}`" for key in dropped)
    name = over.data["algo"]["name"]
    return Problem("algo.name", f"`{name}` replaces the algorithm below it; not taken over: {keys}", is_error=False)


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


def _is_schedule(value: dict[str, Any]) -> bool:
    """Say whether a mapping is one value: half of an old schedule under a new one means nothing."""
    return bool(value) and set(value) <= {"linear", "cosine"}
