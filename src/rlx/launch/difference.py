"""What a worktree has changed since a commit: read from the files themselves, told as changes, a hash and a patch.

Nothing that lies in the worktree has a say: not its `.git`, its `.gitignore` nor its `.gitattributes`. Files that the
commit's own rules ignore are told where they could be imported, run or read as settings; caches of compiled Python
are not (jobs never read them, see `PYTHONPYCACHEPREFIX`).
What is not covered: a file that changes while it is read, and ignored data files in folders that the commit has not.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlx import files
from rlx.errors import Refused
from rlx.launch.repository import (
    EXECUTABLE,
    FILE,
    LINK,
    MODULE,
    Entry,
    Repository,
    empty,
    object_id,
    opened,
    pointed_at,
    top_and_common,
)
from rlx.study.scope import Change

OTHER = "other"
LARGEST = 32 * 2**20
CACHE = "__pycache__"
IMPORTED = (".py", ".pyc", ".pyo", ".pyw", ".pyd", ".so", ".dll", ".dylib", ".pth", ".egg", ".whl", ".zip", ".sh")
SETTINGS = (
    ".yaml",
    ".yml",
    ".json",
    ".toml",
    ".ini",
    ".cfg",
    ".conf",
    ".env",
    ".xml",
    ".mjcf",
    ".urdf",
    ".sdf",
    ".gin",
)
METADATA = (".egg-info", ".dist-info", ".egg-link")
_TOLD = re.compile(rb"\d+ bytes, sha256 [0-9a-f]{64}\n")
"""What stands for the content of a file that is too large to be held."""


@dataclass(frozen=True)
class _Found:
    """A file as it lies in the worktree."""

    mode: str
    path: Path

    def content(self) -> bytes:
        """Return the bytes (of a link its target); a very large file is told by its size and hash."""
        if self.mode == LINK:
            return os.fsencode(os.readlink(self.path))  # noqa: PTH115  the exact bytes
        if self.mode == OTHER:
            return b""
        if not self.is_large:
            return self.path.read_bytes()
        return f"{self.path.stat().st_size} bytes, sha256 {self.digest('sha256')}\n".encode()

    @property
    def is_large(self) -> bool:
        return self.mode in (FILE, EXECUTABLE) and self.path.stat().st_size > LARGEST

    def blob_id(self, *, like: str) -> str:
        """Return git's id of the content."""
        if not self.is_large:
            return object_id(self.content(), like=like)
        head = b"blob %d\0" % self.path.stat().st_size
        return self.digest("sha256" if len(like) == 64 else "sha1", head)

    def digest(self, kind: str, head: bytes = b"") -> str:
        """Return the hash of `head` and the file, read in pieces."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.new(kind, head, usedforsecurity=False)).hexdigest()


def diff(folder: Path, commit: str, *, root: Path | None = None) -> tuple[Change, ...]:
    """Return what differs between a worktree and a commit, by path; `root` is the project, else found around it.

    A rename is told twice: its old path as a deletion, the new one as an addition with `renamed_from`.
    """
    with opened(root or _project_around(folder)) as repository:
        return _changes(repository, folder, commit)


def diff_sha256(changes: Iterable[Change]) -> str:
    """Return one hash over changes: paths, modes and contents."""
    rows = [[one.path, one.mode_before, _digest(one.before), one.mode_after, _digest(one.after)] for one in changes]
    return files.sha256(files.encode(sorted(rows, key=lambda row: str(row[0]))))


def unpatchable(changes: Iterable[Change]) -> tuple[str, ...]:
    """Name what no patch can hold: pipes, devices and very large files."""
    bad = [one for one in changes if one.mode_after == OTHER or _TOLD.fullmatch(one.after or b"")]
    return tuple(
        f"{one.path!a} is {'no file' if one.mode_after == OTHER else f'larger than {LARGEST // 2**20} MB'}: "
        "it cannot be part of a patch"
        for one in bad
    )


def patch_text(changes: Iterable[Change]) -> bytes:
    """Return changes as a patch that `add` takes: binary files and modes included."""
    ordered = sorted(changes, key=lambda change: (change.after is not None, change.path))
    for says in unpatchable(ordered):
        raise Refused(says, hint="remove it from the worktree")
    with tempfile.TemporaryDirectory(prefix="rlx-git-") as folder:
        repository = empty(Path(folder))
        before, after = (_tree(repository, ordered, is_after=is_after) for is_after in (False, True))
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        return repository.git("diff", *options, "--src-prefix=a/", "--dst-prefix=b/", before, after)


def _tree(repository: Repository, changes: Iterable[Change], *, is_after: bool) -> str:
    """Write one side of changes as a tree of git's, and return its id."""
    sides = [(one.path, one.mode_after, one.after) if is_after else (one.path, one.mode_before, one.before)
             for one in changes]  # fmt: skip
    index = repository.git_dir / f"index-{is_after}"
    rows = b"".join(_index_row(repository, path, mode, content) for path, mode, content in sides
                    if mode is not None and content is not None)  # fmt: skip
    repository.git("update-index", "-z", "--replace", "--index-info", index=index, stdin=rows)
    return repository.git("write-tree", "--missing-ok", index=index).decode().strip()


