"""Check the pinned baseline commit: files that differ from the task's, untracked files, and empty submodules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rlx import external_programs
from rlx.number_format import counted
from rlx.study.contract.contract import Contract
from rlx.study.contract.fixes import amend
from rlx.study.task import task as tasks
from rlx.study.task.task import Task

# A snapshot with more untracked bytes than this probably holds data, not code.
LARGE_BYTES = 50_000_000
SNAPSHOTS = "refs/rlx/snapshots"
SUBMODULE_MODE = "160000"
# The start of git's modes for plain files. Links, folders and submodules have other modes.
FILE_MODE_PREFIX = "100"


def differing_files(task: Task, commit: str, root: Path) -> tuple[str, ...]:
    """Return the files that the task was read from and that the commit lacks or holds with other content.

    Files that git ignores do not count. A stale task has none, because it has to be refreshed first.
    """
    names = tuple(dict.fromkeys(fact.file for fact in task.facts))
    if not names or any(tasks.stale_facts(task, root)):
        return ()
    hashes = (external_programs.git("hash-object", "--", *names, folder=root) or "").split()
    committed = {}
    for row in _git_rows(root, "ls-tree", "-z", commit, "--", *names):
        about, _, name = row.partition("\t")
        mode, _, committed_hash = about.split()
        committed[name] = (mode, committed_hash)
    not_ignored = _git_rows(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names)
    differing = []
    for name, current_hash in zip(names, hashes, strict=False):
        if name in committed:
            mode, committed_hash = committed[name]
            is_different = mode.startswith(FILE_MODE_PREFIX) and committed_hash != current_hash
        else:
            is_different = name in not_ignored
        if is_different:
            differing.append(name)
    return tuple(differing)


def _git_rows(root: Path, *words: str) -> list[str]:
    """Run a git command with `-z` and return its rows; none if it fails."""
    output = external_programs.git(*words, folder=root) or ""
    return [row for row in output.split("\0") if row]


def notes(contract: Contract, task: Task, root: Path) -> Iterator[str]:
    """Yield what a person should know about the pinned commit."""
    if contract.baseline is not None:
        yield from _untracked_note(contract.baseline.commit, root)
        yield from _submodule_note(contract, contract.baseline.commit, task, root)


def _untracked_note(commit: str, root: Path) -> Iterator[str]:
    """Yield how many untracked files a snapshot pins along with the code."""
    if external_programs.git("rev-parse", "--verify", "--quiet", f"{SNAPSHOTS}/{commit}", folder=root) is None:
        return
    rows = _git_rows(root, "diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", f"{commit}^", commit)
    blobs = [row.split()[3] for row in rows if row.startswith(":")]
    if not blobs:
        return
    sizes = external_programs.git_bytes(
        "cat-file", "--batch-check=%(objectsize)", folder=root, stdin="\n".join(blobs).encode()
    )
    total = sum(map(int, sizes.split()))
    note = f"the snapshot also pins {counted(len(blobs), 'file')} that git does not track ({total / 1e6:,.1f} MB)"
    if total > LARGE_BYTES:
        note += "; list data files in .gitignore before the next --snapshot"
    yield note


def _submodule_note(contract: Contract, commit: str, task: Task, root: Path) -> Iterator[str]:
    """Yield a warning if the commit has submodules: their folders are empty in jobs."""
    rows = _git_rows(root, "ls-tree", "-r", "-z", commit)
    names = [row.partition("\t")[2] for row in rows if row.startswith(SUBMODULE_MODE)]
    if not names:
        return
    named = ", ".join(f"`{name}`" for name in names)
    note = (
        f"submodules are empty folders in jobs ({named}), so imports from them fail. Copy the code into the repository"
    )
    if task.adapter.kind == "command":
        folder = str(root.resolve() / names[0])
        reads = contract.hardware.reads if contract.hardware else ()
        allow = amend(contract, "hardware.reads", [*reads, folder])
        note += (
            f", or let jobs read the unpinned submodule: {allow}, and put env PYTHONPATH={folder} before the command"
        )
    yield note
