"""The folder of a study: contract, ledger, candidates and evidence; and how rlx finds the study that is meant."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlx import files
from rlx.command import is_plain_word
from rlx.config.yaml_lines import FileKind
from rlx.errors import ConfigError, FileDamaged, NotFound, UsageError, hint_for
from rlx.runs import project
from rlx.study.candidate import candidate as candidates
from rlx.study.candidate.candidate import BASELINE, REHEARSAL, Candidate
from rlx.study.contract import contract as contracts
from rlx.study.contract.contract import Contract
from rlx.study.ledger.ledger import Ledger
from rlx.study.ledger.state import State, lawful, replay
from rlx.study.task import task as tasks
from rlx.study.task.task import Task

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NO_STUDY = "rlx study new NAME --config FILE, or first rlx task new NAME --train COMMAND"
_RESTORE = "restore the file from a copy"
# An existing study's files are restored; the usual hints say how to make the first ones.
_CONTRACT = FileKind("contract", _RESTORE)
_TASK = FileKind("task", _RESTORE)
# The candidates that change nothing, and what each is for.
UNCHANGED = {
    BASELINE: "The unchanged code.",
    REHEARSAL: "Nothing changes: rlx tries every step of the study once.",
}


@dataclass(frozen=True)
class Study:
    """One study of a task, by its folder; everything is read from disk at each call."""

    root: Path
    task_name: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.task_name}/{self.name}"

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
        """The folder with the evaluator's results; jobs cannot write here."""
        return self.folder / "evidence"

    @property
    def evaluator(self) -> Path:
        """The pinned copy of the baseline's files in which policies are measured."""
        return self.folder / "evaluator"

    @property
    def report_path(self) -> Path:
        return self.folder / "report.md"

    @property
    def handover_path(self) -> Path:
        """The patch of the confirmed candidate, written with the report."""
        return self.folder / "confirmed.patch"

    @cached_property
    def ledger(self) -> Ledger:
        """The study's ledger; a new study has one row in it, so that an empty ledger is damaged."""
        path = self.folder / "ledger.jsonl"
        if not _has_first_row(path):
            message = f"{self.name}/{path.name} is missing or empty: it held all that the study tried and decided"
            raise FileDamaged(message, hint=f"{_RESTORE}; without a copy, start a new study: rlx study new NAME")
        return lawful(path)

    @property
    def option_words(self) -> tuple[str, ...]:
        """The words that select this study in a command; empty if it is the active study."""
        with contextlib.suppress(UsageError):
            if find_study(self.root) == self:
                return ()
        return ("--study", self.name)

    @property
    def option(self) -> str:
        """The same words as text, to be appended to a printed command."""
        return "".join(f" {word}" for word in self.option_words)

    def worktree(self, identity: str) -> Path:
        """Return the folder in which a candidate's code is edited."""
        return self.folder / "worktrees" / identity

    def tree(self, commit: str, diff_sha256: str) -> Path:
        """Return the folder in which jobs run a commit with this change; rlx never edits it."""
        return self.folder / "trees" / f"{commit[:12]}-{diff_sha256[:16]}"

    def contract(self) -> Contract:
        return contracts.read(self.contract_path, kind=_CONTRACT)

    def contract_with_hash(self) -> tuple[Contract, str]:
        """Return the contract and the hash of the bytes it was read from."""
        return contracts.read_with_hash(self.contract_path, kind=_CONTRACT)

    def task(self) -> Task:
        return tasks.read(self.task_path, kind=_TASK)

    def state(self) -> State:
        """Return the state that the ledger describes now."""
        return replay(self.ledger.events())

    def candidate(self, identity: str) -> Candidate:
        """Return a candidate as it was proposed."""
        if identity in UNCHANGED:
            return Candidate(id=identity, kind="hyperparameter", hypothesis=UNCHANGED[identity])
        path = self.candidate_path(identity)
        if _NAME.fullmatch(identity) and path.is_file():
            return _read_candidate(path)
        if identity in self.state().candidates:
            raise FileDamaged(f"{self.name}/candidates/{path.name} is gone", hint=_RESTORE)
        known = [candidate.id for candidate in self.candidates()]
        hint = hint_for(identity, known, otherwise=f"there are {', '.join(known)}")
        raise NotFound(f"{self.name} has no candidate `{identity}`", hint=hint if known else "rlx propose")

    def candidate_path(self, identity: str) -> Path:
        return self.folder / "candidates" / f"{identity}.json"

    def patch_path(self, identity: str) -> Path:
        return self.folder / "candidates" / f"{identity}.patch"

    def patch(self, identity: str) -> bytes | None:
        """Return a candidate's checked code change against the baseline; None if it has none."""
        try:
            return files.read_bytes(self.patch_path(identity)) or None
        except FileNotFoundError:
            return None

    def candidates(self) -> list[Candidate]:
        """Return every proposed candidate, in order."""
        return [_read_candidate(path) for path in sorted((self.folder / "candidates").glob("c*.json"))]

    def chain(self, identity: str) -> list[Candidate]:
        """Return the chain of candidates that a candidate builds on, with itself at the end."""
        chain = [self.candidate(identity)]
        while chain[0].id not in UNCHANGED:
            below = self.candidate(chain[0].builds_on)
            if below.id in {candidate.id for candidate in chain}:
                raise FileDamaged(f"candidates/{below.id}.json builds on itself")
            chain.insert(0, below)
        return chain