def sweep(folder: Path) -> None:
    """Remove caches of compiled Python, which could stand in for sources."""
    for found in list(_walk(folder)):
        if CACHE in Path(found[0]).parts[:-1]:
            found[1].path.unlink(missing_ok=True)


def _project_around(folder: Path) -> Path:
    return top_and_common(folder.parent)[0]


def _changes(repository: Repository, folder: Path, commit: str) -> tuple[Change, ...]:
    entries = repository.entries(commit)
    there = dict(_walk(folder))
    told = [path for path in entries if not _is_same(repository, entries[path], there.get(path), folder / path)]
    added = [path for path in there if path not in entries]
    ignored = repository.ignored(commit, added)
    folders = {str(PurePosixPath(path).parent) for path in entries}
    told += [path for path in added if path not in ignored or _counts(path, there[path], folders)]
    blobs = [entries[path].id for path in told if path in entries and entries[path].mode != MODULE]
    before = repository.objects(blobs, kind="blob")
    changes = [_change(path, entries.get(path), there.get(path), before) for path in sorted(told)]
    return tuple(_with_renames(changes))


def _change(path: str, entry: Entry | None, found: _Found | None, before: dict[str, bytes]) -> Change:
    return Change(
        path=path,
        before=before.get(entry.id, b"") if entry else None,
        after=found.content() if found else None,
        mode_before=entry.mode if entry else None,
        mode_after=found.mode if found else None,
    )


def _with_renames(changes: list[Change]) -> Iterator[Change]:
    gone = {(one.before, one.mode_before): one.path for one in changes if one.after is None and one.before}
    for one in changes:
        source = gone.get((one.after, one.mode_after)) if one.before is None and one.after else None
        yield Change(one.path, None, one.after, None, one.mode_after, source) if source else one


def _is_same(repository: Repository, entry: Entry, found: _Found | None, place: Path) -> bool:
    if entry.mode == MODULE:
        return place.is_dir() and not place.is_symlink()  # what lies in it is told by itself
    if found is None or found.mode != entry.mode:
        return False
    if found.blob_id(like=entry.id) == entry.id:
        return True
    pointer = pointed_at(repository.objects([entry.id], kind="blob")[entry.id])
    return pointer is not None and found.mode != LINK and pointer == found.digest("sha256")


def _counts(path: str, found: _Found, folders: set[str]) -> bool:
    """Say whether an ignored file could be imported, run, or read as settings beside tracked files."""
    name = path.lower()
    if CACHE in PurePosixPath(path).parts[:-1]:
        return False
    if found.mode not in (FILE,) or any(ending in name for ending in METADATA):
        return True
    is_imported = name.endswith(IMPORTED) or ".so." in name
    return is_imported or (name.endswith(SETTINGS) and str(PurePosixPath(path).parent) in folders)


def _walk(folder: Path) -> Iterator[tuple[str, _Found]]:
    """Yield every file below a folder, links unfollowed; not the `.git` file of the worktree itself."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with os.scandir(here) as listing:
            for entry in listing:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif here != folder or entry.name != ".git" or entry.is_symlink():
                    yield path.relative_to(folder).as_posix(), _Found(_mode(entry.stat(follow_symlinks=False)), path)


def _mode(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if not stat.S_ISREG(status.st_mode):
        return OTHER
    return EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE


def _digest(content: bytes | None) -> str | None:
    return None if content is None else files.sha256(content)


def _index_row(repository: Repository, path: str, mode: str, content: bytes) -> bytes:
    """Return how `git update-index --index-info` is told of one file."""
    identity = repository.git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).strip()
    return b"%s %s\t%s\0" % (mode.encode(), identity, os.fsencode(path))
