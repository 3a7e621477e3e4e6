"""What the hosts' hooks need to know of a study, as plain JSON: `hook.json`, derived, written at approve and amend.

The reader is `hosts/plugin/hooks/gate.py`, which has the standard library only and a few milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from rlx import files
from rlx.study.contract import Contract
from rlx.study.ledger import Ledger
from rlx.study.task import Task

SCHEMA = 1
FILE = "hook.json"
OPEN = ("**/*.md", "**/*.txt", "*.json", "notes/*")
"""What may be written in the project itself while a study is approved: notes and candidate documents."""
_ENTRY_SUFFIXES = (".py", ".sh")
_STARTERS = frozenset({"python", "python3", "bash", "sh", "torchrun", "accelerate", "uv", "poetry", "env"})


class _Approval(Protocol):
    @property
    def contract(self) -> str: ...
    @property
    def expires(self) -> float | None: ...


class _State(Protocol):
    @property
    def contract(self) -> str | None: ...
    @property
    def approval(self) -> _Approval | None: ...


def hook_view(task: Task, contract: Contract, state: _State) -> dict[str, Any]:
    """Return the content of `hook.json`: paths are relative to the project, regions stand for their whole file."""
    approval = state.approval
    return {
        "schema": SCHEMA,
        "approved": approval is not None and approval.contract == state.contract,
        "expires": approval.expires if approval else None,
        "worktrees": f".rlx/tasks/{contract.task}/studies/{contract.study}/worktrees",
        "train": list(dict.fromkeys(_entries(task.adapter.train))),
        "surface": _files(_surface(task, contract)),
        "protected": _files(_protected(task, contract)),
        "open": list(OPEN),
    }


def _surface(task: Task, contract: Contract) -> Iterator[str]:
    """Yield the paths that candidates may change."""
    if contract.scope is None:
        return
    yield from contract.scope.paths
    for name in contract.scope.surfaces:
        if name in task.surfaces:
            yield from task.surfaces[name].paths


def _protected(task: Task, contract: Contract) -> Iterator[str]:
    """Yield the paths that nobody changes: the evaluator, and what the contract forbids."""
    if "evaluator" in task.surfaces:
        yield from task.surfaces["evaluator"].paths
    yield from _entries(task.adapter.eval)
    if contract.scope is not None:
        yield from contract.scope.forbidden


def _files(places: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(place.partition("::")[0] for place in places))


def _entries(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield what a command template starts: files, a module (also as its file), else the program itself."""
    found = False
    for before, word in zip(("", *argv), argv, strict=False):
        if before == "-m":
            yield from (word, f"{word.replace('.', '/')}.py")
            found = True
        elif word.endswith(_ENTRY_SUFFIXES) and "{" not in word:
            yield str(PurePosixPath(word))
            found = True
    if argv and not found and argv[0] not in _STARTERS:
        yield PurePosixPath(argv[0]).name


def approved_study(root: Path, *, now: float | None = None) -> str | None:
    """Return the name of the project's active study if it is approved, as hooks see it: by `hook.json`.

    A view that is gone counts as approved where the ledger has an approval.
    """
    active = _read(root / ".rlx" / "active.json")
    task, study = active.get("task"), active.get("study")
    if not task or not study:
        return None
    folder = root / ".rlx" / "tasks" / str(task) / "studies" / str(study)
    view = _read(folder / FILE)
    if not view and _was_approved(folder):
        return str(study)
    expires = view.get("expires")
    is_live = view.get("approved") is True and (expires is None or (now or time.time()) < float(expires))
    return str(study) if is_live else None


def _was_approved(folder: Path) -> bool:
    return any(event.kind == "approved" for event in Ledger(folder / "ledger.jsonl").events())


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    document = files.read_json(path)
    return document if isinstance(document, dict) else {}
