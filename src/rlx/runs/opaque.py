"""An opaque checkpoint: a file or folder that another program wrote, kept with its hash and never opened."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.errors import CheckpointInvalid, NotFound
from rlx.runs import checkpoint as bundles
from rlx.runs.run import Seed

LATEST = "latest"


@dataclass(frozen=True)
class Opaque:
    """What was kept: its place, the step it was saved at and its hash."""

    path: Path
    step: int
    sha256: str


def keep(folder: Path, source: Path, *, step: int, name: str = LATEST) -> Opaque:
    """Copy a file or folder into a seed's checkpoints; until this returns, a reader finds what was there before."""
    target = folder / f"{name}{bundles.OPAQUE}"
    new = folder / f".{name}{bundles.OPAQUE}.{os.getpid()}.tmp"
    member = source.name if source.name != bundles.MANIFEST else f"own_{source.name}"
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
    return Opaque(target / member, step, digest)


def find(folder: Path, *, name: str = LATEST) -> Opaque | None:
    """Return what a seed's checkpoints hold under a name, verified; None where there is nothing."""
    place = folder / f"{name}{bundles.OPAQUE}"
    try:
        manifest = files.read_json(place / bundles.MANIFEST)
        kept = Opaque(place / str(manifest["file"]), int(manifest["step"]), str(manifest["sha256"]))
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointInvalid(f"{place} has no usable manifest: {error}", hint="train the seed anew") from None
    if kept.path.parent != place or not kept.path.exists() or sha256(kept.path) != kept.sha256:
        raise CheckpointInvalid(f"{kept.path} was altered: its sha256 is not the one that was kept with it")
    return kept


def sha256(path: Path) -> str:
    """Return the hash of a file, or of all files below a folder with their names."""
    if not path.is_dir():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    below = sorted(found for found in path.rglob("*") if found.is_file())
    lines = [f"{found.relative_to(path).as_posix()} {sha256(found)}" for found in below]
    return files.sha256("\n".join(lines).encode("utf-8", "surrogateescape"))


def weights_sha256(seed: Seed, *, name: str = LATEST) -> str | None:
    """Return the hash of a seed's checkpoint, a bundle's or another program's, verified; None where it has none."""
    try:
        return bundles.read(seed.checkpoints / name, with_replay=False).identity
    except NotFound:
        kept = find(seed.checkpoints, name=name)
        return kept.sha256 if kept else None
