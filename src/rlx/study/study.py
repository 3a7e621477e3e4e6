"""A study's folder: where its contract, ledger, candidates and evidence are, and which study is meant."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlx import files
from rlx.config.yaml_lines import NAME_ONE
from rlx.errors import ConfigError, FileDamaged, NotFound, UsageError, did_you_mean
from rlx.runs import project
from rlx.study import candidate as candidates
from rlx.study import contract as contracts
from rlx.study import task as tasks
from rlx.study.candidate import BASELINE, REHEARSAL, Candidate
from rlx.study.contract import Contract
from rlx.study.ledger import Ledger
from rlx.study.state import State, lawful, replay
from rlx.study.task import Task

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NO_STUDY = "rlx study new NAME --config FILE, or first rlx task new NAME --train COMMAND"
_RESTORE = "restore the file from a copy"
NULL = {
    BASELINE: "What there is, unchanged.",
    REHEARSAL: "Nothing changes: every step of the path is walked once.",
}
"""The candidates that change nothing, and what each is for."""


@dataclass(frozen=True)
class Study:
    """One campaign on a task, by its place; everything is read afresh from disk."""

    root: Path
    task_name: str
    name: str

    @property
    def folder(self) -> Path:
        return task_folder(self.root, self.task_name) / "studies" / self.name

    @property
    def contract_path(self) -> Path:
        return self.folder / "contract.yaml"

    @property
    def task_path(self) -> Path:
        return task_folder(self.root, self.task_name) / "task.yaml"

    @property
    def evidence(self) -> Path:
        """Where the evaluator's results are kept; jobs cannot write here."""
        return self.folder / "evidence"

    @property
    def evaluator(self) -> Path:
        """The pinned copy of the baseline's tree that policies are measured in."""
        return self.folder / "evaluator"

    @property
    def report_path(self) -> Path:
        return self.folder / "report.md"

    @property
    def handover_path(self) -> Path:
        """The patch that takes the incumbent over, written with the report."""
        return self.folder / "confirmed.patch"

    @cached_property
    def ledger(self) -> Ledger:
        """The study's ledger; a study is founded with one row in it, so that one without any is damage."""
        path = self.folder / "ledger.jsonl"
        if not _begins(path):
            says = f"{self.name}/{path.name} is gone or empty: what the study promised, tried and decided stood there"
            raise FileDamaged(says, hint=f"{_RESTORE}; without one, begin another study: rlx study new NAME")
        return lawful(path)

    @property
    def option(self) -> str:
        """What a command needs to mean this study: nothing where it is the one in use."""
        try:
            return "" if find(self.root) == self else f" --study {self.name}"
        except UsageError:
            return f" --study {self.name}"

    def worktree(self, identity: str) -> Path:
        """Return the folder a candidate's code is changed in."""
        return self.folder / "worktrees" / identity

    def tree(self, commit: str, diff_sha256: str) -> Path:
        """Return the folder that jobs run a commit with this difference in: nobody edits there."""
        return self.folder / "trees" / f"{commit[:12]}-{diff_sha256[:16]}"

    def contract(self) -> Contract:
        with _kept():
            return contracts.read(self.contract_path)

    def contract_with_hash(self) -> tuple[Contract, str]:
        """Return the contract and the hash of the bytes that it was read from."""
        with _kept():
            return contracts.read_with_hash(self.contract_path)

    def task(self) -> Task:
        with _kept():
            return tasks.read(self.task_path)

    def state(self) -> State:
        """Return what the ledger amounts to now."""
        return replay(self.ledger.events())

    def candidate(self, identity: str) -> Candidate:
        """Return a candidate as it was proposed."""
        if identity in NULL:
            return Candidate(id=identity, kind="hyperparameter", hypothesis=NULL[identity])
        path = self.candidate_path(identity)
        if not _NAME.fullmatch(identity) or not path.is_file():
            if identity in self.state().candidates:
                raise FileDamaged(f"{self.name}/candidates/{path.name} is gone", hint=_RESTORE)
            known = [one.id for one in self.candidates()]
            near = did_you_mean(identity, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}" if known else "rlx propose"
            raise NotFound(f"{self.name} has no candidate `{identity}`", hint=hint)
        return _read_candidate(path)

    def candidate_path(self, identity: str) -> Path:
        return self.folder / "candidates" / f"{identity}.json"

    def patch_path(self, identity: str) -> Path:
        return self.folder / "candidates" / f"{identity}.patch"

    def patch(self, identity: str) -> bytes | None:
        """Return a candidate's change of code against the baseline, as it was checked; None where it has none."""
        try:
            return files.read_bytes(self.patch_path(identity)) or None
        except FileNotFoundError:
            return None

    def candidates(self) -> list[Candidate]:
        """Return every candidate that was proposed, in order."""
        return [_read_candidate(path) for path in sorted((self.folder / "candidates").glob("c*.json"))]

    def chain(self, identity: str) -> list[Candidate]:
        """Return a candidate and those it builds on, the first of them first."""
        found = [self.candidate(identity)]
        while found[0].id not in NULL:
            below = self.candidate(found[0].builds_on)
            if any(below.id == one.id for one in found):
                raise FileDamaged(f"candidates/{below.id}.json builds on itself")
            found.insert(0, below)
        return found


