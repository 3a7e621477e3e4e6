"""How a confirmed change gets into the repository: one patch that git applies, and what trains it from then on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from rlx import files, tools
from rlx.errors import EvidenceInvalid
from rlx.launch import worktree
from rlx.loop import warrant
from rlx.study.changes import keys_of, nested
from rlx.study.recipe import changes_of
from rlx.study.scope import Change
from rlx.study.state import State
from rlx.study.study import Study
from rlx.study.task import Adapter
from rlx.train.backends.command_argv import arguments


@dataclass(frozen=True)
class Handover:
    """What takes a candidate over: the commands, in the order in which they are typed."""

    candidate: str
    commands: tuple[str, ...]


def write(study: Study, state: State) -> Handover | None:
    """Write the patch that takes the incumbent over, beside the report; without an incumbent there is none."""
    for one in study.chain(state.incumbent)[1:] if state.incumbent else ():
        for says in warrant.others(study, state.candidates[one.id]):
            raise EvidenceInvalid(f"{says}: no patch of it was confirmed", hint="put it back as it was")
    patch = _patch(study, state.incumbent) if state.incumbent else b""
    if patch:
        files.write_atomic(study.handover_path, patch)
    else:
        study.handover_path.unlink(missing_ok=True)
    return _handover(study, state.incumbent, is_patched=bool(patch)) if state.incumbent else None


def pending(study: Study, state: State) -> str:
    """Return the command that takes the incumbent over; empty where there is none, or where it was done."""
    if state.incumbent is None or not study.handover_path.is_file():
        return ""
    check = ("apply", "--reverse", "--check", str(study.handover_path))
    return _command(study) if tools.git(*check, folder=study.root) is None else ""


def _command(study: Study) -> str:
    return f"git apply --index {shlex.quote(study.handover_path.relative_to(study.root).as_posix())}"


def _patch(study: Study, identity: str) -> bytes:
    """Return the candidate's code against the baseline and, of a config, a new one that extends it."""
    code, added = study.patch(identity) or b"", _config(study, identity)
    if added is None:
        return code
    path, text = added
    return code + worktree.patch_text([Change(path, None, text.encode(), mode_after="100644")])


def _changes(study: Study, identity: str) -> dict[str, Any]:
    return keys_of(changes_of(study.chain(identity)))


def _config(study: Study, identity: str) -> tuple[str, str] | None:
    """Return path and text of the config that trains a candidate; None where its keys are no config's, or none."""
    below, changes = study.task().adapter.config, _changes(study, identity)
    if below is None or not changes:
        return None
    base = PurePosixPath(below)
    path = base.with_name(f"{base.stem}_{study.name}_{identity}{base.suffix}")
    document = yaml.safe_dump({"extends": base.name, **nested(changes)}, sort_keys=False, allow_unicode=True)
    return path.as_posix(), f"# {identity} of study {study.name}, as it was confirmed.\n{document}"


def _handover(study: Study, identity: str, *, is_patched: bool) -> Handover:
    """Return the commands: the patch, then what trains with it, and what a further study of it begins with."""
    adapter, changes = study.task().adapter, _changes(study, identity)
    patch = (_command(study), f'git commit -m "{identity} of study {study.name}"') if is_patched else ()
    if adapter.config is None:
        return Handover(identity, (*patch, *by_arguments(adapter, changes)))
    config = shlex.quote((_config(study, identity) or (adapter.config, ""))[0])
    task = "" if changes else f"--task {study.task_name}_{study.name}_{identity} "
    trains = f"rlx train {config} --seeds 5"
    return Handover(identity, (*patch, trains, f"rlx study new NAME {task}--config {config}"))


def by_arguments(adapter: Adapter, changes: Mapping[str, Any]) -> list[str]:
    """Return the training command with the changed keys; making them its defaults is the repository's own affair."""
    places = {"seed": "0", "out": "confirmed", **({"steps": str(adapter.steps)} if adapter.steps else {})}
    found = arguments([*adapter.prefix, *adapter.train], places, override=adapter.override, overrides=changes)
    return [shlex.join(found)] if changes else []
