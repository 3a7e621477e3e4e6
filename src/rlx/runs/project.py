"""Where the project is: the nearest folder upwards that has an `rlx.toml` or tasks, and whose what is in `.rlx` is.

A candidate's worktree and the evaluator's copy hold a whole project each, with an `rlx.toml` and perhaps a `.rlx` that
candidates can write. Whose they are is told by their place alone, the outermost first: nothing inside is asked.
"""

from __future__ import annotations

import os
from pathlib import Path

from rlx.errors import Refused

MARKER = "rlx.toml"
OWN = (".rlx", "tasks")


def root(start: Path | None = None) -> Path:
    """Return the project's root: `RLX_ROOT`, else the owner of what lies in a `.rlx`, else the nearest `rlx.toml` or
    folder with tasks upwards, else the folder itself."""
    if start is None and os.environ.get("RLX_ROOT"):
        return Path(os.environ["RLX_ROOT"]).resolve()
    here = (start or Path.cwd()).resolve()
    owner, _ = owned(here)
    return owner or next((folder for folder in (here, *here.parents) if _is_root(folder)), here)


def _is_root(folder: Path) -> bool:
    return (folder / MARKER).is_file() or folder.joinpath(*OWN).is_dir()


def owned(here: Path) -> tuple[Path | None, tuple[str, ...]]:
    """Return the project that a path below its `.rlx/tasks` belongs to, and the path from there; None for others."""
    parts = here.resolve().parts
    at = next((index for index in range(len(parts)) if parts[index : index + 2] == OWN), None)
    return (None, ()) if at is None else (Path(*parts[:at]), parts[at + 2 :])


def worktree(here: Path) -> Path | None:
    """Return the candidate's worktree that a path lies in."""
    owner, inside = owned(here)
    is_candidates = len(inside) > 4 and (inside[1], inside[3]) == ("studies", "worktrees")
    return owner.joinpath(*OWN, *inside[:5]) if owner and is_candidates else None


def tree() -> Path:
    """Return whose code is meant here: the worktree's that one stands in, else the project's."""
    return worktree(Path.cwd()) or root()


def root_of(config: Path) -> Path:
    """Return the root of the project that a config is read for: this folder's, else the one the file stands in."""
    here = root()
    own = worktree(config) if config.is_file() else None
    around = root(config.resolve().parent) if config.is_file() else here
    return own or (around if not (here / MARKER).is_file() and (around / MARKER).is_file() else here)


def refuse_worktree(config: Path) -> None:
    """Refuse to train a candidate's config by itself: nothing of it would be evidence, and its run would lie there."""
    own = worktree(config) if config.is_file() else None
    if own is not None:
        raise Refused(
            f"{config} is in the worktree of {own.name}: what a candidate trains goes through its study",
            hint=f"rlx check candidate {own.name}",
        )


def runs_folder(project: Path) -> Path:
    """Return the folder that holds every run."""
    return project / "runs"
