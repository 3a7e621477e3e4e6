"""The content of `hook.json`, which tells an agent's hooks about a study; rlx writes it at every approve and amend.

`hosts/plugin/hooks/gate.py` reads it. It has only the standard library and a few milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from rlx import files
from rlx.study.contract.contract import Contract, Scope
from rlx.study.ledger.ledger import Ledger
from rlx.study.ledger.state import State
from rlx.study.task.task import PathsAndKeys, Task

SCHEMA = 1
FILE = "hook.json"
# The files of the project that may be written while a study is approved: notes and candidate documents.
OPEN = ("**/*.md", "**/*.txt", "*.json", "notes/*")
_ENTRY_SUFFIXES = (".py", ".sh")
_STARTERS = frozenset({"python", "python3", "bash", "sh", "torchrun", "accelerate", "uv", "poetry", "env"})


def hook_content(task: Task, contract: Contract, state: State) -> dict[str, Any]:
    """Return the content of `hook.json`; paths are relative to the project, a region stands for its whole file."""
    approval = state.approval
    scope = contract.scope or Scope()
    surfaces = [task.surfaces[name] for name in scope.surfaces if name in task.surfaces]
    evaluator = task.surfaces.get("evaluator", PathsAndKeys())
    return {
        "schema": SCHEMA,
        "approved": approval is not None and approval.contract == state.contract,
        "expires": approval and approval.expires,
        "worktrees": f".rlx/tasks/{contract.task}/studies/{contract.study}/worktrees",
        "train": list(dict.fromkeys(_entries(task.adapter.train))),
        "surface": _files([*scope.paths, *(path for surface in surfaces for path in surface.paths)]),
        "protected": _files([*evaluator.paths, *_entries(task.adapter.eval), *scope.forbidden]),
        "open": list(OPEN),
    }


def _files(patterns: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(pattern.partition("::")[0] for pattern in patterns))


def _entries(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield what a command starts: script files, a module (also as its file), or else the program itself."""
    has_entry = False
    for before, word in pairwise(("", *argv)):
        if before == "-m":
            yield from (word, f"{word.replace('.', '/')}.py")
            has_entry = True
        elif word.endswith(_ENTRY_SUFFIXES) and "{" not in word:
            yield str(PurePosixPath(word))
            has_entry = True
    if argv and not has_entry and argv[0] not in _STARTERS:
        yield PurePosixPath(argv[0]).name


def approved_study(root: Path, *, now: float | None = None) -> str | None:
    """Return the name of the project's active study if it is approved according to `hook.json`.

    If that file is gone, the study counts as approved if its ledger has an approval.
    """
    active = _read(root / ".rlx" / "active.json")
    task = active.get("task")
    study = active.get("study")
    if not task or not study:
        return None
    folder = root / ".rlx" / "tasks" / str(task) / "studies" / str(study)
    view = _read(folder / FILE)
    if view:
        expires = view.get("expires")
        is_live = expires is None or (now or time.time()) < float(expires)
        is_approved = view.get("approved") is True and is_live
    else:
        is_approved = any(event.kind == "approved" for event in Ledger(folder / "ledger.jsonl").events())
    return str(study) if is_approved else None


def _read(path: Path) -> dict[str, Any]:
    document = files.read_json(path) if path.is_file() else {}
    return document if isinstance(document, dict) else {}
