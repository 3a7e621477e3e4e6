"""Read a git repository from its objects alone: no hook, filter, attribute, replacement or setting has an effect.

A bare folder of our own borrows the repository's objects, so that git looks at nothing else. Every tree and every
file is checked against its hash.
Not covered: files that only a filter can make (git-crypt), and line ends; both stay as they are stored. Git LFS
pointers are followed only to fetched files. Submodules are empty folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlx import external_programs
from rlx.errors import EvidenceInvalid, NotFound, Refused, RlxError

FILE = "100644"
EXECUTABLE = "100755"
LINK = "120000"
MODULE = "160000"
FOLDER = "40000"
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_POINTER = re.compile(rb"version https://git-lfs[^\n]*\noid sha256:([0-9a-f]{64})\nsize (\d+)\n")
_LONGEST_POINTER = 1024
_NO_SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1",
                "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0"}  # fmt: skip
_AS_STORED = "* -text -filter -ident !eol !working-tree-encoding\n"


@dataclass(frozen=True)
class TreeEntry:
    """One file of a commit: git's mode and the object's id."""

    mode: str
    id: str


@dataclass(frozen=True)
class Repository:
    """The objects of a repository, seen through our own git folder (`git_dir`)."""

    top: Path
    common: Path
    git_dir: Path

    def git(self, *arguments: str, tree: Path | None = None, index: Path | None = None, stdin: bytes = b"") -> bytes:
        """Run git on the objects alone; `tree` is a folder to work in, `index` the index to use."""
        environment = {**_NO_SETTINGS, "GIT_DIR": str(self.git_dir)}
        if tree is not None:
            environment["GIT_WORK_TREE"] = str(tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        exit_codes = {"check-ignore": (0, 1)}.get(arguments[0], (0,))
        return external_programs.git_bytes(
            *arguments, folder=tree or self.git_dir, environment=environment, stdin=stdin, fine=exit_codes
        )

    def entries(self, commit: str) -> dict[str, TreeEntry]:
        """Return every file of a commit by its path."""
        entries: dict[str, TreeEntry] = {}
        level = {"": self._tree_of(commit)}
        while level:
            trees = self.objects(level.values(), kind="tree")
            below: dict[str, str] = {}
            for folder, tree in level.items():
                for name, entry in _tree_entries(trees[tree], bytes_in_id=len(tree) // 2):
                    path = f"{folder}{name}"
                    if entry.mode == FOLDER:
                        below[f"{path}/"] = entry.id
                    else:
                        entries[path] = entry
            level = below
        return entries

    def _tree_of(self, commit: str) -> str:
        if not _ID.fullmatch(commit):
            raise ValueError(f"{commit!r} is not a full commit id")
        content = self.objects([commit], kind="commit")[commit]
        return content.split(b"\n", 1)[0].removeprefix(b"tree ").decode()

    def objects(self, ids: Iterable[str], *, kind: str) -> dict[str, bytes]:
        """Return objects by their ids, each checked against its id."""
        unique = list(dict.fromkeys(ids))
        output = self.git("cat-file", "--batch", stdin="".join(f"{id}\n" for id in unique).encode())
        objects: dict[str, bytes] = {}
        at = 0
        for id in unique:
            end = output.index(b"\n", at)
            words = output[at:end].decode().split()
            if len(words) != 3:
                raise NotFound(f"the repository {self.top} has no object {id}", hint="fetch it: git fetch --all")
            content = output[end + 1 : end + 1 + int(words[2])]
            at = end + len(content) + 2
            if words[1] != kind or object_id(content, kind=kind, like=id) != id:
                raise EvidenceInvalid(f"object {id} of {self.top} does not match its id", hint="git fsck")
            objects[id] = content
        return objects

    def check_out(self, commit: str, folder: Path, *, index: Path) -> None:
        """Write a commit's files into a folder, byte for byte, and a matching index."""
        self._tree_of(commit)
        self.git("read-tree", commit, tree=folder, index=index)
        self.git("checkout-index", "--all", "--force", "--index", "--quiet", tree=folder, index=index)
        self._follow_pointers(commit, folder)

    def _follow_pointers(self, commit: str, folder: Path) -> None:
        """Replace Git LFS pointers by the fetched files."""
        for path, entry in self.entries(commit).items():
            place = folder / path
            if entry.mode not in (FILE, EXECUTABLE) or place.stat().st_size > _LONGEST_POINTER:
                continue
            digest = lfs_sha256(place.read_bytes())
            if digest is None:
                continue
            stored = self.common / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
            if stored.is_file():
                shutil.copyfile(stored, place)

    def ignored(self, commit: str, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that the `.gitignore` files of the commit exclude; the current files do not count."""
        entries = self.entries(commit)
        rules = {path: entry.id for path, entry in entries.items() if Path(path).name == ".gitignore"}
        names = b"".join(b"./" + os.fsencode(path) + b"\0" for path in sorted(paths))  # a name may start with a colon
        if not rules or not names:
            return frozenset()
        contents = self.objects(rules.values(), kind="blob")
        with tempfile.TemporaryDirectory() as folder:
            for path, id in rules.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_bytes(contents[id])
            answer = self.git("check-ignore", "--no-index", "-z", "--stdin", tree=Path(folder), stdin=names)
        return frozenset(os.fsdecode(path[2:]) for path in answer.split(b"\0") if path)


@contextlib.contextmanager
def open_repository(root: Path) -> Iterator[Repository]:
    """Open the repository whose top folder is `root`; refuse a project in a subfolder of its repository."""
    top, common = top_and_common(root)
    if top != root.resolve():
        raise Refused(
            f"{root} is inside the git repository {top}, not its top",
            hint="a study needs its own repository: put rlx.toml at the top, or git init here",
        )
    with tempfile.TemporaryDirectory(prefix="rlx-git-") as folder:
        object_format = external_programs.git_bytes("rev-parse", "--show-object-format", folder=common)
        _make_git_folder(Path(folder), has_long_ids=b"sha256" in object_format)
        alternates = Path(folder) / "objects" / "info" / "alternates"
        alternates.write_bytes(os.fsencode(common / "objects") + b"\n")
        yield Repository(top, common, Path(folder))


def empty_tree(folder: Path) -> Repository:
    """Make a repository without any object in an empty folder."""
    _make_git_folder(folder, has_long_ids=False)
    return Repository(folder, folder, folder)


def top_and_common(folder: Path) -> tuple[Path, Path]:
    """Return the top of the repository around a folder and the git folder that all its worktrees share."""
    try:
        answer = external_programs.git_bytes(
            "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", folder=folder
        )
    except RlxError as error:
        if error.hint:  # git itself is missing
            raise
        is_bare = external_programs.git("rev-parse", "--is-bare-repository", folder=folder)
        if is_bare is not None and is_bare.strip() == "true":
            message = f"{folder} is a bare git repository, without files"
            raise Refused(message, hint="git config core.bare false") from None
        message = f"{folder} is not in a git repository ({error.message})"
        raise Refused(message, hint="git init && git add -A && git commit") from None
    top, common = os.fsdecode(answer).splitlines()[:2]
    return Path(top).resolve(), Path(common)


def _make_git_folder(folder: Path, *, has_long_ids: bool) -> None:
    """Make a git folder without hooks, filters and settings."""
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "info").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    config = (
        f"[core]\n\trepositoryformatversion = {has_long_ids:d}\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n"
        "\tautocrlf = false\n\thooksPath = /dev/null\n\tfsmonitor = false\n"
    )
    if has_long_ids:
        config += "[extensions]\n\tobjectformat = sha256\n"
    (folder / "config").write_text(config)
    (folder / "info" / "attributes").write_text(_AS_STORED)  # stronger than every .gitattributes


def object_id(content: bytes, *, kind: str = "blob", like: str) -> str:
    """Return git's id of an object, with the same kind of hash as the id `like`."""
    digest = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"%s %d\0" % (kind.encode(), len(content)))
    digest.update(content)
    return digest.hexdigest()


def lfs_sha256(content: bytes) -> str | None:
    """Return the sha256 that a Git LFS pointer names; None for anything else."""
    if len(content) > _LONGEST_POINTER:
        return None
    match = _POINTER.fullmatch(content)
    return match and match[1].decode()


def _tree_entries(content: bytes, *, bytes_in_id: int) -> Iterator[tuple[str, TreeEntry]]:
    at = 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 1 + bytes_in_id
        mode = mode.replace(b"100664", b"100644")  # an old spelling
        yield os.fsdecode(name), TreeEntry(mode.decode(), content[end + 1 : at].hex())
