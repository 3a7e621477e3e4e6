"""Worktrees are made whole or not at all, and their difference is read from the files, whatever lies in them."""

from __future__ import annotations

import os
import shutil
import signal
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rlx import external_programs, files
from rlx.errors import EvidenceInvalid, NotFound, Refused, RlxError
from rlx.launch.git import worktree
from rlx.launch.git.worktree import (
    add,
    changed_paths,
    diff,
    diff_sha256,
    head_commit,
    patch_text,
    remove,
    snapshot,
    write_tree,
)


def git(root: Path, *words: str) -> str:
    author = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    return external_programs.git_bytes(*words, folder=root, environment=author).decode()


def commit(root: Path, message: str = "work") -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)
    return head_commit(root)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with some code, a link, a script and an ignore file."""
    root = tmp_path / "a project"
    (root / "pkg").mkdir(parents=True)
    git(root, "init", "--quiet")
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "reward.py").write_text("WEIGHT = 1.0\n")
    (root / "train.sh").write_text("#!/bin/sh\n")
    (root / "train.sh").chmod(0o755)
    (root / "link").symlink_to("pkg/reward.py")
    (root / ".gitignore").write_text("*.so\n__pycache__/\noutputs/\n*.log\nlocal.yaml\n")
    (root / ".rlx" / "worktrees").mkdir(parents=True)
    (root / ".git" / "info" / "exclude").write_text(".rlx/\n")
    commit(root)
    return root


@pytest.fixture
def tree(root: Path) -> Path:
    folder = root / ".rlx" / "worktrees" / "c001"
    add(root, folder, head_commit(root), branch="rlx/s/c001")
    return folder


def told(tree: Path, root: Path) -> dict[str, tuple[bytes | None, bytes | None]]:
    return {change.path: (change.before, change.after) for change in diff(tree, head_commit(root))}


def test_a_worktree_has_the_commits_files_and_no_difference(tree: Path, root: Path) -> None:
    assert (tree / "pkg" / "reward.py").read_text() == "WEIGHT = 1.0\n"
    assert os.readlink(tree / "link") == "pkg/reward.py"
    assert os.access(tree / "train.sh", os.X_OK)
    assert diff(tree, head_commit(root)) == ()
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "branch", "--show-current").strip() == "rlx/s/c001"
    assert git(root, "branch", "--show-current").strip() in ("main", "master")


def test_adding_again_keeps_the_work_in_it_and_another_start_is_refused(tree: Path, root: Path) -> None:
    first = head_commit(root)
    (tree / "pkg" / "reward.py").write_text("WEIGHT = 2.0\n")
    add(root, tree, first, branch="rlx/s/c001")
    assert (tree / "pkg" / "reward.py").read_text() == "WEIGHT = 2.0\n"
    (root / "new.py").write_text("")
    with pytest.raises(Refused, match="made from another commit"):
        add(root, tree, commit(root), branch="rlx/s/c001")
    with pytest.raises(Refused, match="made from another patch"):
        add(root, tree, first, branch="rlx/s/c001", patch=b"x")


def test_every_kind_of_change_is_told(tree: Path, root: Path) -> None:
    (tree / "pkg" / "reward.py").write_text("WEIGHT = 3.0\n")
    (tree / "train.sh").chmod(0o644)
    (tree / "link").unlink()
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "pkg" / "__init__.py").unlink()
    (tree / "new.py").write_text("x = 1\n")
    os.mkfifo(tree / "pipe")
    changes = {change.path: change for change in diff(tree, head_commit(root))}
    assert set(changes) == {"pkg/reward.py", "train.sh", "link", "pkg/__init__.py", "new.py", "pipe"}
    assert (changes["pkg/reward.py"].before, changes["pkg/reward.py"].after) == (b"WEIGHT = 1.0\n", b"WEIGHT = 3.0\n")
    assert (changes["train.sh"].mode_before, changes["train.sh"].mode_after) == ("100755", "100644")
    assert (changes["link"].before, changes["link"].after) == (b"pkg/reward.py", b"/etc/passwd")
    assert changes["link"].mode_after == "120000"
    assert changes["pkg/__init__.py"].after is None
    assert changes["new.py"].before is None
    assert changes["pipe"].mode_after == "other"


def test_a_link_in_the_place_of_a_folder_is_told_and_not_followed(tree: Path, root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    os.rename(tree / "pkg", elsewhere)
    (tree / "pkg").symlink_to(elsewhere)
    changes = {change.path: change.mode_after for change in diff(tree, head_commit(root))}
    assert changes == {"pkg": "120000", "pkg/__init__.py": None, "pkg/reward.py": None}


def test_a_rename_is_a_deletion_and_an_addition_that_names_its_source(tree: Path, root: Path) -> None:
    os.rename(tree / "pkg" / "reward.py", tree / "pkg" / "prize.py")
    prize, reward = diff(tree, head_commit(root))
    assert (prize.path, prize.before, prize.renamed_from) == ("pkg/prize.py", None, "pkg/reward.py")
    assert (reward.path, reward.after) == ("pkg/reward.py", None)


def test_ignored_files_are_told_where_they_could_be_imported_run_or_read(tree: Path, root: Path) -> None:
    (tree / "pkg" / "reward.so").write_bytes(b"\x7fELF")
    (tree / "pkg" / "local.yaml").write_text("weight: 9\n")
    (tree / "outputs").mkdir()
    for name in ("scores.npz", "config.yaml", "notes.txt"):
        (tree / "outputs" / name).write_text("x")
    (tree / "outputs" / "hidden.py").write_text("")
    (tree / "outputs" / "away").symlink_to("/")
    (tree / "outputs" / "tool").write_text("")
    (tree / "outputs" / "tool").chmod(0o755)
    (tree / "pkg" / "train.log").write_text("")
    (tree / "pkg" / "__pycache__").mkdir()
    (tree / "pkg" / "__pycache__" / "reward.cpython-311.pyc").write_bytes(b"")
    (tree / "pkg" / "reward.pyc").write_bytes(b"")
    assert set(told(tree, root)) == {
        "pkg/reward.so", "pkg/local.yaml", "pkg/reward.pyc", "outputs/hidden.py", "outputs/away", "outputs/tool",
    }  # fmt: skip


def test_the_candidates_own_ignore_file_hides_nothing(tree: Path, root: Path) -> None:
    (tree / ".gitignore").write_text("*\n")
    (tree / "pkg" / ".gitignore").write_text("*\n")
    (tree / "pkg" / "extra.txt").write_text("")
    assert set(told(tree, root)) == {".gitignore", "pkg/.gitignore", "pkg/extra.txt"}


def test_attributes_filters_hooks_and_settings_of_the_worktree_have_no_say(tree: Path, root: Path) -> None:
    trap = root.parent / "sprung"
    for name in ("post-checkout", "reference-transaction", "fsmonitor"):
        hook = root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{trap}'\n")
        hook.chmod(0o755)
    git(root, "config", "filter.evil.clean", f"touch '{trap}'; git show HEAD:pkg/reward.py")
    git(root, "config", "filter.evil.smudge", f"touch '{trap}'; cat")
    git(root, "config", "core.fsmonitor", str(root / ".git/hooks/fsmonitor"))
    (tree / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    (root / ".git" / "info" / "attributes").write_text("*.py filter=evil\n")
    (tree / "pkg" / "reward.py").write_text("WEIGHT = 1e9\n")
    trap.unlink(missing_ok=True)
    assert set(told(tree, root)) == {".gitattributes", "pkg/reward.py"}
    assert b"WEIGHT = 1e9" in patch_text(diff(tree, head_commit(root)))
    add(root, tree.with_name("c002"), head_commit(root), branch="rlx/s/c002")
    assert (tree.with_name("c002") / "pkg" / "reward.py").read_text() == "WEIGHT = 1.0\n"
    assert not trap.exists()


def test_a_git_file_that_points_elsewhere_changes_nothing_and_is_put_right(tree: Path, root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    (tree / ".git").write_text(f"gitdir: {other / '.git'}\n")
    (tree / "pkg" / "reward.py").write_text("")
    assert set(told(tree, root)) == {"pkg/reward.py"}
    add(root, tree, head_commit(root), branch="rlx/s/c001")
    assert git(tree, "status", "--porcelain").split() == ["M", "pkg/reward.py"]


def test_replaced_and_altered_objects_are_not_believed(tree: Path, root: Path) -> None:
    pinned = head_commit(root)
    blob = git(root, "rev-parse", "HEAD:pkg/reward.py").strip()
    other = (
        external_programs.git_bytes("hash-object", "-w", "--stdin", folder=root, stdin=b"WEIGHT = 9.0\n")
        .decode()
        .strip()
    )
    git(root, "replace", blob, other)
    (tree / "pkg" / "reward.py").write_text("WEIGHT = 9.0\n")
    assert set(told(tree, root)) == {"pkg/reward.py"}
    stored, forged = (root / ".git" / "objects" / name[:2] / name[2:] for name in (blob, other))
    stored.chmod(0o644)
    stored.write_bytes(forged.read_bytes())
    with pytest.raises(EvidenceInvalid, match="does not match its id"):
        diff(tree, pinned)
    with pytest.raises((EvidenceInvalid, RlxError)):
        write_tree(root, pinned, root.parent / "export")
    assert not (root.parent / "export").exists()


def test_files_stay_as_they_are_stored_whatever_the_attributes_say(root: Path) -> None:
    (root / ".gitattributes").write_text("*.bat eol=crlf\n*.txt ident\n")
    (root / "run.bat").write_text("echo\n")
    (root / "id.txt").write_text("$Id$\n")
    pinned = commit(root)
    folder = root / ".rlx" / "worktrees" / "c003"
    add(root, folder, pinned)
    assert (folder / "run.bat").read_bytes() == b"echo\n"
    assert (folder / "id.txt").read_bytes() == b"$Id$\n"
    assert diff(folder, pinned) == ()


def test_pointers_of_git_lfs_are_followed_to_what_was_fetched(root: Path) -> None:
    mesh = b"\x00mesh" * 1000
    digest = files.sha256(mesh)
    (root / "arm.stl").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(mesh)}\n"
    )
    pinned = commit(root)
    stored = root / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    stored.parent.mkdir(parents=True)
    stored.write_bytes(mesh)
    folder = root / ".rlx" / "worktrees" / "c004"
    add(root, folder, pinned)
    assert (folder / "arm.stl").read_bytes() == mesh
    assert diff(folder, pinned) == ()
    (folder / "arm.stl").write_bytes(mesh[:-1] + b"!")
    assert [change.path for change in diff(folder, pinned)] == ["arm.stl"]


def test_large_files_are_compared_without_being_held(tree: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlx.launch.git.tree_diff.LARGEST", 8)
    assert diff(tree, head_commit(root)) == ()
    (tree / "pkg" / "reward.py").write_text("WEIGHT = 2.0\n")
    (change,) = diff(tree, head_commit(root))
    assert change.after is not None
    assert change.after.startswith(b"13 bytes, sha256 ")
    with pytest.raises(Refused, match=r"pkg/reward.py' is larger than 0 MB: it cannot be part of a patch"):
        patch_text(diff(tree, head_commit(root)))


def test_the_hash_of_a_difference_knows_content_mode_and_path_and_not_their_order(tree: Path, root: Path) -> None:
    nothing = diff_sha256(diff(tree, head_commit(root)))
    (tree / "a.py").write_text("1")
    one = diff(tree, head_commit(root))
    os.rename(tree / "a.py", tree / "b.py")
    other = diff(tree, head_commit(root))
    (tree / "b.py").chmod(0o755)
    assert len({nothing, diff_sha256(one), diff_sha256(other), diff_sha256(diff(tree, head_commit(root)))}) == 4
    (tree / "c.py").write_text("2")
    both = diff(tree, head_commit(root))
    assert diff_sha256(both) == diff_sha256(reversed(both))


def test_a_patch_carries_every_change_into_a_new_worktree(tree: Path, root: Path) -> None:
    (tree / "pkg" / "reward.py").write_text("WEIGHT = 3.0\r\nno newline")
    (tree / "weights.bin").write_bytes(bytes(range(256)))
    (tree / "train.sh").chmod(0o644)
    (tree / "link").unlink()
    (tree / "pkg" / "__init__.py").unlink()
    (tree / "déjà vu.txt").write_text("x")
    (tree / "away").symlink_to("pkg")
    patch = patch_text(diff(tree, head_commit(root)))
    folder = tree.with_name("c002")
    add(root, folder, head_commit(root), branch="rlx/s/c002", patch=patch)
    assert diff_sha256(diff(folder, head_commit(root))) == diff_sha256(diff(tree, head_commit(root)))
    assert patch_text(diff(folder, head_commit(root))) == patch
    assert patch_text(diff(tree, head_commit(root))) == patch


def test_a_patch_that_leaves_the_worktree_is_refused_and_leaves_nothing_whole(root: Path) -> None:
    patch = b"--- /dev/null\n+++ b/../escape.py\n@@ -0,0 +1 @@\n+x\n"
    folder = root / ".rlx" / "worktrees" / "c001"
    with pytest.raises(RlxError, match="git apply failed"):
        add(root, folder, head_commit(root), branch="rlx/s/c001", patch=patch)
    assert not (root / ".rlx" / "worktrees" / "escape.py").exists()
    add(root, folder, head_commit(root), branch="rlx/s/c001")
    assert diff(folder, head_commit(root)) == ()


def test_a_removed_worktree_leaves_no_trace(tree: Path, root: Path) -> None:
    remove(tree)
    assert not tree.exists()
    assert str(tree) not in git(root, "worktree", "list")
    assert git(root, "branch", "--list", "rlx/*") == ""
    remove(tree)
    assert [path.name for path in tree.parent.iterdir()] == [".c001.lock"]


def test_a_moved_project_finds_its_worktrees_again(tree: Path, root: Path) -> None:
    (tree / "pkg" / "reward.py").write_text("")
    moved = root.with_name("moved")
    os.rename(root, moved)
    there = moved / ".rlx" / "worktrees" / "c001"
    add(moved, there, head_commit(moved), branch="rlx/s/c001")
    assert git(there, "status", "--porcelain").split() == ["M", "pkg/reward.py"]
    assert [change.path for change in diff(there, head_commit(moved))] == ["pkg/reward.py"]


def test_caches_of_compiled_python_are_swept(tree: Path) -> None:
    (tree / "pkg" / "__pycache__").mkdir()
    (tree / "pkg" / "__pycache__" / "reward.cpython-311.pyc").write_bytes(b"forged")
    worktree.remove_bytecode(tree)
    assert not list(tree.rglob("*.pyc"))


def test_a_snapshot_holds_the_dirty_tree_and_touches_neither_branch_nor_index(root: Path) -> None:
    before = (root / ".git" / "index").read_bytes(), head_commit(root), git(root, "branch", "--list")
    assert snapshot(root) == head_commit(root)
    (root / "pkg" / "reward.py").write_text("WEIGHT = 5.0\n")
    (root / "untracked.py").write_text("")
    (root / "pkg" / "cached.so").write_bytes(b"")
    (root / "runs" / "some_001").mkdir(parents=True)
    (root / "runs" / "some_001" / "metadata.json").write_text("{}")
    assert set(changed_paths(root)) == {"pkg/reward.py", "untracked.py"}
    made = snapshot(root)
    assert snapshot(root) == made != head_commit(root)
    assert (git(root, "rev-parse", f"{made}^").strip(), git(root, "branch", "--list")) == (head_commit(root), before[2])
    assert git(root, "ls-files").split("\n").count("untracked.py") == 0
    assert git(root, "diff", "--name-only", "HEAD", made).split() == ["pkg/reward.py", "untracked.py"]
    assert git(root, "for-each-ref", "refs/rlx").split()[0] == made
    folder = root / ".rlx" / "worktrees" / "c009"
    add(root, folder, made)
    assert (folder / "pkg" / "reward.py").read_text() == "WEIGHT = 5.0\n"


def test_a_tree_is_exported_whole_and_without_a_repository(root: Path, tmp_path: Path) -> None:
    write_tree(root, head_commit(root), tmp_path / "copy" / "tree")
    copy = tmp_path / "copy" / "tree"
    assert sorted(path.name for path in copy.iterdir()) == [".gitignore", "link", "pkg", "train.sh"]
    assert os.listdir(copy.parent) == ["tree"]
    with pytest.raises(Refused, match="already exists"):
        write_tree(root, head_commit(root), copy)
    with pytest.raises(NotFound):
        write_tree(root, "0" * 40, tmp_path / "none")


def test_a_project_without_a_repository_of_its_own_is_refused(root: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    with pytest.raises(Refused, match="not in a git repository"):
        head_commit(alone)
    with pytest.raises(Refused, match="not its top"):
        diff(root / "pkg", head_commit(root), root=root / "pkg")
    git(alone, "init", "--quiet")
    with pytest.raises(Refused, match="no commit yet"):
        head_commit(alone)


# The N-th git that `add` starts: its parent is killed before it, or it outlives its parent, or both are killed in it.
SHIM = """#!/bin/sh
n=$(($(cat "$COUNT" 2>/dev/null || echo 0) + 1)); echo $n > "$COUNT"
[ $n = "$AT" ] || exec "$GIT" "$@"
case $HOW in
  before) kill -9 $PPID ;;
  orphan) kill -9 $PPID; exec "$GIT" "$@" ;;
  *) strace -f -qq -o /dev/null -e trace=$CALLS -e inject=$CALLS:signal=KILL:when=$HOW "$GIT" "$@"; kill -9 $PPID ;;
