"""What a seed's processes loaded: modules with file and hash, as each wrote them down at its end."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.runs import recorder

FOLDER = "loaded"
RECORDER = ".recorder"


@dataclass(frozen=True)
class Module:
    """A module, the file it was loaded from and that file's hash (None for an installed package's)."""

    name: str
    file: Path
    sha256: str | None


def recorded(seed: Path) -> dict[str, str]:
    """Prepare a seed's folder so that Python programs write down what they load; return the variables that tell them.

    The one for the import path goes before everything else.
    """
    place, program = seed / FOLDER, seed / RECORDER
    shutil.rmtree(place, ignore_errors=True)
    for folder in (place, program):
        folder.mkdir(exist_ok=True)
    shutil.copyfile(recorder.__file__, program / "sitecustomize.py")
    return {recorder.FOLDER: str(place), recorder.ROOT: str(_root(seed)), "PYTHONPATH": str(program)}


def write(seed: Path) -> None:
    """Write down what this process has loaded."""
    (seed / FOLDER).mkdir(exist_ok=True)
    recorder.write(str(seed / FOLDER), str(_root(seed)))


def _root(seed: Path) -> Path:
    """Return the project that a seed's folder, `runs/NAME/seed_N`, is part of."""
    return seed.absolute().parents[2]


@dataclass(frozen=True)
class Record:
    """What all processes of a seed loaded, and which of their files do not say it."""

    modules: tuple[Module, ...]
    damage: tuple[str, ...]


def read(seed: Path) -> Record:
    """Return what all processes of a seed loaded, by name and file; files of the project where it lies now."""
    found: dict[tuple[str, str], Module] = {}
    damage = []
    for path in sorted((seed / FOLDER).glob("*.json")):
        modules = _modules(path)
        if modules is None:
            damage.append(f"{path.parent.name}/{path.name} does not say which modules were loaded")
            continue
        for name, entry in modules.items():
            file = _root(seed) / str(entry["file"])
            found[name, str(file)] = Module(name, file, entry.get("sha256"))
    return Record(tuple(found.values()), tuple(damage))


def _modules(path: Path) -> Mapping[str, Mapping[str, str | None]] | None:
    """Read what one process wrote, or a job in its name; None where it is no record."""
    try:
        modules = files.read_json(path)["modules"]
        return modules if all(_is_entry(one) for one in modules.values()) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _is_entry(entry: Mapping[str, object]) -> bool:
    file, digest = entry["file"], entry.get("sha256")
    return isinstance(file, str) and "\0" not in file and (digest is None or isinstance(digest, str))