def _begins(path: Path) -> bool:
    """Say whether a ledger has a first row."""
    try:
        with files.reading(path) as stream:
            return stream.readline().endswith(b"\n")
    except (FileNotFoundError, FileDamaged):
        return False


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """Say of a document that cannot be read at all that it is to be restored, not how a first one is made."""
    try:
        yield
    except (ConfigError, NotFound) as error:
        if error.hint in (contracts.SORT.hint, tasks.SORT.hint, NAME_ONE):
            error.hint = _RESTORE
        raise


def _read_candidate(path: Path) -> Candidate:
    """Read a candidate's document, which rlx wrote: one that does not read is damage, nobody's mistake."""
    try:
        return candidates.read(path)
    except ConfigError as error:
        raise FileDamaged(error.message, hint=_RESTORE) from None


def task_folder(root: Path, task: str) -> Path:
    return root / ".rlx" / "tasks" / task


def task_names(root: Path) -> list[str]:
    """Return the tasks of a project."""
    return sorted(path.parent.name for path in (root / ".rlx" / "tasks").glob("*/task.yaml"))


def studies(root: Path) -> list[Study]:
    """Return every study of a project."""
    paths = sorted((root / ".rlx" / "tasks").glob("*/studies/*/contract.yaml"))
    return [Study(root, path.parents[2].name, path.parent.name) for path in paths]


def find(root: Path, reference: str | None = None) -> Study:
    """Return the study that is named (`STUDY` or `TASK/STUDY`), else the one whose worktree one stands in, else the
    one in use, else the only one there is."""
    known = studies(root)
    if reference is None:
        return _here(root, known) or _in_use(root, known)
    matching = [one for one in known if reference in (one.name, f"{one.task_name}/{one.name}")]
    if len(matching) == 1:
        return matching[0]
    names = [f"{one.task_name}/{one.name}" for one in matching or known]
    if matching:
        raise UsageError(f"`{reference}` could be any of {len(names)} studies", hint=f"name one: {', '.join(names)}")
    near = did_you_mean(reference, [one.name for one in known])
    raise NotFound(f"no study `{reference}`", hint=f"did you mean `{near}`?" if near else _hint(names))


def _hint(names: Sequence[str]) -> str:
    return f"there are {', '.join(names)}" if names else _NO_STUDY


def _here(root: Path, known: Sequence[Study]) -> Study | None:
    """Return the study whose folder this is, or whose candidate's worktree: that one is meant there."""
    owner, inside = project.owned(Path.cwd())
    if owner != root.resolve() or len(inside) < 3 or inside[1] != "studies":
        return None
    here = Study(root, inside[0], inside[2])
    return here if here in known else None


def _in_use(root: Path, known: Sequence[Study]) -> Study:
    try:
        document = files.read_json(root / ".rlx" / "active.json")
        active = Study(root, str(document["task"]), str(document["study"]))
    except (OSError, ValueError, KeyError, TypeError):
        active = None
    if active is not None and active in known:
        return active
    if len(known) == 1:
        return known[0]
    if not known:
        described = task_names(root)
        hint = f"rlx study new NAME --task {described[-1]}" if described else _NO_STUDY
        raise NotFound("there is no study here", hint=hint)
    names = [f"{one.task_name}/{one.name}" for one in known]
    raise UsageError("several studies, and none is in use", hint=f"rlx study use {names[-1]} (of {', '.join(names)})")


def use(study: Study) -> None:
    """Make a study the one that commands mean when none is named."""
    files.write_json(study.root / ".rlx" / "active.json", {"schema": 1, "task": study.task_name, "study": study.name})


def valid_name(text: str, *, kind: str) -> str:
    """Return a name that can be a folder's, or say what one looks like."""
    if not _NAME.fullmatch(text):
        raise UsageError(f"`{text}` cannot name a {kind}", hint="small letters, digits, - and _: trot-reward")
    return text
