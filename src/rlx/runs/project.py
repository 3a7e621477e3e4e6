"""Where the project is: the nearest folder upwards that has an `rlx.toml`."""

from __future__ import annotations

import os
from pathlib import Path

MARKER = "rlx.toml"


def root(start: Path | None = None) -> Path:
    """Return the project's root: `RLX_ROOT`, else the nearest `rlx.toml` upwards, else the folder itself."""
    if start is None and os.environ.get("RLX_ROOT"):
        return Path(os.environ["RLX_ROOT"]).resolve()
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / MARKER).is_file()), here)


def root_of(config: Path) -> Path:
    """Return the root of the project that a config is read for: this folder's, else the one the file stands in."""
    here = root()
    around = root(config.resolve().parent) if config.is_file() else here
    return around if not (here / MARKER).is_file() and (around / MARKER).is_file() else here


def runs_folder(project: Path) -> Path:
    """Return the folder that holds every run."""
    return project / "runs"
