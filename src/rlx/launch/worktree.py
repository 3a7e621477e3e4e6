"""A worktree: a commit's files in a folder of their own, made whole or not at all, and compared with the commit.

A kill at any moment of `add` leaves something that the next `add` under the same name clears away: what is whole has
a mark beside git's own notes, written last. The lock on a name is held by the git processes too, so that one that
outlives us is waited for.
What is not covered: power loss in the middle, and somebody who writes the mark by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx import files, tools
from rlx.errors import EvidenceInvalid, NotFound, Refused, RlxError
from rlx.launch.difference import diff, diff_sha256, patch_text, sweep, unpatchable
from rlx.launch.repository import QUIET, opened, top_and_common
from rlx.study.pinned import SNAPSHOTS

__all__ = [
    "add", "apply", "diff", "diff_sha256", "dirty", "head", "patch_text", "remove", "repair", "snapshot", "sweep",
    "tree_of", "unpatchable",
]  # fmt: skip

MARK = "rlx.json"
OWN = (".rlx", "runs")
"""Folders of a project that are rlx's, never part of what is trained."""
_AUTHOR = {"GIT_AUTHOR_NAME": "rlx", "GIT_AUTHOR_EMAIL": "rlx@localhost", "GIT_COMMITTER_NAME": "rlx",
           "GIT_COMMITTER_EMAIL": "rlx@localhost"}  # fmt: skip


def add(root: Path, folder: Path, commit: str, *, branch: str | None = None, patch: bytes | None = None) -> None:
    """Make `folder` a worktree of a commit (plus a patch), on a new branch or none; one that is there is kept.

    Refused where it is there from another commit or patch.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    wanted = {"commit": commit, "branch": branch, "patch_sha256": files.sha256(patch) if patch else None}
    with _held(folder) as lock:
        mark = _mark(root, folder)
        if mark is not None and folder.is_dir():
            _refuse_other(folder, mark, wanted)
            _relink(root, folder)
            return
        _discard(root, folder, branch)
        _register(root, folder, commit, branch=branch, lock=lock)
        _fill(root, folder, commit, patch=patch)
        admin = _admin(root, folder)
        assert admin is not None
        files.write_json(admin / MARK, {"schema": 1, "folder": _relative(root, folder), **wanted})


def apply(root: Path, folder: Path, patch: bytes) -> None:
    """Apply a patch to a worktree, whole or not at all."""
    try:
        with opened(root) as repository:
            repository.git("apply", "--whitespace=nowarn", "-", tree=folder, stdin=patch)
    except RlxError as error:
        raise Refused(
            f"the patch does not apply: {error.message}", hint="make it against the worktree: git diff"
        ) from None


def remove(folder: Path, *, root: Path | None = None) -> None:
    """Remove a worktree and its branch; one that is half gone, too; nothing where there never was one."""
    if not folder.parent.is_dir():
        return
    root = root or top_and_common(folder.parent)[0]
    with _held(folder):
        mark = _mark(root, folder)
        _discard(root, folder, mark.get("branch") if mark else None)


def repair(root: Path) -> tuple[str, ...]:
    """Put right what moves and kills left of a project's worktrees; say what was done."""
    done: list[str] = []
    for admin in _admins(root):
        folder = _folder_of(root, admin)
        if folder is None or not _relative(root, folder).startswith(".rlx/") or not folder.parent.is_dir():
            continue
        with _held(folder):
            if not (admin / MARK).is_file() or not folder.is_dir():
                _discard(root, folder, _branch_in(admin))
                done.append(f"removed {_relative(root, folder)}, which was half made or half gone")
            elif _relink(root, folder):
                done.append(f"linked {_relative(root, folder)} again: the project was moved")
    return tuple(done)


def head(root: Path) -> str:
    """Return the commit that the project stands at."""
    top_and_common(root)
    try:
        return tools.git_bytes("rev-parse", "--verify", "HEAD^{commit}", folder=root).decode().strip()
    except RlxError:
        raise Refused(f"{root} has no commit yet", hint="git add -A && git commit") from None


def dirty(root: Path) -> tuple[str, ...]:
    """Return the paths that differ from the commit the project stands at, without what is ignored or rlx's own."""
    output = tools.git_bytes(
        *QUIET, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *_not_own(), folder=root
    )
    return tuple(os.fsdecode(row[3:]) for row in output.split(b"\0") if row)


