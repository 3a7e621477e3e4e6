"""Checkpoints on their way to an evaluator: copied out of the run that wrote them, hashed as they are copied.

The evaluator reads the copy, so nothing can change between its hash and its use. No link is followed: a run could point
at another one's weights.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rlx import files
from rlx.errors import CheckpointInvalid, NotFound, RlxError
from rlx.runs import checkpoint as checkpoints

_CHANGED = "it was changed after it was recorded"
LARGEST_BYTES = 64 * 2**30
IDENTITY = (checkpoints.MANIFEST, checkpoints.POLICY, checkpoints.STATE, checkpoints.STATE_ARRAYS)
"""The members of rlx's own checkpoints that decide how a policy acts; their hashes, in this order, are its own."""


def is_bundle(path: Path) -> bool:
    """Say whether a checkpoint is one of rlx's own."""
    return all((path / name).is_file() for name in (checkpoints.MANIFEST, checkpoints.POLICY))


def stage(source: Path, to: Path) -> str:
    """Copy a checkpoint (rlx's own, or any file or folder) to `to` and return the hash of what was copied."""
    _refuse_links(source)
    if not source.is_dir():
        return _copy(source, to)
    is_own = is_bundle(source)
    digests = {}
    for path in _members(source):
        if is_own and path == checkpoints.REPLAY:  # gigabytes that no policy needs
            continue
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        digests[path] = _copy(source / path, target)
    return _identity(digests, source) if is_own else _of_folder(digests)


class CheckpointChanged(CheckpointInvalid):
    """A checkpoint that is not, or no longer, the one whose hash was recorded."""


def stage_recorded(source: Path, to: Path, sha256: str | None) -> str:
    """Copy a checkpoint that must have this hash (None: any); raises `CheckpointChanged` where it has not."""
    try:
        digest = stage(source, to)
    except RlxError as error:
        raise error if sha256 is None else CheckpointChanged(error.message, hint=_CHANGED) from None
    if sha256 not in (None, digest):
        says = f"{source} has the sha256 {digest[:12]}…, recorded is {str(sha256)[:12]}…"
        raise CheckpointChanged(says, hint=_CHANGED)
    return digest


def sha256(path: Path) -> str:
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
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _members(folder, f"{below}{entry.name}/")
            else:
                yield f"{below}{entry.name}"


def _refuse_links(path: Path) -> None:
    """Refuse a checkpoint that is a link, or lies behind one inside its run."""
    inside = [path]
    names = [one.name for one in path.parents]
    if "runs" in names:
        inside += path.parents[: names.index("runs")]
    for one in inside:
        if one.is_symlink():
            raise CheckpointInvalid(f"{one} is a link: a checkpoint is what a run wrote itself")


def _copy(source: Path, to: Path | None) -> str:
    """Return the hash of a file; what was hashed is what is written."""
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
