"""Worktrees: the files of a commit in a separate folder, made completely or not at all, and compared with the commit.

If `add` is killed at any moment, the next `add` with the same name removes the rest: a complete worktree has a mark in
git's own folder, which is written last. The git processes hold the lock on a name, too, so that rlx waits for a git
process that outlives us.
Not covered: a power failure in between, and a person who writes the mark by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlx import external_programs, files
from rlx.errors import EvidenceInvalid, NotFound, Refused, RlxError
from rlx.launch.git.git_objects import open_repository, top_and_common
from rlx.launch.git.tree_diff import diff, diff_sha256, patch_text, remove_bytecode, unpatchable
from rlx.study.contract.baseline_commit import SNAPSHOTS

__all__ = [
    "add", "apply", "changed_paths", "diff", "diff_sha256", "head_commit", "patch_text", "remove", "remove_bytecode",
    "snapshot", "unpatchable", "write_tree",
]  # fmt: skip

MARK = "rlx.json"
OWN = (".rlx", "runs")  # rlx's folders in a project, which are never part of the trained code
_AUTHOR = {"GIT_AUTHOR_NAME": "rlx", "GIT_AUTHOR_EMAIL": "rlx@localhost", "GIT_COMMITTER_NAME": "rlx",
           "GIT_COMMITTER_EMAIL": "rlx@localhost"}  # fmt: skip


def add(root: Path, folder: Path, commit: str, *, branch: str | None = None, patch: bytes | None = None) -> None:
    """Make `folder` a worktree of a commit (plus a patch), with or without a new branch; keep an existing one.

    Refused if the existing one comes from another commit or patch.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    contents = {"commit": commit, "branch": branch, "patch_sha256": files.sha256(patch) if patch else None}
    with _locked(folder) as lock:
        mark = _mark(root, folder)
        if mark is not None and folder.is_dir():
            _refuse_other(folder, mark, contents)
            _relink(root, folder)
            return
        _discard(root, folder, branch)
        _register(root, folder, commit, branch=branch, lock=lock)
        _fill(root, folder, commit, patch=patch)
        admin = _admin(root, folder)
        assert admin is not None
        files.write_json(admin / MARK, {"schema": 1, "folder": _relative(root, folder), **contents})


def apply(root: Path, folder: Path, patch: bytes) -> None:
    """Apply a patch to a worktree, completely or not at all."""
    try:
        with open_repository(root) as repository:
            repository.git("apply", "--whitespace=nowarn", "-", tree=folder, stdin=patch)
    except RlxError as error:
        message = f"the patch does not apply: {error.message}"
        raise Refused(message, hint="make it against the worktree: git diff") from None


def remove(folder: Path, *, root: Path | None = None) -> None:
    """Remove a worktree and its branch, even if parts are missing."""
    if not folder.parent.is_dir():
        return
    root = root or top_and_common(folder.parent)[0]
    with _locked(folder):
        mark = _mark(root, folder) or {}
        _discard(root, folder, mark.get("branch"))


def head_commit(root: Path) -> str:
    """Return the current commit of the project."""
    top_and_common(root)
    try:
        return _git(root, "rev-parse", "--verify", "HEAD^{commit}")
    except RlxError:
        raise Refused(f"{root} has no commit yet", hint="git add -A && git commit") from None


def changed_paths(root: Path) -> tuple[str, ...]:
    """Return the paths that differ from the current commit, without ignored files and rlx's own folders."""
    output = external_programs.git_bytes(
        "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *_not_own(), folder=root
    )
    return tuple(os.fsdecode(row[3:]) for row in output.split(b"\0") if row)


