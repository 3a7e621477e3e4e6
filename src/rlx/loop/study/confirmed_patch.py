"""Bring a confirmed change into the repository: one patch for git, and the commands that train with it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from rlx import files
from rlx.command import Command
from rlx.errors import EvidenceInvalid
from rlx.launch.git import worktree
from rlx.launch.study_jobs.launch_facts import is_applied
from rlx.loop.study.evidence_checks import altered_files
from rlx.study.candidate.candidate_experiment import changes_of
from rlx.study.candidate.config_changes import flat_keys, nested
from rlx.study.candidate.diff_scope import FileChange
from rlx.study.ledger.state import State
from rlx.study.study_folder import Study
from rlx.study.task.task import Adapter
from rlx.train.backends.command.argv import arguments


@dataclass(frozen=True)
class Handover:
    """The commands that bring a candidate into the repository, in order."""

    candidate: str
    commands: tuple[str, ...]


def write(study: Study, state: State) -> Handover | None:
    """Write the incumbent's patch next to the report; without an incumbent, remove it."""
    for one in study.chain(state.incumbent)[1:] if state.incumbent else ():
        for says in altered_files(study, state.candidates[one.id]):
            raise EvidenceInvalid(f"{says}: no patch of it was confirmed", hint="put it back as it was")
    patch = _patch(study, state.incumbent) if state.incumbent else b""
    if patch:
        files.write_atomic(study.handover_path, patch)
    else:
        study.handover_path.unlink(missing_ok=True)
    return _handover(study, state.incumbent, is_patched=bool(patch)) if state.incumbent else None


def pending(study: Study, state: State) -> Command | None:
    """Return the command that applies the incumbent's patch; None without a patch, or after it was applied."""
    if state.incumbent is None or not study.handover_path.is_file() or is_applied(study, state):
        return None
    return _command(study)


def _command(study: Study) -> Command:
    patch = study.handover_path.relative_to(study.root).as_posix()
    return Command(("git", "apply", "--index", patch), needs_person=True)


def _patch(study: Study, identity: str) -> bytes:
    """Return the candidate's code against the baseline and, for config keys, a new config that extends it."""
    code, added = study.patch(identity) or b"", _config(study, identity)
    if added is None:
        return code
    path, text = added
    return code + worktree.patch_text([FileChange(path, None, text.encode(), mode_after="100644")])


def _changes(study: Study, identity: str) -> dict[str, Any]:
    return flat_keys(changes_of(study.chain(identity)))


def _config(study: Study, identity: str) -> tuple[str, str] | None:
    """Return path and text of the config that trains a candidate; None if it changes no config keys."""
    below, changes = study.task().adapter.config, _changes(study, identity)
    if below is None or not changes:
        return None
    base = PurePosixPath(below)
    path = base.with_name(f"{base.stem}_{study.name}_{identity}{base.suffix}")
    document = yaml.safe_dump({"extends": base.name, **nested(changes)}, sort_keys=False, allow_unicode=True)
    return path.as_posix(), f"# {identity} of study {study.name}, as it was confirmed.\n{document}"


def _handover(study: Study, identity: str, *, is_patched: bool) -> Handover:
    """Return the commands that apply the patch, train with it, and start another study from it."""
    adapter, changes = study.task().adapter, _changes(study, identity)
    patch: tuple[str, ...] = ()
    if is_patched and not is_applied(study, study.state()):
        patch = (str(_command(study)), f'git commit -m "{identity} of study {study.name}"')
    if adapter.config is None:
        return Handover(identity, (*patch, *by_arguments(adapter, changes)))
    config = shlex.quote((_config(study, identity) or (adapter.config, ""))[0])
    task = "" if changes else f"--task {study.task_name}_{study.name}_{identity} "
    trains = f"rlx train {config} --seeds 5"
    return Handover(identity, (*patch, trains, f"rlx study new NAME {task}--config {config}"))


def by_arguments(adapter: Adapter, changes: Mapping[str, Any]) -> list[str]:
    """Return the training command with the changed keys; rlx does not edit the repository's defaults."""
    places = {"seed": "0", "out": "confirmed", **({"steps": str(adapter.steps)} if adapter.steps else {})}
    found = arguments([*adapter.prefix, *adapter.train], places, override=adapter.override, overrides=changes)
    return [shlex.join(found)] if changes else []
