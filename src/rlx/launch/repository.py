"""A git repository read for what its objects say: no hook, filter, attribute, replacement or setting of it has a say.

A bare folder of our own borrows the repository's objects, so that nothing else of it is looked at. Every tree is
checked against its hash on the way from the commit, and so is every file.
What is not covered: files that only a filter can make (git-crypt) stay as they are stored, and so do line ends; only
Git LFS pointers are followed, to the files that were fetched. Submodules are empty folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlx import tools
from rlx.errors import EvidenceInvalid, NotFound, Refused, RlxError

FILE, EXECUTABLE, LINK, MODULE, FOLDER = "100644", "100755", "120000", "160000", "40000"
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_POINTER = re.compile(rb"version https://git-lfs[^\n]*\noid sha256:([0-9a-f]{64})\nsize (\d+)\n")
_LONGEST_POINTER = 1024
_AS_STORED = "* -text -filter -ident !eol !working-tree-encoding\n"
_NO_FILES = "must be run in a work tree"
QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
"""Options for commands that must run in the repository itself."""


@dataclass(frozen=True)
class Entry:
    """What a commit has at a path: git's mode and the object's id."""

    mode: str
    id: str


@dataclass(frozen=True)
class Repository:
    """A repository's objects, seen through a folder of our own (`git_dir`)."""

    top: Path
    common: Path
    git_dir: Path

    def git(self, *arguments: str, tree: Path | None = None, index: Path | None = None, stdin: bytes = b"") -> bytes:
        """Run git on the objects alone; `tree` is a folder to work in, `index` the index to use."""
        environment = {**_own_environment(), "GIT_DIR": str(self.git_dir)}
        if tree is not None:
            environment["GIT_WORK_TREE"] = str(tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        fine = (0, 1) if arguments[0] == "check-ignore" else (0,)
        return tools.git_bytes(*arguments, folder=tree or self.git_dir, environment=environment, stdin=stdin, fine=fine)

    def entries(self, commit: str) -> dict[str, Entry]:
        """Return every file of a commit by its path."""
        found: dict[str, Entry] = {}
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
                        found[path] = entry
            level = below
        return found

    def _tree_of(self, commit: str) -> str:
        if not _ID.fullmatch(commit):
            raise ValueError(f"{commit!r} is no full commit id")
        content = self.objects([commit], kind="commit")[commit]
        return content.split(b"\n", 1)[0].removeprefix(b"tree ").decode()

    def objects(self, ids: Iterable[str], *, kind: str) -> dict[str, bytes]:
        """Return objects by their ids, each checked against its id."""
        wanted = list(dict.fromkeys(ids))
        output = self.git("cat-file", "--batch", stdin="".join(f"{one}\n" for one in wanted).encode())
        found: dict[str, bytes] = {}
        at = 0
        for wish in wanted:
            end = output.index(b"\n", at)
            words = output[at:end].decode().split()
            if len(words) != 3:
                raise NotFound(f"the repository {self.top} has no object {wish}", hint="fetch it: git fetch --all")
            content = output[end + 1 : end + 1 + int(words[2])]
            at = end + len(content) + 2
            if words[1] != kind or object_id(content, kind=kind, like=wish) != wish:
                raise EvidenceInvalid(f"object {wish} of {self.top} is not what its id says", hint="git fsck")
            found[wish] = content
        return found

    def check_out(self, commit: str, folder: Path, *, index: Path) -> None:
        """Write a commit's files into a folder, byte for byte, and an index that knows them."""
        self._tree_of(commit)
        self.git("read-tree", commit, tree=folder, index=index)
        self.git("checkout-index", "--all", "--force", "--index", "--quiet", tree=folder, index=index)
        self._follow_pointers(commit, folder)

    def _follow_pointers(self, commit: str, folder: Path) -> None:
        """Put fetched files in the place of their Git LFS pointers."""
        for path, entry in self.entries(commit).items():
            place = folder / path
            if entry.mode not in (FILE, EXECUTABLE) or place.stat().st_size > _LONGEST_POINTER:
                continue
            digest = pointed_at(place.read_bytes())
            stored = self.common / "lfs" / "objects" / digest[:2] / digest[2:4] / digest if digest else None
            if stored and stored.is_file():
                shutil.copyfile(stored, place)

    def ignored(self, commit: str, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that the commit's own `.gitignore` files leave out, whatever they say now."""
        listed = sorted(paths)
        rules = {path: one.id for path, one in self.entries(commit).items() if Path(path).name == ".gitignore"}
        if not rules or not listed:
            return frozenset()
        contents = self.objects(rules.values(), kind="blob")
        with tempfile.TemporaryDirectory() as folder:
            for path, one in rules.items():
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_bytes(contents[one])
            asked = b"".join(b"./" + os.fsencode(path) + b"\0" for path in listed)  # a name may begin with a colon
            answer = self.git("check-ignore", "--no-index", "-z", "--stdin", tree=Path(folder), stdin=asked)
        return frozenset(os.fsdecode(path[2:]) for path in answer.split(b"\0") if path)


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Repository]:
    """Open the repository whose top is `root`; a project below the top of its repository is refused."""
    top, common = top_and_common(root)
    if top != root.resolve():
        raise Refused(
            f"{root} is inside the git repository {top}, not its top",
            hint="a study needs a repository of its own: put rlx.toml at the top, or git init here",
        )
    with tempfile.TemporaryDirectory(prefix="rlx-git-") as folder:
        long_ids = b"sha256" in tools.git_bytes("rev-parse", "--show-object-format", folder=common)
        _furnish(Path(folder), long_ids=long_ids)
        alternates = Path(folder) / "objects" / "info" / "alternates"
        alternates.write_bytes(os.fsencode(common / "objects") + b"\n")
        yield Repository(top, common, Path(folder))


def empty(folder: Path) -> Repository:
    """Make a repository without any object in an empty folder."""
    _furnish(folder, long_ids=False)
    return Repository(folder, folder, folder)


def top_and_common(folder: Path) -> tuple[Path, Path]:
    """Return the top of the repository around a folder and the git folder that all its worktrees share."""
    try:
        answer = tools.git_bytes(
            "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", folder=folder
        )
    except RlxError as error:
        raise _no_repository(folder, error) from None
    top, common = os.fsdecode(answer).splitlines()[:2]
    return Path(top).resolve(), Path(common)


def _no_repository(folder: Path, error: RlxError) -> RlxError:
    """Return why there is no repository to work in, with what helps: git itself, its files, or a repository."""
    if error.hint:
        return error
    if _NO_FILES in error.message:
        return Refused(f"{folder} is a bare git repository, without files", hint="git config core.bare false")
    return Refused(
        f"{folder} is not in a git repository ({error.message})", hint="git init && git add -A && git commit"
    )


def _furnish(folder: Path, *, long_ids: bool) -> None:
    """Make a git folder in which nothing has a say."""
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "info").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    extension = "[extensions]\n\tobjectformat = sha256\n" if long_ids else ""
    version = 1 if long_ids else 0
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n"
        f"\tautocrlf = false\n\thooksPath = /dev/null\n\tfsmonitor = false\n{extension}"
    )
    (folder / "info" / "attributes").write_text(_AS_STORED)  # wins over every .gitattributes


def _own_environment() -> Mapping[str, str]:
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def object_id(content: bytes, *, kind: str = "blob", like: str) -> str:
    """Return git's id of an object, of the kind of hash that `like` is."""
    digest = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"%s %d\0" % (kind.encode(), len(content)))
    digest.update(content)
    return digest.hexdigest()


def pointed_at(content: bytes) -> str | None:
    """Return the sha256 that a Git LFS pointer names; None for anything else."""
    match = _POINTER.fullmatch(content) if len(content) <= _LONGEST_POINTER else None
    return match[1].decode() if match else None


def _tree_entries(content: bytes, *, bytes_in_id: int) -> Iterator[tuple[str, Entry]]:
    at = 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 1 + bytes_in_id
        word = FILE if mode == b"100664" else mode.decode()  # an old spelling
        yield os.fsdecode(name), Entry(word, content[end + 1 : at].hex())
