"""The pinned commit: what it has otherwise than a task was read from, what is in it beside code, what jobs lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rlx import tools
from rlx.figures import counted
from rlx.study import task as tasks
from rlx.study.remedy import amend
from rlx.study.task import Task
from rlx.study.terms import Contract

MUCH_BYTES = 50_000_000
"""What is more than code usually is."""
SNAPSHOTS = "refs/rlx/snapshots"
MODULE = "160000"
PLAIN = "100"
"""How the mode of a file begins, which is neither a link, a folder nor another repository."""


def others(task: Task, commit: str, root: Path) -> tuple[str, ...]:
    """Name the files that a task was read from and that a commit has otherwise, or not at all.

    None where the task is stale, which is mended first, and none that git does not keep.
    """
    names = tuple(dict.fromkeys(fact.file for fact in task.facts))
    if not names or any(tasks.stale(task, root)):
        return ()
    here = (tools.git("hash-object", "--", *names, folder=root) or "").split()
    there = _entries(commit, names, root)
    kept = _kept([name for name in names if name not in there], root)
    return tuple(
        name
        for name, blob in zip(names, here, strict=False)
        if (name in kept if name not in there else there[name][0].startswith(PLAIN) and there[name][1] != blob)
    )


def _entries(commit: str, names: Sequence[str], root: Path) -> dict[str, tuple[str, str]]:
    """Return mode and hash of what a commit has under these names."""
    told = (tools.git("ls-tree", "-z", commit, "--", *names, folder=root) or "").split("\0")
    rows = [row.partition("\t") for row in told if row]
    return {name: (about.split()[0], about.split()[2]) for about, _, name in rows}


def _kept(names: Sequence[str], root: Path) -> frozenset[str]:
    """Return those of the files that git keeps, or would with the next commit: none that are ignored."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
    told = tools.git(*listing, *names, folder=root) if names else None
    return frozenset((told or "").split("\0"))


def notes(contract: Contract, task: Task, root: Path) -> Iterator[str]:
    """Yield what should be known of a pinned commit."""
    if contract.baseline is not None:
        yield from _untracked(contract.baseline.commit, root)
        yield from _modules(contract, contract.baseline.commit, task, root)


def _untracked(commit: str, root: Path) -> Iterator[str]:
    """Yield how much of a snapshot git does not keep otherwise: data that lies about is pinned with the code."""
    if tools.git("rev-parse", "--verify", "--quiet", f"{SNAPSHOTS}/{commit}", folder=root) is None:
        return
    told = tools.git("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", f"{commit}^", commit, folder=root)
    blobs = [row.split()[3] for row in (told or "").split("\0") if row.startswith(":")]
    if not blobs:
        return
    asked = "\n".join(blobs).encode()
    sizes = tools.git_bytes("cat-file", "--batch-check=%(objectsize)", folder=root, stdin=asked).split()
    total = sum(map(int, sizes))
    much = "; name what is no code in .gitignore before the next --snapshot" if total > MUCH_BYTES else ""
    yield f"pinned beyond what git tracks: {counted(len(blobs), 'file')}, {total / 1e6:,.1f} MB{much}"


def _modules(contract: Contract, commit: str, task: Task, root: Path) -> Iterator[str]:
    """Yield that jobs see nothing of other repositories inside this one."""
    rows = (tools.git("ls-tree", "-r", "-z", commit, folder=root) or "").split("\0")
    names = [row.partition("\t")[2] for row in rows if row.startswith(MODULE)]
    if not names:
        return
    place = str(root.resolve() / names[0])
    read = amend(contract, "hardware.reads", [*(contract.hardware.reads if contract.hardware else ()), place])
    by_path = f", or let jobs read it as it lies there, unpinned: {read}, and env PYTHONPATH={place} before the command"
    yield (
        f"submodules are empty folders in jobs ({', '.join(f'`{name}`' for name in names)}): what imports from one "
        f"fails. Copy what is needed into the repository{by_path if task.adapter.kind == 'command' else ''}"
    )
