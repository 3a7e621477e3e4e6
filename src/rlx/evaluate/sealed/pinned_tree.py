"""A pinned tree: the copy of a repository in which policies are measured, with the hash of every file.

The copy is outside every worktree, and its manifest is next to it (`evaluator/` and `evaluator.json`). It leaves out
git's own folder, rlx's, runs, virtual environments and bytecode. It keeps a link that leads into the copy.

Not covered: a process that can write the folder can also rewrite the manifest. So a ledger records the manifest's hash
(`sha256`), and `PinnedTree.open` compares it.
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
# Folders with these names are left out; `runs` only at the top.
LEFT_OUT = frozenset({".git", ".rlx", "runs", ".venv", "venv", "__pycache__", "node_modules"})
LINK = "link:"
HINT = "the evaluator's copy has changed, and nothing measured with it counts: pin it again in a new study"


@dataclass(frozen=True)
class PinnedTree:
    """A pinned tree: the content of each path (a file's sha256, or `link:` and its target), and the executables."""

    folder: Path
    content: Mapping[str, str]
    executables: frozenset[str]

    @property
    def sha256(self) -> str:
        """The hash of everything in the tree."""
        tree = {"content": dict(sorted(self.content.items())), "executables": sorted(self.executables)}
        return files.sha256(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode())

    @classmethod
    def open(cls, folder: Path, *, sha256: str | None = None) -> PinnedTree:
        """Read the manifest of a pinned tree, and compare its hash. `verify` compares the files."""
        try:
            document = files.read_json(_manifest(folder))
            pinned = cls(folder, dict(document["content"]), frozenset(document["executables"]))
        except FileNotFoundError:
            raise NotFound(f"nothing is pinned at {folder}", hint="rlx study rehearse pins it") from None
        except (KeyError, TypeError, ValueError):
            raise FileDamaged(f"{_manifest(folder).name} is not a manifest of a pinned tree") from None
        if pinned.sha256 != (sha256 or document.get("sha256")):
            raise EvidenceInvalid(f"{_manifest(folder).name} is not the manifest that was pinned", hint=HINT)
        return pinned

    def verify(self) -> None:
        """Raise `EvidenceInvalid` with the first difference between the folder and the manifest."""
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
            return "was or became a link"
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return "is neither a file nor a link"
        if _content(self.folder / path, status) != pinned:
            return "was changed"
        if _is_executable(status) != (path in self.executables):
            return "has another mode: executable or not"
        return None

    def copy(self, to: Path) -> None:
        """Make a private, writable copy of the tree in a new folder."""
        to.mkdir(parents=True)
        for path, content in sorted(self.content.items()):
            target = to / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith(LINK):
                target.symlink_to(content.removeprefix(LINK))
            else:
                shutil.copyfile(self.folder / path, target)
                target.chmod(0o755 if path in self.executables else 0o644)


def pin_tree(tree: Path, to: Path) -> PinnedTree:
    """Copy a tree (a checked-out commit) to `to`, read-only, with its manifest next to it. Repeating it is fine."""
    new = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    try:
        made = _copied(tree, new)
        if to.exists():
            return _same(made, PinnedTree.open(to))
        files.write_json(_manifest(to), _document(made))  # first: a folder without a manifest could not be verified
        os.rename(new, to)
        return PinnedTree(to, made.content, made.executables)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _same(made: PinnedTree, there: PinnedTree) -> PinnedTree:
    if made.sha256 != there.sha256:
        raise Refused(
            f"{there.folder.name} was already pinned from another tree", hint="start a new study: it pins its own tree"
        )
    there.verify()
    return there


def _document(pinned: PinnedTree) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "sha256": pinned.sha256,
        "content": dict(sorted(pinned.content.items())),
        "executables": sorted(pinned.executables),
    }


def _manifest(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _copied(tree: Path, to: Path) -> PinnedTree:
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
    return PinnedTree(to, content, frozenset(executables))


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
    """Return a link's target, which must be a file or folder of the copy."""
    leads = os.readlink(tree / path)  # noqa: PTH115  as it stands
    target = os.path.normpath(os.path.join(os.path.dirname(path), leads))  # noqa: PTH118, PTH120
    is_folder = any(other.startswith(f"{target}/") for other in there)
    if os.path.isabs(leads) or not (is_folder or target in there):  # noqa: PTH117
        raise Refused(
            f"{path} links to {leads}, which is not in the copy", hint="links in a pinned tree must stay inside it"
        )
    return leads


def _scan(folder: Path, *, leaves_out: bool, below: str = "") -> dict[str, os.stat_result]:
    """Return every entry except folders, by its path from the top, without following links."""
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
