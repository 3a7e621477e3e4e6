"""TensorBoard event files: a folder with them is one run. Isaac Lab's `run.json` and params are its config."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx import files
from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, name_and_seed, seed_of
from rlx.config import yaml_lines
from rlx.errors import ConfigError
from rlx.runs.readers.tensorboard import MARK, TensorboardReader


class TensorboardImporter:
    """Reads event files."""

    name = "tensorboard"

    def claims(self, path: Path) -> bool:
        """Return whether there are event files."""
        return bool(files_below(path, f"*{MARK}*", most=1))

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield one run per folder with event files; those in its subfolders join it."""
        folders: dict[Path, None] = {}
        for file in files_below(path, f"*{MARK}*"):
            folders[file.parent] = None
        tops = [folder for folder in folders if not any(above in folders for above in folder.parents)]
        for folder in tops:
            reader = TensorboardReader()
            points = merged(reader.read(folder, is_last=True))
            config = run_config(folder)
            name, seed = name_and_seed(_label(folder, path))
            if seed is None:
                seed = seed_of(config)
            yield ForeignRun(name, _inside(folder, path), config, seed, points, notes=_damage(points))


def _label(folder: Path, top: Path) -> str:
    """Return the folder's name; the name above it if it is only a name such as `tb`."""
    name = folder.name
    if name.lower() in ("tb", "tensorboard", "summaries", "events", "logs", "log", "runs") and folder != top:
        return folder.parent.name
    return name


def _inside(folder: Path, top: Path) -> str:
    if folder.is_relative_to(top):
        return folder.relative_to(top).as_posix()
    return folder.name


def _damage(points: list[Any]) -> list[str]:
    if points:
        return []
    return ["its event files have no scalars"]


def run_config(folder: Path) -> dict[str, Any]:
    """Return the config that Isaac Lab, mjlab and others store next to their logs."""
    config: dict[str, Any] = {}
    try:
        document = files.read_json(folder / "run.json")
        if isinstance(document, dict):
            config |= {key: document[key] for key in ("task", "library", "version", "metadata") if key in document}
    except (OSError, ValueError):
        pass
    for name in ("agent", "env"):
        path = folder / "params" / f"{name}.yaml"
        if path.is_file():
            data = _yaml(path)
            if data:
                config[name] = data
    for name in ("args.json", "config.json", "hparams.json"):
        try:
            document = files.read_json(folder / name)
        except (OSError, ValueError):
            continue
        if isinstance(document, dict):
            config |= document
    return config


def _yaml(path: Path) -> dict[str, Any]:
    try:
        return dict(yaml_lines.parse(path.read_text(encoding="utf-8", errors="replace"), source=path.name).data)
    except (OSError, ConfigError, RecursionError):
        return {}  # params may hold Python objects, which rlx does not load
