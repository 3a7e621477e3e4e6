"""Compare a worktree with a commit, file by file; the result is a list of changes, a hash or a patch.

The worktree's own `.git`, `.gitignore` and `.gitattributes` have no effect. A file that the commit's rules ignore
counts if it could be imported, run or read as settings. Caches of compiled Python do not count, because jobs never
read them (see `PYTHONPYCACHEPREFIX`).
Not covered: a file that changes while it is read, and ignored data files in folders that the commit does not have.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rlx import files
from rlx.errors import Refused
from rlx.launch.git.git_objects import (
    EXECUTABLE,
    FILE,
    LINK,
    MODULE,
    Repository,
    TreeEntry,
    empty_tree,
    lfs_sha256,
    object_id,
    open_repository,
    top_and_common,
)
from rlx.study.candidate.diff_scope import FileChange

OTHER = "other"
LARGEST = 32 * 2**20
CACHE = "__pycache__"
IMPORTED = (".py", ".pyc", ".pyo", ".pyw", ".pyd", ".so", ".dll", ".dylib", ".pth", ".egg", ".whl", ".zip", ".sh")
SETTINGS = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".env", ".xml", ".mjcf", ".urdf", ".sdf",
            ".gin")  # fmt: skip
METADATA = (".egg-info", ".dist-info", ".egg-link")
_LARGE_FILE = re.compile(rb"\d+ bytes, sha256 [0-9a-f]{64}\n")  # stands for the content of a very large file


@dataclass(frozen=True)
class _WorktreeFile:
    """A file in the worktree."""

    mode: str
    path: Path

    def content(self) -> bytes:
        """Return the bytes (for a link: its target); for a very large file, its size and hash."""
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
        kind = "sha256" if len(like) == 64 else "sha1"
        return self.digest(kind, b"blob %d\0" % self.path.stat().st_size)

    def digest(self, kind: str, head: bytes = b"") -> str:
        """Return the hash of `head` and the file, read in pieces."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.new(kind, head, usedforsecurity=False)).hexdigest()


def diff(folder: Path, commit: str, *, root: Path | None = None) -> tuple[FileChange, ...]:
    """Return the changed files of a worktree, by path; `root` is the project (default: the repository around it).

    A rename appears twice: the old path as a deletion, the new path as an addition with `renamed_from`.
    """
    with open_repository(root or top_and_common(folder.parent)[0]) as repository:
        return _changes(repository, folder, commit)


def diff_sha256(changes: Iterable[FileChange]) -> str:
    """Return one hash over changes: paths, modes and contents."""
    rows = [
        [change.path, change.mode_before, _digest(change.before), change.mode_after, _digest(change.after)]
        for change in changes
    ]
    return files.sha256(files.encode(sorted(rows, key=lambda row: str(row[0]))))


