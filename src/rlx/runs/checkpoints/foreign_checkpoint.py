"""A foreign checkpoint: a file or folder that another program wrote, stored with its hash and never opened."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.errors import CheckpointInvalid, NotFound
from rlx.runs.checkpoints import checkpoint as bundles
from rlx.runs.run import Seed

LATEST = "latest"


@dataclass(frozen=True)
class ForeignCheckpoint:
    """A stored file or folder of another program, the step it was saved at and its hash."""

    path: Path
    step: int
    sha256: str


def keep(folder: Path, source: Path, *, step: int, name: str = LATEST) -> ForeignCheckpoint:
    """Copy a file or folder into a seed's checkpoints; until this returns, readers find the old one."""
    target = folder / f"{name}{bundles.OPAQUE}"
    new = folder / f".{name}{bundles.OPAQUE}.{os.getpid()}.tmp"
    member = source.name
    if member == bundles.MANIFEST:
        member = f"own_{member}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        if source.is_dir():
            shutil.copytree(source, new / member)
        else:
            shutil.copyfile(source, new / member)
        digest = sha256(new / member)
        manifest = {"schema": 1, "step": step, "file": member, "sha256": digest}
        files.write_json(new / bundles.MANIFEST, manifest)
        files.replace_folder(new, target)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return ForeignCheckpoint(target / member, step, digest)


def find(folder: Path, *, name: str = LATEST) -> ForeignCheckpoint | None:
    """Return the checkpoint with this name, verified; None if there is none."""
    place = folder / f"{name}{bundles.OPAQUE}"
    try:
        manifest = files.read_json(place / bundles.MANIFEST)
        kept = ForeignCheckpoint(place / str(manifest["file"]), int(manifest["step"]), str(manifest["sha256"]))
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointInvalid(f"{place} has no usable manifest: {error}", hint="train the seed again") from None
    if kept.path.parent != place or not kept.path.exists() or sha256(kept.path) != kept.sha256:
        raise CheckpointInvalid(f"{kept.path} was altered: its sha256 is not the one that was kept with it")
    return kept


def sha256(path: Path) -> str:
    """Return the hash of a file, or of all files below a folder with their names."""
    if not path.is_dir():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    members = sorted(member for member in path.rglob("*") if member.is_file())
    lines = [f"{member.relative_to(path).as_posix()} {sha256(member)}" for member in members]
    return files.sha256("\n".join(lines).encode("utf-8", "surrogateescape"))


def weights_sha256(seed: Seed, *, name: str = LATEST) -> str | None:
    """Return the verified hash of a seed's checkpoint, rlx's or another program's; None if it has none."""
    try:
        return bundles.read(seed.checkpoints / name, with_replay=False).identity
    except NotFound:
        kept = find(seed.checkpoints, name=name)
    if kept is None:
        return None
    return kept.sha256
