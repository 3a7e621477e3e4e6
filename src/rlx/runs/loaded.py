"""What a seed's processes loaded: modules with file and hash, as each wrote them down at its end."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.errors import FileDamaged
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


def read(seed: Path) -> tuple[Module, ...]:
    """Return what all processes of a seed loaded, by name and file; files of the project where it lies now."""
    found: dict[tuple[str, str], Module] = {}
    for path in sorted((seed / FOLDER).glob("*.json")):
        for name, entry in _modules(path).items():
            file = _root(seed) / str(entry["file"])
            found[name, str(file)] = Module(name, file, entry.get("sha256"))
    return tuple(found.values())


def _modules(path: Path) -> Mapping[str, Mapping[str, str | None]]:
    document = files.read_json(path)
    modules = document.get("modules") if isinstance(document, dict) else None
    if not isinstance(modules, dict) or not all(isinstance(one, dict) and "file" in one for one in modules.values()):
        raise FileDamaged(f"{path.parent.name}/{path.name} does not say which modules were loaded")
    return modules
