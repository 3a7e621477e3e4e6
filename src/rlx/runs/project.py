"""The project's root: the nearest folder upwards with an `rlx.toml` or tasks, and the owner of files in `.rlx`.

A candidate's worktree and the evaluator's copy each hold a whole project, with an `rlx.toml` and perhaps a `.rlx` that
candidates can write. Their path alone decides to which project they belong, the outermost first; their content is
never consulted.
"""

from __future__ import annotations

import os
import struct
import tomllib
from pathlib import Path

from rlx.errors import FileDamaged, Refused

MARKER = "rlx.toml"
OWN = (".rlx", "tasks")
OWN_MARK = Path(".rlx", "folder")
MADE_HERE = ".folder"
# The system call that knows when a file was made; Python's `os.stat` does not ask it.
_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_BTIME_OFFSET = 80


def root(start: Path | None = None) -> Path:
    """Return the project's root.

    That is `RLX_ROOT`; or the owner, for a folder inside a `.rlx`; or the nearest folder upwards with an `rlx.toml` or
    tasks; or the folder itself.
    """
    if start is None and os.environ.get("RLX_ROOT"):
        return Path(os.environ["RLX_ROOT"]).resolve()
    here = (start or Path.cwd()).resolve()
    owner, _ = owned(here)
    return owner or next((folder for folder in (here, *here.parents) if _is_root(folder)), here)


def _is_root(folder: Path) -> bool:
    return (folder / MARKER).is_file() or folder.joinpath(*OWN).is_dir()


def owned(here: Path) -> tuple[Path | None, tuple[str, ...]]:
    """Return the project that owns a path below `.rlx/tasks`, and the path from there; None for other paths."""
    parts = here.resolve().parts
    at = next((index for index in range(len(parts)) if parts[index : index + 2] == OWN), None)
    if at is None:
        return None, ()
    return Path(*parts[:at]), parts[at + 2 :]


def worktree(here: Path) -> Path | None:
    """Return the candidate's worktree around a path, if there is one."""
    owner, inside = owned(here)
    if owner is None or len(inside) <= 4 or (inside[1], inside[3]) != ("studies", "worktrees"):
        return None
    return owner.joinpath(*OWN, *inside[:5])


def tree() -> Path:
    """Return the tree of the current folder: a candidate's worktree, or else the project."""
    return worktree(Path.cwd()) or root()


def root_of(config: Path) -> Path:
    """Return the root of the project that a config belongs to.

    That is the worktree around the file; or the current project; or, if there is none, the project around the file.
    """
    here = root()
    if not config.is_file():
        return here
    tree_of_config = worktree(config)
    if tree_of_config is not None:
        return tree_of_config
    around = root(config.resolve().parent)
    if (around / MARKER).is_file() and not (here / MARKER).is_file():
        return around
    return here


def refuse_worktree(config: Path) -> None:
    """Refuse to train a candidate's config outside its study: the result would not be evidence."""
    tree_of_config = worktree(config)
    if config.is_file() and tree_of_config is not None:
        message = f"{config} is in the worktree of {tree_of_config.name}: a candidate is trained by its study only"
        raise Refused(message, hint=f"rlx check candidate {tree_of_config.name}")


def refuse_plain_training(project: Path) -> None:
    """Refuse to train outside a study if the project's `rlx.toml` says `require_study = true`."""
    try:
        settings = tomllib.loads((project / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if settings.get("require_study") is True:
        message = f"{MARKER} says require_study = true: only a study's jobs are trained in this project"
        raise Refused(message, hint="rlx next")


def folder_identity(project: Path) -> str:
    """Return what tells a project's folder from a copy of it: its inode and the moment it was made.

    A folder that is moved keeps both. Nobody can choose the moment, so a folder from elsewhere cannot bring the
    identity that it will have here. Not covered: disks that keep no moment (some network disks); there the inode alone
    decides.
    """
    identity = f"{project.stat().st_ino:x}"
    born = _birth_nanoseconds(project)
    if born is None:
        return identity
    return f"{identity}.{born:x}"


def is_identity_of(identity: str, folder: Path) -> bool:
    """Say whether an identity is a folder's; another computer may know the moment, and this one only the inode."""
    here = folder_identity(folder)
    return identity == here or ("." not in here and identity.partition(".")[0] == here)


def _birth_nanoseconds(path: Path) -> int | None:
    """Return when a file was made, or None if its disk or this system does not say."""
    import ctypes

    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):  # no Linux, or a C library from before 2018
        born = getattr(path.stat(), "st_birthtime", None)
        return None if born is None else int(born * 1e9)
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, answer) != 0:
        return None
    known = struct.unpack_from("=I", answer, 0)[0]
    if not known & _STATX_BTIME:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BTIME_OFFSET)
    return int(seconds) * 10**9 + int(nanoseconds)


def mark_own(project: Path) -> None:
    """Note that somebody here made something in this project, or trained in it."""
    _mark(project, project / OWN_MARK)


def is_own(project: Path) -> bool:
    """Say whether somebody made something in this very folder: False for a project that was unpacked or copied.

    rlx starts no program that the files of such a project name: commands of a scheduler, planners, rehearsals.
    """
    return _has_mark(project, project / OWN_MARK)


def mark_made_here(folder: Path) -> None:
    """Note that a run, sweep, campaign or study was made in this very folder, and not copied into the project."""
    _mark(folder, folder / MADE_HERE)


def is_made_here(folder: Path) -> bool:
    """Say whether a run, sweep, campaign or study was made in this very folder."""
    return _has_mark(folder, folder / MADE_HERE)


def _mark(folder: Path, place: Path) -> None:
    from rlx import files  # a list of runs needs no JSON library

    if not _has_mark(folder, place):
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(place, folder_identity(folder).encode())


def _has_mark(folder: Path, place: Path) -> bool:
    from rlx import files

    try:
        return is_identity_of(files.read_bytes(place).decode("ascii", "replace"), folder)
    except (OSError, FileDamaged):
        return False


def runs_folder(project: Path) -> Path:
    """Return the folder that holds every run."""
    return project / "runs"