def _has_first_row(path: Path) -> bool:
    try:
        with files.reading(path) as stream:
            return stream.readline().endswith(b"\n")
    except (FileNotFoundError, FileDamaged):
        return False


def _read_candidate(path: Path) -> Candidate:
    """Read a candidate's document; rlx wrote it, so that one that cannot be read is damaged."""
    try:
        return candidates.read(path)
    except ConfigError as error:
        raise FileDamaged(error.message, hint=_RESTORE) from None


def task_folder(root: Path, task: str) -> Path:
    return root / ".rlx" / "tasks" / task


def task_names(root: Path) -> list[str]:
    """Return the tasks of a project."""
    names = [path.parent.name for path in (root / ".rlx" / "tasks").glob("*/task.yaml")]
    return sorted(name for name in names if is_plain_word(name))


def list_studies(root: Path) -> list[Study]:
    """Return every study of a project."""
    paths = sorted((root / ".rlx" / "tasks").glob("*/studies/*/contract.yaml"))
    names = [(path.parents[2].name, path.parent.name) for path in paths]
    return [Study(root, task, name) for task, name in names if is_plain_word(task) and is_plain_word(name)]


def find_study(root: Path, reference: str | None = None) -> Study:
    """Return the named study (`STUDY` or `TASK/STUDY`).

    Without a name: the study of the current folder or worktree, or the active study, or the only one.
    """
    known = list_studies(root)
    if reference is None:
        return _study_here(root, known) or _active_study(root, known)
    matching = [study for study in known if reference in (study.name, study.full_name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(study.full_name for study in matching)
        raise UsageError(f"`{reference}` matches {len(matching)} studies", hint=f"name one: {names}")
    otherwise = _NO_STUDY
    if known:
        otherwise = f"there are {', '.join(study.full_name for study in known)}"
    hint = hint_for(reference, [study.name for study in known], otherwise=otherwise)
    raise NotFound(f"no study `{reference}`", hint=hint)


def _study_here(root: Path, known: Sequence[Study]) -> Study | None:
    """Return the study that the current folder belongs to, for example as a candidate's worktree."""
    owner, inside = project.owned(Path.cwd())
    if owner != root.resolve() or len(inside) < 3 or inside[1] != "studies":
        return None
    here = Study(root, inside[0], inside[2])
    return here if here in known else None


def _active_study(root: Path, known: Sequence[Study]) -> Study:
    try:
        document = files.read_json(root / ".rlx" / "active.json")
        active = Study(root, str(document["task"]), str(document["study"]))
        if active in known:
            return active
    except (OSError, ValueError, KeyError, TypeError):
        pass
    if len(known) == 1:
        return known[0]
    if known:
        names = [study.full_name for study in known]
        hint = f"rlx study use {names[-1]} (of {', '.join(names)})"
        raise UsageError("there are several studies, and none is in use", hint=hint)
    tasks_here = task_names(root)
    if tasks_here:
        raise NotFound("this project has no study", hint=f"rlx study new NAME --task {tasks_here[-1]}")
    raise NotFound("this project has no study", hint=_NO_STUDY)


def set_active(study: Study) -> None:
    """Make a study the active one, which commands use if no study is named."""
    files.write_json(study.root / ".rlx" / "active.json", {"schema": 1, "task": study.task_name, "study": study.name})


def valid_name(text: str, *, kind: str) -> str:
    """Return the name if a folder can have it, or raise an error with an example."""
    if not _NAME.fullmatch(text):
        raise UsageError(f"`{text}` cannot name a {kind}", hint="use lower case letters, digits, - and _: trot-reward")
    return text
