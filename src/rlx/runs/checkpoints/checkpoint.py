"""A checkpoint: a folder of safetensors and JSON with a hashed manifest, written atomically, read without executing.

Every member is hashed before it is parsed. Unknown members and non-files are refused, and sizes are limited.
Not covered: the hashes show damage and careless edits. Someone who rewrites the manifest too can change the numbers,
but cannot run code. `best` and `step_N` share files with `latest` by hard link, so damage to a shared file shows in all
of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rlx import files
from rlx.errors import CheckpointInvalid, NotFound
from rlx.runs.checkpoints import state_tree, tensors

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]

SCHEMA = 1
MANIFEST = "manifest.json"
POLICY = "policy.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
STATE_ARRAYS = "state.safetensors"
REPLAY = "replay.safetensors"
LABELS = ("exact", "boundary", "warm")

GIB = 2**30
LARGEST = {
    MANIFEST: 16 * 2**20,
    STATE: 256 * 2**20,
    POLICY: 16 * GIB,
    OPTIMIZER: 32 * GIB,
    STATE_ARRAYS: 16 * GIB,
    REPLAY: 256 * GIB,
}
FIELDS = {"step": int, "backend": str, "algorithm": str, "resume": dict, "spaces": dict, "config": dict, "files": dict}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
STEP = re.compile(r"step_(\d+)")
UNTRAINED = "untrained"
OPAQUE = "_foreign"
"""The suffix of checkpoints that other programs wrote (see `foreign_checkpoint`); they are never bundles."""
PARITY = "parity"
SHA256 = re.compile(r"[0-9a-f]{64}")
SWAPS_TOLERATED = 100


@dataclass(frozen=True, eq=False, repr=False)
class Bundle:
    """What a trainer saves; `resume` says how faithfully training continues from it.

    `parity` lets evaluation recognise the policy (see `evaluate/parity`); it is empty if a backend has none.
    """

    step: int
    backend: str
    algorithm: str
    resume: str
    missing: str
    policy: Arrays
    optimizer: Arrays
    state: dict[str, Any]
    replay: Arrays
    spaces: dict[str, Any]
    parity: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def without_replay(self) -> Bundle:
        """Return the bundle without its replay buffer, labelled as such."""
        if not self.replay:
            return self
        return replace(self, replay={}, resume="warm", missing=_and("replay buffer", self.missing))

    def policy_only(self) -> Bundle:
        """Return the bundle without what only training needs; its policy acts the same."""
        missing = _and("optimizer", "replay buffer", self.missing)
        return replace(self, optimizer={}, replay={}, resume="warm", missing=missing)


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint(Bundle):
    """A bundle that was read and verified, with its path and manifest."""

    path: Path
    manifest: dict[str, Any]
    config: dict[str, Any]
    skipped: tuple[str, ...] = field(default=())  # why `newest` could not use newer checkpoints

    @property
    def identity(self) -> str:
        """The hash of what determines the policy's actions: its weights and its state."""
        members = self.manifest["files"]
        return files.sha256("".join(members[name]["sha256"] for name in (POLICY, STATE, STATE_ARRAYS)).encode())


def write(folder: Path, bundle: Bundle, *, name: str, config: dict[str, Any]) -> Path:
    """Save a bundle as `folder`/`name`; until this returns, readers find the old one."""
    with _making(folder, name) as new:
        document, arrays = state_tree.pack({**bundle.state, PARITY: bundle.parity})
        members = {
            POLICY: tensors.write(new / POLICY, bundle.policy),
            OPTIMIZER: tensors.write(new / OPTIMIZER, bundle.optimizer),
            STATE: tensors.write_stream(new / STATE, [files.encode(document)]),
            STATE_ARRAYS: tensors.write(new / STATE_ARRAYS, arrays),
        }
        if bundle.replay:
            members[REPLAY] = tensors.write(new / REPLAY, bundle.replay)
        manifest = {
            "schema": SCHEMA,
            "step": bundle.step,
            "backend": bundle.backend,
            "algorithm": bundle.algorithm,
            "resume": {"label": bundle.resume, "missing": bundle.missing},
            "versions": _versions(),
            "spaces": bundle.spaces,
            "config": config,
            "files": {member: {"sha256": digest, "bytes": size} for member, (digest, size) in members.items()},
        }
        files.write_durable(new / MANIFEST, _sealed(manifest))
    return folder / name