def snapshot(root: Path) -> str:
    """Return a commit of the project as it lies there, untracked files included; no branch or index is touched.

    It is kept from being collected by a reference under `refs/rlx/`. The same files give the same commit.
    """
    parent = head(root)
    with tempfile.TemporaryDirectory() as scratch:
        place = {"GIT_INDEX_FILE": str(Path(scratch) / "index"), **_AUTHOR}
        tools.git_bytes("read-tree", parent, folder=root, environment=place)
        listing = (*QUIET, "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
        paths = tools.git_bytes(*listing, "--", *_not_own(), folder=root, environment=place).split(b"\0")
        plain = b"".join(path + b"\0" for path in paths if path and not path.endswith(b"/"))  # no nested repositories
        update = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        tools.git_bytes(*update, folder=root, environment=place, stdin=plain)
        tree = tools.git_bytes("write-tree", folder=root, environment=place).decode().strip()
    if tree == tools.git_bytes("rev-parse", f"{parent}^{{tree}}", folder=root).decode().strip():
        return parent
    date = tools.git_bytes("show", "--no-patch", "--format=%cI", parent, folder=root).decode().strip()
    dated = {**_AUTHOR, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    message = b"rlx: the working tree as it was\n"
    made = tools.git_bytes("commit-tree", tree, "-p", parent, folder=root, environment=dated, stdin=message)
    commit = made.decode().strip()
    tools.git_bytes(*QUIET, "update-ref", f"{SNAPSHOTS}/{commit}", commit, folder=root)
    return commit


def tree_of(root: Path, commit: str, to: Path, *, patch: bytes | None = None) -> None:
    """Write a commit's files (plus a patch) into the new folder `to`, byte for byte; whole or not at all.

    It is no repository.
    """
    if to.exists():
        raise Refused(f"{to} is there already", hint="remove it first")
    to.parent.mkdir(parents=True, exist_ok=True)
    new = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        with opened(root) as repository:
            repository.check_out(commit, new, index=repository.git_dir / "index")
        _refuse_different(new, commit, root=root)
        if patch:
            apply(root, new, patch)
        os.rename(new, to)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    files.sync_folder(to.parent)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[int]:
    """Hold a worktree's name; processes that get the descriptor hold it on, should we be killed."""
    path = folder.with_name(f".{folder.name}.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _not_own() -> tuple[str, ...]:
    return (".", *(f":(exclude,top){name}" for name in OWN))


def _relative(root: Path, folder: Path) -> str:
    try:
        return folder.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return str(folder.resolve())


def _refuse_other(folder: Path, mark: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key, value in wanted.items():
        if mark.get(key) != value:
            raise Refused(
                f"the worktree {folder} was made from another {key.removesuffix('_sha256')}: {mark.get(key)}",
                hint="remove it first, or take another name",
            )


def _register(root: Path, folder: Path, commit: str, *, branch: str | None, lock: int) -> None:
    where = ("-B", branch) if branch else ("--detach",)
    if branch:
        common = top_and_common(root)[1]
        (common / "refs" / "heads" / f"{branch}.lock").unlink(missing_ok=True)  # we hold the name: nobody's any more
    tools.git_bytes(*QUIET, "worktree", "add", "--no-checkout", *where, str(folder), commit, folder=root, keeps=(lock,))


def _fill(root: Path, folder: Path, commit: str, *, patch: bytes | None) -> None:
    admin = _admin(root, folder)
    if admin is None:
        raise RlxError(f"git made no worktree of {folder}")
    with opened(root) as repository:
        repository.check_out(commit, folder, index=admin / "index")
        _refuse_different(folder, commit, root=root)
        if patch:
            repository.git("apply", "--whitespace=nowarn", "-", tree=folder, stdin=patch)


def _refuse_different(folder: Path, commit: str, *, root: Path) -> None:
    changes = diff(folder, commit, root=root)
    if changes:
        raise EvidenceInvalid(f"{folder} is not what commit {commit} holds: {changes[0].path} differs", hint="git fsck")


def _discard(root: Path, folder: Path, branch: str | None) -> None:
    """Remove what there is of a worktree: its files, git's notes about it, its branch."""
    admin = _admin(root, folder)
    _set_aside(folder)
    if admin is not None:
        _set_aside(admin, to=top_and_common(root)[1])
    if branch and tools.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", folder=root):
        tools.git_bytes(*QUIET, "update-ref", "-d", f"refs/heads/{branch}", folder=root)


def _set_aside(folder: Path, *, to: Path | None = None) -> None:
    """Take a folder away at once, then remove it."""
    aside = (to or folder.parent) / f".rlx-gone-{os.urandom(6).hex()}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, aside)
        shutil.rmtree(aside, ignore_errors=True)


def _admins(root: Path) -> list[Path]:
    place = top_and_common(root)[1] / "worktrees"
    return sorted(place.iterdir()) if place.is_dir() else []


def _admin(root: Path, folder: Path) -> Path | None:
    """Return git's notes about a worktree: found by our mark, else by the path git wrote down."""
    wanted = _relative(root, folder)
    for admin in _admins(root):
        found = _folder_of(root, admin)
        if found is not None and _relative(root, found) == wanted:
            return admin
    return None


def _folder_of(root: Path, admin: Path) -> Path | None:
    """Return the worktree that git's notes are about."""
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
    """Let worktree and notes name each other again, after the project was moved; say whether they did not."""
    admin = _admin(root, folder)
    if admin is None:
        raise NotFound(f"git knows no worktree {folder}")
    link, back = b"gitdir: " + os.fsencode(admin) + b"\n", os.fsencode(folder.resolve() / ".git") + b"\n"
    changed = False
    for path, content in ((folder / ".git", link), (admin / "gitdir", back)):
        if not path.is_file() or path.is_symlink() or path.read_bytes() != content:
            if path.is_dir() and not path.is_symlink():
                _set_aside(path)
            files.write_atomic(path, content)
            changed = True
    return changed


def _branch_in(admin: Path) -> str | None:
    with contextlib.suppress(OSError):
        words = (admin / "HEAD").read_text().strip()
        if words.startswith("ref: refs/heads/rlx/"):
            return words.removeprefix("ref: refs/heads/")
    return None
