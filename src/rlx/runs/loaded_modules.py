"""What a seed's processes recorded at their end: loaded modules with file and hash, options, environment steps."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import JobFailed
from rlx.runs import module_recorder

FOLDER = "loaded"
RECORDER = ".recorder"


@dataclass(frozen=True)
class Module:
    """A module, its file and that file's hash (None if it is too large, or was not hashed)."""

    name: str
    file: Path
    sha256: str | None


def recorded(seed: Path) -> dict[str, str]:
    """Prepare a seed's folder so that Python programs record what they load; return the environment variables for it.

    The import path must come before all other entries.
    """
    place = seed / FOLDER
    program = seed / RECORDER
    shutil.rmtree(place, ignore_errors=True)
    for folder in (place, program):
        folder.mkdir(exist_ok=True)
    shutil.copyfile(module_recorder.__file__, program / "sitecustomize.py")
    return {module_recorder.FOLDER: str(place), module_recorder.ROOT: str(_root(seed)), "PYTHONPATH": str(program)}


def write(seed: Path) -> None:
    """Record the modules that this process has loaded."""
    (seed / FOLDER).mkdir(exist_ok=True)
    module_recorder.write(str(seed / FOLDER), str(_root(seed)))


def write_remote(seed: Path) -> None:
    """Record the modules that the process with the seed's environments has loaded, as it says."""
    from rlx.envs.remote.env_process import connected

    process = connected()
    if process is not None:
        with contextlib.suppress(JobFailed):  # it is gone: then the seed failed, too
            module_recorder.write(str(seed / FOLDER), str(_root(seed)), loaded=process.loaded_modules())


def _root(seed: Path) -> Path:
    """Return the project of a seed's folder, `runs/NAME/seed_N`."""
    return seed.absolute().parents[2]


@dataclass(frozen=True)
class LoadedModules:
    """The modules that all processes of a seed loaded, and the damage of their records."""

    modules: tuple[Module, ...]
    damage: tuple[str, ...]
    pythons: frozenset[str] = frozenset()
    """The interpreters that ran, each with its version."""
    distributions: Mapping[str, str] = field(default_factory=dict)
    """The versions of the packages that were installed in them."""
    options: tuple[Mapping[str, Any], ...] = ()
    """The options that argparse read in each process that used it."""
    env_steps: int = 0
    """The steps of Gymnasium environments in all processes; 0 if none was seen."""


def read(seed: Path) -> LoadedModules:
    """Return the modules that all processes of a seed loaded, with the project's files at their current place."""
    loaded: dict[tuple[str, str], Module] = {}
    damage = []
    pythons: set[str] = set()
    versions: dict[str, str] = {}
    options: list[Mapping[str, Any]] = []
    env_steps = 0
    for path in sorted((seed / FOLDER).glob("*.json")):
        modules = _modules(path)
        if modules is None:
            damage.append(f"{path.parent.name}/{path.name} does not list the loaded modules")
            continue
        for name, entry in modules.items():
            file = _root(seed) / str(entry["file"])
            loaded[name, str(file)] = Module(name, file, entry.get("sha256"))
        document = files.read_json(path)
        if isinstance(document.get("options"), dict) and document["options"]:
            options.append(document["options"])
        if type(document.get("env_steps")) is int:
            env_steps += max(0, document["env_steps"])
        python = _python(document)
        if python:
            pythons.add(f"{python.get('executable')} ({python.get('version')})")
            versions |= {str(name): str(version) for name, version in (python.get("distributions") or {}).items()}
    return LoadedModules(tuple(loaded.values()), tuple(damage), frozenset(pythons), versions, tuple(options), env_steps)


def _python(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interpreter that one process recorded; empty in records of older versions."""
    python = document.get("python")
    if not isinstance(python, dict) or not isinstance(python.get("distributions"), dict):
        return {}
    return python


def _modules(path: Path) -> Mapping[str, Mapping[str, str | None]] | None:
    """Read what one process recorded, or a job in its name; None if it is not a valid record."""
    try:
        modules: Mapping[str, Mapping[str, str | None]] = files.read_json(path)["modules"]
        is_valid = all(_is_entry(entry) for entry in modules.values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    if not is_valid:
        return None
    return modules


def _is_entry(entry: Mapping[str, object]) -> bool:
    file = entry["file"]
    digest = entry.get("sha256")
    return isinstance(file, str) and "\0" not in file and (digest is None or isinstance(digest, str))
