"""Stage checkpoints for an evaluator: copy them out of the run that wrote them, and hash what is copied.

The evaluator reads the copy, so nothing can change between the hash and the use. No link is followed, because a run
could point to another run's weights.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rlx import files
from rlx.errors import CheckpointInvalid, NotFound, RlxError
from rlx.runs.checkpoints import checkpoint as checkpoints

_CHANGED = "it was changed after it was recorded"
LARGEST_BYTES = 64 * 2**30
# The files of rlx's own checkpoints that decide how a policy acts. Their hashes, in this order, form its hash.
IDENTITY = (checkpoints.MANIFEST, checkpoints.POLICY, checkpoints.STATE, checkpoints.STATE_ARRAYS)


def is_bundle(path: Path) -> bool:
    """Return whether a checkpoint is one of rlx's own."""
    return all((path / name).is_file() for name in (checkpoints.MANIFEST, checkpoints.POLICY))


def stage(source: Path, to: Path) -> str:
    """Copy a checkpoint (rlx's own, or any file or folder) to `to` and return the hash of the copy."""
    _refuse_links(source)
    if not source.is_dir():
        return _copy(source, to)
    is_own = is_bundle(source)
    digests = {}
    for path in _members(source):
        if is_own and path == checkpoints.REPLAY:  # no policy needs these gigabytes
            continue
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        digests[path] = _copy(source / path, target)
    if is_own:
        return _identity(digests, source)
    return _of_folder(digests)


class CheckpointChanged(CheckpointInvalid):
    """A checkpoint that does not have the recorded hash."""


def stage_recorded(source: Path, to: Path, sha256: str | None) -> str:
    """Copy a checkpoint that must have this hash (None: any). Raises `CheckpointChanged` if it has another."""
    try:
        digest = stage(source, to)
    except RlxError as error:
        if sha256 is None:
            raise
        raise CheckpointChanged(error.message, hint=_CHANGED) from None
    if sha256 not in (None, digest):
        message = f"{source} has the sha256 {digest[:12]}…, recorded is {str(sha256)[:12]}…"
        raise CheckpointChanged(message, hint=_CHANGED)
    return digest


def checkpoint_sha256(path: Path) -> str:
    """Return the hash that `stage` gives a checkpoint, without copying it."""
    _refuse_links(path)
    if not path.is_dir():
        return _copy(path, None)
    if is_bundle(path):
        return _identity({name: _copy(path / name, None) for name in IDENTITY if (path / name).exists()}, path)
    return _of_folder({name: _copy(path / name, None) for name in _members(path)})


def _identity(digests: dict[str, str], source: Path) -> str:
    missing = [name for name in IDENTITY if name not in digests]
    if missing:
        raise CheckpointInvalid(f"checkpoint {source}: {missing[0]} is missing")
    return files.sha256("".join(digests[name] for name in IDENTITY).encode())


def _of_folder(digests: dict[str, str]) -> str:
    by_parts = sorted(digests.items(), key=lambda item: item[0].split("/"))
    return files.sha256("\n".join(f"{path} {digest}" for path, digest in by_parts).encode("utf-8", "surrogateescape"))


def _members(folder: Path, below: str = "") -> Iterator[str]:
    with os.scandir(folder / below) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _members(folder, f"{below}{entry.name}/")
            else:
                yield f"{below}{entry.name}"


def _refuse_links(path: Path) -> None:
    """Refuse a checkpoint that is a link, or is behind one inside its run."""
    inside = [path]
    names = [parent.name for parent in path.parents]
    if "runs" in names:
        inside += path.parents[: names.index("runs")]
    for part in inside:
        if part.is_symlink():
            raise CheckpointInvalid(f"{part} is a link: a checkpoint must be written by the run itself")


def _copy(source: Path, to: Path | None) -> str:
    """Return the hash of a file, and copy exactly the hashed bytes."""
    digest = hashlib.sha256()
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"no checkpoint {source}") from None
    except OSError as error:
        raise CheckpointInvalid(f"{source} cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream, open(to or os.devnull, "wb") as out:  # noqa: PTH123
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointInvalid(f"{source} is not a file")
        if status.st_size > LARGEST_BYTES:
            raise CheckpointInvalid(f"{source} has {status.st_size} bytes; {LARGEST_BYTES} are allowed")
        while block := stream.read(2**20):
            digest.update(block)
            if to is not None:
                out.write(block)
    return digest.hexdigest()