def link(folder: Path, source: str, name: str) -> Path:
    """Save `source` under a second name; it shares the files and leaves out the replay buffer."""
    origin = folder / source
    manifest = _manifest_at(origin)
    with _making(folder, name) as new:
        members = {member: entry for member, entry in manifest["files"].items() if member != REPLAY}
        for member in members:
            _link_or_copy(origin / member, new / member)
        if REPLAY in manifest["files"]:
            missing = _and("replay buffer", manifest["resume"]["missing"])
            manifest["resume"] = {"label": "warm", "missing": missing}
        files.write_durable(new / MANIFEST, _sealed({**manifest, "files": members}))
    return folder / name


def read(path: Path, *, with_replay: bool = True) -> Checkpoint:
    """Read and verify a checkpoint; safe while a trainer replaces it."""
    for _ in range(SWAPS_TOLERATED):
        with _opened(path) as descriptor:
            try:
                return _read_open(path, descriptor, with_replay=with_replay)
            except (CheckpointInvalid, FileNotFoundError) as error:
                if _is_still(path, descriptor):
                    if isinstance(error, FileNotFoundError):
                        _refuse(path, str(error.filename), "is missing")
                    raise
    _refuse(path, MANIFEST, "was replaced repeatedly while it was read")


def names(folder: Path) -> list[str]:
    """Return the checkpoints of a seed: `step_N` in order, then the named ones; reads none of them."""
    try:
        with os.scandir(folder) as entries:
            folders = [entry.name for entry in entries if NAME.fullmatch(entry.name) and entry.is_dir()]
    except FileNotFoundError:
        return []
    return sorted(folders, key=_order)


def newest(folder: Path) -> Checkpoint | None:
    """Return the valid checkpoint with the highest step, without damaged ones and `untrained`, if any."""
    problems: list[str] = []
    by_step: list[tuple[int, bool, Path]] = []
    for path in _candidates(folder):
        try:
            by_step.append((_manifest_at(path)["step"], path.name == "latest", path))
        except (CheckpointInvalid, NotFound) as error:
            problems.append(str(error))
    for _, _, path in sorted(by_step, reverse=True):
        try:
            return replace(read(path), skipped=tuple(problems))
        except (CheckpointInvalid, NotFound) as error:
            problems.append(str(error))
    if problems:
        raise CheckpointInvalid("; ".join(problems), hint="no checkpoint of this seed can be used: train it again")
    return None


def prune(folder: Path, *, keep: int) -> None:
    """Remove all but the `keep` newest `step_N` checkpoints."""
    steps = [name for name in names(folder) if STEP.fullmatch(name)]
    doomed = steps[: max(0, len(steps) - keep)]
    if not doomed:
        return
    with files.locked(folder / "write"):
        for name in doomed:
            aside = folder / f".{name}.{os.getpid()}.tmp"
            os.rename(folder / name, aside)  # gone for readers at once, even if removing it fails
            shutil.rmtree(aside, ignore_errors=True)


# Writing


@contextlib.contextmanager
def _making(folder: Path, name: str) -> Iterator[Path]:
    """Yield a new folder that replaces `folder`/`name` if the block succeeds."""
    if not NAME.fullmatch(name):
        raise ValueError(f"a checkpoint cannot be named {name!r}")
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        files.sync_folder(folder.parent)
    with files.locked(folder / "write"):
        _tidy(folder)
        new = folder / f".{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            new.mkdir()
            yield new
            files.sync_folder(new)
            files.replace_folder(new, folder / name)
        finally:
            shutil.rmtree(new, ignore_errors=True)  # already moved if all went well