esac
"""
CALLS = "mkdir,openat,write,rename,link,unlink,clone,clone3,vfork,symlink"


def forked(action: Callable[[], object], environment: Mapping[str, str]) -> int:
    """Do something in a fork of this process, with other variables, and return its exit code."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # a fork beside threads
        child = os.fork()
    if not child:
        try:
            os.environ.update(environment)
            action()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("how", ["before", "orphan", "12", "50"])
def test_a_kill_at_any_git_of_an_add_is_repaired_by_the_next_add(root: Path, tmp_path: Path, how: str) -> None:
    """Kill an `add` at its gits: at every second one, at the others with another `how`; RLX_SWEEP=full: at all."""
    for number in range(12):
        (root / "pkg" / f"module_{number}.py").write_text(f"x = {number}\n" * 50)
    pinned = commit(root)
    folder = root / ".rlx" / "worktrees" / "k"
    add(root, folder, pinned)
    (folder / "pkg" / "reward.py").write_text("WEIGHT = 7.0\n")
    patch = patch_text(diff(folder, pinned))
    remove(folder)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(SHIM)
    (tmp_path / "bin" / "git").chmod(0o755)
    count = tmp_path / "count"
    place = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "COUNT": str(count),
             "GIT": str(shutil.which("git")), "HOW": how, "CALLS": CALLS}  # fmt: skip

    def add_patched() -> None:
        add(root, folder, pinned, branch="rlx/s/k", patch=patch)

    assert forked(add_patched, {**place, "AT": "0"}) == 0
    remove(folder)
    gits = range(1, int(count.read_text()) + 1)
    assert len(gits) >= 10
    if os.environ.get("RLX_SWEEP") != "full":
        gits = gits[how in ("orphan", "50") :: 2]
    for number in gits:
        count.unlink()
        assert forked(add_patched, {**place, "AT": str(number)}) == -signal.SIGKILL
        add_patched()
        assert set(told(folder, root)) == {"pkg/reward.py"}
        assert git(folder, "status", "--porcelain").split() == ["M", "pkg/reward.py"]
        assert len(git(root, "worktree", "list").splitlines()) == 2
        remove(folder)
    assert git(root, "branch", "--list", "rlx/*") == ""
    assert external_programs.git("fsck", "--strict", folder=root) is not None


def test_a_bare_repository_says_how_it_gets_files(root: Path) -> None:
    git(root, "config", "core.bare", "true")
    with pytest.raises(Refused, match="bare git repository") as caught:
        head_commit(root)
    assert caught.value.hint == "git config core.bare false"


def test_without_git_the_hint_is_to_install_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root))
    with pytest.raises(RlxError, match="no git was found") as caught:
        head_commit(root)
    assert caught.value.hint == "install git"