def snapshot(root: Path) -> str:
    """Commit the project's current files, with untracked ones, without touching a branch or index; return the commit.

    A reference under `refs/rlx/` keeps git from deleting it. The same files give the same commit.
    """
    parent = head_commit(root)
    with tempfile.TemporaryDirectory() as scratch:
        environment = {"GIT_INDEX_FILE": str(Path(scratch) / "index"), **_AUTHOR}
        _git(root, "read-tree", parent, environment=environment)
        listing = ("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
        names = external_programs.git_bytes(*listing, "--", *_not_own(), folder=root, environment=environment)
        # A name that ends with a slash is a nested repository.
        plain = b"".join(name + b"\0" for name in names.split(b"\0") if name and not name.endswith(b"/"))
        update = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        _git(root, *update, environment=environment, stdin=plain)
        tree = _git(root, "write-tree", environment=environment)
    if tree == _git(root, "rev-parse", f"{parent}^{{tree}}"):
        return parent
    date = _git(root, "show", "--no-patch", "--format=%cI", parent)
    dated = {**_AUTHOR, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    message = b"rlx: the working tree as it was\n"
    commit = _git(root, "commit-tree", tree, "-p", parent, environment=dated, stdin=message)
    _git(root, "update-ref", f"{SNAPSHOTS}/{commit}", commit)
    return commit


def _git(root: Path, *arguments: str, environment: Mapping[str, str] | None = None, stdin: bytes = b"") -> str:
    output = external_programs.git_bytes(*arguments, folder=root, environment=environment or {}, stdin=stdin)
    return output.decode().strip()


def write_tree(root: Path, commit: str, to: Path, *, patch: bytes | None = None) -> None:
    """Write a commit's files (plus a patch) into the new folder `to`, byte for byte, completely or not at all.

    The folder is not a repository.
    """
    if to.exists():
        raise Refused(f"{to} already exists", hint="remove it first")
    to.parent.mkdir(parents=True, exist_ok=True)
    new = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        with open_repository(root) as repository:
            repository.check_out(commit, new, index=repository.git_dir / "index")
        _refuse_different(new, commit, root=root)
        if patch:
            apply(root, new, patch)
        os.rename(new, to)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    files.sync_folder(to.parent)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Lock a worktree's name; processes that inherit the descriptor keep the lock if we are killed."""
    path = folder.with_name(f".{folder.name}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    lock = descriptor
    try:
        lock = files.take_lock(descriptor, fcntl.LOCK_EX)
        yield lock
    finally:
        files.close_locked(descriptor, lock)


def _not_own() -> tuple[str, ...]:
    return (".", *(f":(exclude,top){name}" for name in OWN))


def _relative(root: Path, folder: Path) -> str:
    try:
        return folder.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return str(folder.resolve())


def _refuse_other(folder: Path, mark: dict[str, Any], contents: dict[str, Any]) -> None:
    for key, value in contents.items():
        if mark.get(key) != value:
            message = f"the worktree {folder} was made from another {key.removesuffix('_sha256')}: {mark.get(key)}"
            raise Refused(message, hint="remove it first, or choose another name")


def _register(root: Path, folder: Path, commit: str, *, branch: str | None, lock: int) -> None:
    where: tuple[str, ...] = ("--detach",)
    if branch:
        where = ("-B", branch)
        common = top_and_common(root)[1]
        # We hold the lock on the name, so a lock of git is a left-over.
        (common / "refs" / "heads" / f"{branch}.lock").unlink(missing_ok=True)
    external_programs.git_bytes(
        "worktree", "add", "--no-checkout", *where, str(folder), commit, folder=root, keeps=(lock,)
    )


def _fill(root: Path, folder: Path, commit: str, *, patch: bytes | None) -> None:
    admin = _admin(root, folder)
    if admin is None:
        raise RlxError(f"git did not make the worktree {folder}")
    with open_repository(root) as repository:
        repository.check_out(commit, folder, index=admin / "index")
        _refuse_different(folder, commit, root=root)
        if patch:
            repository.git("apply", "--whitespace=nowarn", "-", tree=folder, stdin=patch)


def _refuse_different(folder: Path, commit: str, *, root: Path) -> None:
    changes = diff(folder, commit, root=root)
    if changes:
        raise EvidenceInvalid(f"{folder} differs from commit {commit}: {changes[0].path}", hint="git fsck")


def _discard(root: Path, folder: Path, branch: str | None) -> None:
    """Remove all parts of a worktree: its files, git's record of it, its branch."""
    admin = _admin(root, folder)
    _set_aside(folder)
    if admin is not None:
        _set_aside(admin, to=top_and_common(root)[1])
    if branch and external_programs.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", folder=root):
        external_programs.git_bytes("update-ref", "-d", f"refs/heads/{branch}", folder=root)


def _set_aside(folder: Path, *, to: Path | None = None) -> None:
    """Rename a folder at once, then remove it."""
    aside = (to or folder.parent) / f".rlx-gone-{os.urandom(6).hex()}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, aside)
        shutil.rmtree(aside, ignore_errors=True)


def _admins(root: Path) -> list[Path]:
    place = top_and_common(root)[1] / "worktrees"
    return sorted(place.iterdir()) if place.is_dir() else []


def _admin(root: Path, folder: Path) -> Path | None:
    """Return git's record of a worktree: found by our mark, or by the path that git wrote down."""
    for admin in _admins(root):
        other = _folder_of(root, admin)
        if other is not None and _relative(root, other) == _relative(root, folder):
            return admin
    return None


def _folder_of(root: Path, admin: Path) -> Path | None:
    """Return the worktree that a record of git describes."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return root / str(files.read_json(admin / MARK)["folder"])
    with contextlib.suppress(OSError):
        return Path(os.fsdecode((admin / "gitdir").read_bytes()).strip()).parent
    return None


def _mark(root: Path, folder: Path) -> dict[str, Any] | None:
    admin = _admin(root, folder)
    try:
        document = files.read_json(admin / MARK) if admin else None
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _relink(root: Path, folder: Path) -> bool:
    """Connect a worktree and git's record again after the project was moved; say whether that was necessary."""
    admin = _admin(root, folder)
    if admin is None:
        raise NotFound(f"git does not know the worktree {folder}")
    links = {
        folder / ".git": b"gitdir: " + os.fsencode(admin) + b"\n",
        admin / "gitdir": os.fsencode(folder.resolve() / ".git") + b"\n",
    }
    changed = False
    for path, content in links.items():
        if not path.is_file() or path.is_symlink() or path.read_bytes() != content:
            if path.is_dir() and not path.is_symlink():
                _set_aside(path)
            files.write_atomic(path, content)
            changed = True
    return changed