def unpatchable(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Name the files that a patch cannot hold: pipes, devices and very large files."""
    found = []
    for change in changes:
        if change.mode_after == OTHER:
            found.append(f"{change.path!a} is not a regular file: it cannot be part of a patch")
        elif _LARGE_FILE.fullmatch(change.after or b""):
            found.append(f"{change.path!a} is larger than {LARGEST // 2**20} MB: it cannot be part of a patch")
    return tuple(found)


def patch_text(changes: Iterable[FileChange]) -> bytes:
    """Return changes as a patch for `worktree.add`, with binary files and modes."""
    ordered = sorted(changes, key=lambda change: (change.after is not None, change.path))
    for problem in unpatchable(ordered):
        raise Refused(problem, hint="remove it from the worktree")
    with tempfile.TemporaryDirectory(prefix="rlx-git-") as folder:
        repository = empty_tree(Path(folder))
        before = _write_tree(repository, [(change.path, change.mode_before, change.before) for change in ordered])
        after = _write_tree(repository, [(change.path, change.mode_after, change.after) for change in ordered])
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        return repository.git("diff", *options, "--src-prefix=a/", "--dst-prefix=b/", before, after)


def _write_tree(repository: Repository, contents: Iterable[tuple[str, str | None, bytes | None]]) -> str:
    """Write files (path, mode, content) as a git tree, and return its id."""
    rows = b""  # as `git update-index --index-info` reads them
    for path, mode, content in contents:
        if mode is not None and content is not None:
            id = repository.git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).strip()
            rows += b"%s %s\t%s\0" % (mode.encode(), id, os.fsencode(path))
    index = repository.git_dir / "index"
    index.unlink(missing_ok=True)
    repository.git("update-index", "-z", "--replace", "--index-info", index=index, stdin=rows)
    return repository.git("write-tree", "--missing-ok", index=index).decode().strip()


def remove_bytecode(folder: Path) -> None:
    """Remove caches of compiled Python, which Python could load in place of the sources."""
    for name, file in list(_walk(folder)):
        if CACHE in Path(name).parts[:-1]:
            file.path.unlink(missing_ok=True)


def _changes(repository: Repository, folder: Path, commit: str) -> tuple[FileChange, ...]:
    entries = repository.entries(commit)
    present = dict(_walk(folder))
    changed = [path for path in entries if not _is_same(repository, entries[path], present.get(path), folder / path)]
    added = [path for path in present if path not in entries]
    ignored = repository.ignored(commit, added)
    folders = {str(PurePosixPath(path).parent) for path in entries}
    changed += [path for path in added if path not in ignored or _counts(path, present[path], folders)]
    blobs = [entries[path].id for path in changed if path in entries and entries[path].mode != MODULE]
    before = repository.objects(blobs, kind="blob")
    changes = [_change(path, entries.get(path), present.get(path), before) for path in sorted(changed)]
    return tuple(_with_renames(changes))


def _change(path: str, entry: TreeEntry | None, file: _WorktreeFile | None, before: dict[str, bytes]) -> FileChange:
    change = FileChange(path, None, None, None, None)
    if entry:
        change = replace(change, before=before.get(entry.id, b""), mode_before=entry.mode)
    if file:
        change = replace(change, after=file.content(), mode_after=file.mode)
    return change


def _with_renames(changes: list[FileChange]) -> Iterator[FileChange]:
    removed = {
        (change.before, change.mode_before): change.path for change in changes if change.after is None and change.before
    }
    for change in changes:
        source = None
        if change.before is None and change.after:
            source = removed.get((change.after, change.mode_after))
        yield replace(change, renamed_from=source)


def _is_same(repository: Repository, entry: TreeEntry, file: _WorktreeFile | None, path: Path) -> bool:
    if entry.mode == MODULE:
        return path.is_dir() and not path.is_symlink()  # its files are compared one by one
    if file is None or file.mode != entry.mode:
        return False
    if file.blob_id(like=entry.id) == entry.id:
        return True
    pointer = lfs_sha256(repository.objects([entry.id], kind="blob")[entry.id])
    return pointer is not None and file.mode != LINK and pointer == file.digest("sha256")


def _counts(path: str, file: _WorktreeFile, folders: set[str]) -> bool:
    """Say whether an ignored file could be imported, run, or read as settings next to tracked files."""
    name = path.lower()
    if CACHE in PurePosixPath(path).parts[:-1]:
        return False
    if file.mode != FILE or any(ending in name for ending in METADATA):
        return True
    is_imported = name.endswith(IMPORTED) or ".so." in name
    return is_imported or (name.endswith(SETTINGS) and str(PurePosixPath(path).parent) in folders)


def _walk(folder: Path) -> Iterator[tuple[str, _WorktreeFile]]:
    """Yield every file below a folder, without following links and without the worktree's own `.git` file."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with os.scandir(here) as listing:
            for entry in listing:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif here != folder or entry.name != ".git" or entry.is_symlink():
                    yield (
                        path.relative_to(folder).as_posix(),
                        _WorktreeFile(_mode(entry.stat(follow_symlinks=False)), path),
                    )


def _mode(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return LINK
    if not stat.S_ISREG(status.st_mode):
        return OTHER
    return EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE


def _digest(content: bytes | None) -> str | None:
    return None if content is None else files.sha256(content)