def _tidy(folder: Path) -> None:
    """Remove what killed writers left behind; the caller holds the lock, so nothing here is in use."""
    for path in folder.glob(".*.old"):
        target = folder / path.name[1 : -len(".old")]
        if target.exists():
            shutil.rmtree(path, ignore_errors=True)
        else:  # killed between the two renames of a file system that cannot exchange folders
            os.rename(path, target)
    for path in folder.glob(".*.tmp"):
        shutil.rmtree(path, ignore_errors=True)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # no hard links here, or too many of them
        with source.open("rb") as stream:
            tensors.write_stream(target, iter(lambda: stream.read(2**20), b""))


def _sealed(manifest: dict[str, Any]) -> bytes:
    """Return the content of a manifest file, with a digest over the rest of it."""
    plain = files.decode(files.encode(manifest))
    plain.pop("digest", None)
    return files.encode_pretty({**plain, "digest": files.sha256(files.encode(plain))})


def _versions() -> dict[str, str]:
    from rlx.runs.provenance import versions

    return versions()


# Reading


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Hold the folder open: its inode cannot be reused, so a swap is always noticed."""
    descriptor = _open_folder(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_folder(path: Path) -> int:
    # On file systems that cannot exchange two folders, the old one is renamed for a moment and then removed.
    for candidate in (path, _aside(path), path):
        try:
            return os.open(candidate, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            raise NotFound(
                f"{path} is not a checkpoint", hint="a checkpoint is a folder with a manifest.json"
            ) from None
    known = ", ".join(names(path.parent)) or "none"
    raise NotFound(f"no checkpoint {path}", hint=f"there are: {known}")


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _is_still(path: Path, descriptor: int) -> bool:
    """Return whether `path` is still the opened folder, so that a fault in it is not due to a swap."""
    opened = os.fstat(descriptor)
    for candidate in (path, _aside(path)):
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(candidate.stat(), opened)
    return False


def _read_open(path: Path, descriptor: int, *, with_replay: bool) -> Checkpoint:
    manifest = _read_manifest(path, descriptor)
    _refuse_strangers(path, descriptor, manifest)
    members = {member: entry for member, entry in manifest["files"].items() if with_replay or member != REPLAY}
    content = {member: _verified(path, descriptor, member, entry) for member, entry in members.items()}
    arrays = {member: _parsed(path, member, content.pop(member)) for member in list(content) if member != STATE}
    try:
        state = state_tree.unpack(files.decode(bytes(content[STATE])), arrays[STATE_ARRAYS])
    except ValueError as error:
        _refuse(path, STATE, str(error))
    if not isinstance(state, dict):
        _refuse(path, STATE, "is not a mapping")
    parity = state.pop(PARITY, {})
    if not isinstance(parity, dict):
        parity = {}
    return Checkpoint(
        step=manifest["step"],
        backend=manifest["backend"],
        algorithm=manifest["algorithm"],
        resume=manifest["resume"]["label"],
        missing=manifest["resume"]["missing"],
        policy=arrays[POLICY],
        optimizer=arrays[OPTIMIZER],
        state=state,
        replay=arrays.get(REPLAY, {}),
        spaces=manifest["spaces"],
        parity=parity,
        path=path,
        manifest=manifest,
        config=manifest["config"],
    )


def _manifest_at(path: Path) -> dict[str, Any]:
    with _opened(path) as descriptor:
        try:
            return _read_manifest(path, descriptor)
        except FileNotFoundError:
            _refuse(path, MANIFEST, "is missing")


def _read_manifest(path: Path, descriptor: int) -> dict[str, Any]:
    content = bytes(_content(path, descriptor, MANIFEST, size=None))
    try:
        manifest = files.decode(content)
    except ValueError:
        _refuse(path, MANIFEST, "is not JSON")
    if not isinstance(manifest, dict):
        _refuse(path, MANIFEST, "is not a mapping")
    if manifest.get("schema") != SCHEMA:
        _refuse(path, MANIFEST, f"has the schema {manifest.get('schema')!r}; this rlx reads {SCHEMA}")
    if _sealed(manifest) != content:
        _refuse(path, MANIFEST, "was altered: its digest does not match")
    _check_fields(path, manifest)
    return manifest


def _check_fields(path: Path, manifest: dict[str, Any]) -> None:
    for key, kind in FIELDS.items():
        if type(manifest.get(key)) is not kind:
            _refuse(path, MANIFEST, f"has no usable `{key}`")
    if manifest["resume"].get("label") not in LABELS or type(manifest["resume"].get("missing")) is not str:
        _refuse(path, MANIFEST, "has no usable `resume`")
    members = set(manifest["files"])
    required = {POLICY, OPTIMIZER, STATE, STATE_ARRAYS}
    if not required <= members <= required | {REPLAY}:
        _refuse(path, MANIFEST, f"lists the members {sorted(members)}")
    for member, entry in manifest["files"].items():
        sound = isinstance(entry, dict) and type(entry.get("bytes")) is int
        if not sound or not SHA256.fullmatch(str(entry.get("sha256"))):
            _refuse(path, MANIFEST, f"has no usable entry for {member}")


def _refuse_strangers(path: Path, descriptor: int, manifest: dict[str, Any]) -> None:
    for member in sorted(os.listdir(descriptor)):
        if member != MANIFEST and member not in manifest["files"]:
            _refuse(path, member, "does not belong to a checkpoint")


def _verified(path: Path, descriptor: int, member: str, entry: dict[str, Any]) -> bytearray:
    content = _content(path, descriptor, member, size=entry["bytes"])
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        _refuse(path, member, "was altered: its sha256 is not the one in the manifest")
    return content


def _content(path: Path, descriptor: int, member: str, *, size: int | None) -> bytearray:
    # Non-blocking and without following links: a planted pipe must not block, a planted link must not lead outside.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        member_descriptor = os.open(member, flags, dir_fd=descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        _refuse(path, member, f"cannot be opened: {error.strerror}")
    try:
        status = os.fstat(member_descriptor)
        if not stat.S_ISREG(status.st_mode):
            _refuse(path, member, "is not a file")
        if size is not None and status.st_size != size:
            _refuse(path, member, f"has {status.st_size} bytes instead of {size}")
        if status.st_size > LARGEST[member]:
            _refuse(path, member, f"has {status.st_size} bytes; {LARGEST[member]} are allowed")
        return _read_all(member_descriptor, status.st_size)
    finally:
        os.close(member_descriptor)


def _read_all(descriptor: int, size: int) -> bytearray:
    """Read up to `size` bytes into one writable buffer, which the arrays then share."""
    content = bytearray(size)
    view = memoryview(content)
    filled = 0
    while filled < size:
        count = os.readv(descriptor, [view[filled : filled + 2**30]])
        if count == 0:
            break
        filled += count
    view.release()
    del content[filled:]
    return content


def _parsed(path: Path, member: str, content: bytearray) -> Arrays:
    try:
        return tensors.parse(content)
    except ValueError as error:
        _refuse(path, member, f"is not a safetensors file: {error}")


def _refuse(path: Path, member: str, why: str) -> NoReturn:
    others = ", ".join(name for name in names(path.parent) if name != path.name)
    hint = f"it was altered, truncated, or not written by rlx; other checkpoints here: {others or 'none'}"
    raise CheckpointInvalid(f"checkpoint {path}: {member} {why}", hint=hint)


def _candidates(folder: Path) -> list[Path]:
    present = [name for name in names(folder) if name != UNTRAINED and not name.endswith(OPAQUE)]
    paths = [folder / name for name in present]
    for path in folder.glob(".*.old"):  # a writer was killed between the two renames
        if path.name[1 : -len(".old")] not in (*present, UNTRAINED):
            paths.append(path)
    return paths


def _order(name: str) -> tuple[bool, int, str]:
    step = STEP.fullmatch(name)
    if step is None:
        return (True, 0, name)
    return (False, int(step[1]), name)


def _and(*parts: str) -> str:
    return ", ".join(dict.fromkeys(part for part in parts if part))
