"""A pin: a copy of a repository's tree that policies are measured in, with the hash of every file.

The copy stands outside every worktree, and its manifest beside it (`evaluator/` and `evaluator.json`). Left out are
git's own folder, rlx's, runs, virtual environments and bytecode. A link is kept where it leads into the copy.

What is not covered: whoever can write the folder can rewrite the manifest too. Its hash (`sha256`) belongs into a
ledger; `Pin.open` compares it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid, FileDamaged, NotFound, Refused

SCHEMA = 1
LEFT_OUT = frozenset({".git", ".rlx", "runs", ".venv", "venv", "__pycache__", "node_modules"})
"""Folders of these names are left out: `runs` only at the top."""
LINK = "link:"
HINT = "the evaluator's copy is not what was pinned: pin it anew in a new study, nothing measured with it counts"


@dataclass(frozen=True)
class Pin:
    """A pinned tree: what each path in it is (the sha256 of a file, `link:` and where to), and which can be run."""

    folder: Path
    content: Mapping[str, str]
    executables: frozenset[str]

    @property
    def sha256(self) -> str:
        """The hash of everything in it."""
        told = {"content": dict(sorted(self.content.items())), "executables": sorted(self.executables)}
        return files.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())

    @classmethod
    def open(cls, folder: Path, *, sha256: str | None = None) -> Pin:
        """Read a pin's manifest; with a hash, refuse another one. The files are read by `verify`."""
        try:
            document = files.read_json(_manifest(folder))
            found = cls(folder, dict(document["content"]), frozenset(document["executables"]))
        except FileNotFoundError:
            raise NotFound(f"nothing is pinned at {folder}", hint="rlx study rehearse pins it") from None
        except (KeyError, TypeError, ValueError):
            raise FileDamaged(f"{_manifest(folder).name} is no manifest of a pin") from None
        if found.sha256 != (sha256 or document.get("sha256")):
            raise EvidenceInvalid(f"{_manifest(folder).name} is not the manifest that was pinned", hint=HINT)
        return found

    def verify(self) -> None:
        """Raise `EvidenceInvalid` that names the first difference between the folder and what was pinned."""
        there = _scan(self.folder, leaves_out=False)
        for path in sorted({*self.content, *there}):
            problem = self._difference(path, there.get(path))
            if problem:
                raise EvidenceInvalid(f"{self.folder.name}/{path} {problem}", hint=HINT)

    def _difference(self, path: str, status: os.stat_result | None) -> str | None:
        pinned = self.content.get(path)
        if status is None:
            return "is missing"
        if pinned is None:
            return "was not pinned"
        if stat.S_ISLNK(status.st_mode) != pinned.startswith(LINK):
            return "is a link now" if stat.S_ISLNK(status.st_mode) else "was a link"
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return "is neither a file nor a link"
        if _content(self.folder / path, status) != pinned:
            return "was changed"
        if _is_executable(status) != (path in self.executables):
            return "can be run, or cannot any more: its mode was changed"
        return None

    def copy(self, to: Path) -> None:
        """Put a private, writable copy of the tree into a new folder."""
        to.mkdir(parents=True)
        for path, what in sorted(self.content.items()):
            target = to / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if what.startswith(LINK):
                target.symlink_to(what.removeprefix(LINK))
            else:
                shutil.copyfile(self.folder / path, target)
                target.chmod(0o755 if path in self.executables else 0o644)


def pin(tree: Path, to: Path) -> Pin:
    """Copy a tree (a checked-out commit) to `to`, read-only, its manifest beside it; the same tree again is fine."""
    new = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    try:
        made = _copied(tree, new)
        if to.exists():
            return _same(made, Pin.open(to))
        files.write_json(_manifest(to), _document(made))  # first: a folder without one would be nobody's
        os.rename(new, to)
        return Pin(to, made.content, made.executables)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _same(made: Pin, there: Pin) -> Pin:
    if made.sha256 != there.sha256:
        raise Refused(f"{there.folder.name} is pinned already, from another tree", hint="a new study pins its own")
    there.verify()
    return there


def _document(pinned: Pin) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "sha256": pinned.sha256,
        "content": dict(sorted(pinned.content.items())),
        "executables": sorted(pinned.executables),
    }


def _manifest(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _copied(tree: Path, to: Path) -> Pin:
    content: dict[str, str] = {}
    executables: set[str] = set()
    to.mkdir(parents=True)
    there = _scan(tree, leaves_out=True)
    for path, status in there.items():
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(status.st_mode):
            leads = _inside(tree, path, there)
            target.symlink_to(leads)
            content[path] = LINK + leads
        elif stat.S_ISREG(status.st_mode):
            content[path] = _copy(tree / path, target, is_executable=_is_executable(status))
            executables.update([path] if _is_executable(status) else [])
        else:
            raise Refused(f"{path} is neither a file nor a link: it cannot be pinned", hint="remove it from the commit")
    return Pin(to, content, frozenset(executables))


def _copy(source: Path, target: Path, *, is_executable: bool) -> str:
    digest = hashlib.sha256()
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream, target.open("wb") as out:
        while block := stream.read(2**20):
            digest.update(block)
            out.write(block)
    target.chmod(0o555 if is_executable else 0o444)
    return digest.hexdigest()


def _inside(tree: Path, path: str, there: Mapping[str, os.stat_result]) -> str:
    """Return where a link leads, if that is a file or folder of the copy."""
    leads = os.readlink(tree / path)  # noqa: PTH115  as it stands
    target = os.path.normpath(os.path.join(os.path.dirname(path), leads))  # noqa: PTH118, PTH120
    is_folder = any(one.startswith(f"{target}/") for one in there)
    if os.path.isabs(leads) or not (is_folder or target in there):  # noqa: PTH117
        raise Refused(f"{path} links to {leads}, which is not in the copy", hint="a pinned tree keeps to itself")
    return leads


def _scan(folder: Path, *, leaves_out: bool, below: str = "") -> dict[str, os.stat_result]:
    """Return every entry that is no folder, by its path from the top, without following links."""
    return dict(sorted(_entries(folder, below, leaves_out)))


def _entries(folder: Path, below: str, leaves_out: bool) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder / below) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            if leaves_out and entry.name in LEFT_OUT and (entry.name != "runs" or not below):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(folder, f"{path}/", leaves_out)
            else:
                yield _readable(path), entry.stat(follow_symlinks=False)


def _readable(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise Refused(f"{path!r} is a file name that is not UTF-8: it cannot be pinned", hint="rename it") from None
    return path


def _content(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return LINK + os.readlink(path)  # noqa: PTH115  as it stands
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _is_executable(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & stat.S_IXUSR)
