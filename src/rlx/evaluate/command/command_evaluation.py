"""The command evaluation: run the repository's own eval command in a sandbox, from a private copy of the pinned tree.

The copy holds two things of the candidate: its checkpoint, and the `policy_files` that the task lists. Without such
files none of its code runs. The command writes the figures.

Not covered: policy files run in the evaluator's process and could write its figures. So could a checkpoint that the
command unpickles. Sealed evaluations have no such gap. rlx also does not count the episodes that the command reports.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rlx import files
from rlx.errors import EvidenceInvalid, Refused, RlxError
from rlx.evaluate.checkpoint_evaluation import (
    SCHEMA,
    EvaluationFailure,
    EvaluationLimits,
    EvaluationResult,
    Subject,
    evaluation_command,
    keep_log,
    limit_failure,
    staging_failure,
)
from rlx.evaluate.command.result_file import LARGEST_BYTES, read_result
from rlx.evaluate.episode_metrics import MissingFigure, score
from rlx.evaluate.protocol import Purpose, episode_seeds
from rlx.evaluate.sealed.pinned_tree import PinnedTree
from rlx.evaluate.sealed.stage_checkpoint import stage_recorded
from rlx.runs.failure_line import failure_line
from rlx.runs.provenance import versions
from rlx.sandbox.popen import read_end, run
from rlx.sandbox.self_test import verify_enforcement
from rlx.sandbox.spec import SandboxSpec, system_reads
from rlx.sandbox.usage_limits import UsageLimits, folder_bytes

if TYPE_CHECKING:
    from rlx.config.schema import Source

LEVEL = "pinned"
_LOOK_SECONDS = 0.1
_OUTPUT_BYTES = 2**26
_TAIL_BYTES = 2**16
# Files that Python or pytest runs because of their names. None of them is a policy.
AUTOMATIC_FILES = ("sitecustomize.py", "usercustomize.py", "conftest.py")


@dataclass(frozen=True)
class EvalCommand:
    """A repository's own evaluation: a command line with placeholders, and the names of its figures.

    The placeholders are `{checkpoint}`, `{episodes}`, `{episode_seed}` (the first), `{result}` (the file to write) and
    `{out}` (its folder). Without a `source` the result is a JSON object. A source's path has the same placeholders.
    """

    argv: tuple[str, ...]
    metric: str
    names: Mapping[str, str] = field(default_factory=dict)
    python_path: tuple[str, ...] = (".",)
    policy_files: tuple[str, ...] = ()
    source: Source | None = None

    @property
    def takes_episodes(self) -> bool:
        """Whether rlx sets the number of episodes; otherwise the command chooses it."""
        return any("{episodes}" in word for word in self.argv)

    @property
    def takes_episode_seed(self) -> bool:
        """Whether rlx sets which episodes are played; otherwise the command chooses them."""
        return any("{episode_seed}" in word for word in self.argv)


@dataclass(frozen=True)
class CommandEvaluation:
    """How to measure checkpoints by a command: in which tree, on which episodes, with which worktree's policy files.

    `seed` is the training seed whose episodes are played.
    """

    command: EvalCommand
    pin: PinnedTree
    purpose: Purpose
    first: int
    episodes: int
    worktree: Path | None = None
    reads: tuple[Path, ...] = ()
    limits: EvaluationLimits = field(default_factory=EvaluationLimits)
    may_go_unenforced: bool = False
    seed: int = 0

    @property
    def seeds(self) -> tuple[int, int]:
        """The first and the last episode seed."""
        seeds = episode_seeds(self.purpose, self.first, self.episodes, seed=self.seed)
        return seeds.start, seeds.stop - 1

    @property
    def known_episodes(self) -> int | None:
        """The number of episodes that is played; None if the command chooses it."""
        return self.episodes if self.command.takes_episodes else None

    @property
    def protocol(self) -> dict[str, Any]:
        """Everything that two evaluations must share to be comparable."""
        source = self.command.source
        return {
            "command": list(self.command.argv),
            "metric": self.command.metric,
            "names": dict(self.command.names),
            "source": source and source.model_dump(mode="json"),
            "pin": self.pin.sha256,
            "episodes": self.known_episodes,
            "seeds": list(replace(self, seed=0).seeds) if self.command.takes_episode_seed else None,
            "purpose": self.purpose,
        }

    def fingerprint(self) -> str:
        """Return the name of the protocol."""
        return files.sha256(json.dumps(self.protocol, sort_keys=True).encode())[:12]


def evaluate_by_command(evaluation: CommandEvaluation, subjects: Sequence[Subject]) -> list[EvaluationResult]:
    """Measure checkpoints by the repository's own command, each in a fresh copy, and write a document for each."""
    evaluation.pin.verify()
    results = [_measure(replace(evaluation, seed=subject.seed), subject) for subject in subjects]
    evaluation.pin.verify()
    for result in results:
        result.write()
    return results


def _measure(evaluation: CommandEvaluation, subject: Subject) -> EvaluationResult:
    with tempfile.TemporaryDirectory(prefix="rlx-pinned-") as name:
        try:
            workspace = _prepare(evaluation, subject, Path(name).resolve())
        except RlxError as error:
            return EvaluationResult(subject, failure=staging_failure(error))
        spec = _sandbox(evaluation, workspace)
        enforcement = verify_enforcement(spec, may_go_unenforced=evaluation.may_go_unenforced)
        document = None
        failure = _run(evaluation, workspace, spec)
        if failure is None:
            try:
                document = {**_document(evaluation, workspace), "enforced": enforcement.document()}
            except MissingFigure as error:
                failure = EvaluationFailure("metric", error.message, error.hint, is_policy_fault=False)
            except EvidenceInvalid as error:
                failure = EvaluationFailure("result", error.message, error.hint)
        if failure is not None:
            with workspace.printed.open("rb") as log:
                keep_log(log, subject)
        return EvaluationResult(subject, document, failure)


@dataclass(frozen=True)
class _Workspace:
    """The folders and files of one evaluation."""

    folder: Path
    checkpoint: Path
    sha256: str = ""
    policy_files: Mapping[str, str] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    @property
    def result(self) -> Path:
        return self.folder / "result" / "result.json"

    @property
    def printed(self) -> Path:
        return self.folder / "printed.txt"


def _prepare(evaluation: CommandEvaluation, subject: Subject, folder: Path) -> _Workspace:
    workspace = _Workspace(folder, folder / "staged" / subject.checkpoint.name)
    for path in (workspace.scratch, workspace.result.parent, workspace.checkpoint.parent):
        path.mkdir()
    sha256 = stage_recorded(subject.checkpoint, workspace.checkpoint, subject.sha256)
    evaluation.pin.copy(workspace.tree)
    copied: Mapping[str, str] = {}
    if evaluation.worktree is not None:
        copied = copy_policy_files(workspace.tree, evaluation.worktree, evaluation.command.policy_files)
    for name in copied:
        if any(name in word for word in evaluation.command.argv):
            message = f"policy file {name} is part of the eval command, so it belongs to the evaluator"
            raise Refused(message, hint="adapter.policy_files")
    old_result = _result_path(evaluation, workspace)
    if old_result.resolve().is_relative_to(workspace.tree):  # it came with the tree: this command did not write it
        if old_result.is_dir() and not old_result.is_symlink():
            shutil.rmtree(old_result)
        else:
            old_result.unlink(missing_ok=True)
    return replace(workspace, sha256=sha256, policy_files=copied)


def copy_policy_files(tree: Path, worktree: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Copy a worktree's files that match into a tree and return their hashes by path. Links are refused."""
    hashes: dict[str, str] = {}
    for path in sorted({path for pattern in patterns for path in worktree.glob(pattern)}):
        name = path.relative_to(worktree).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        _refuse_unsafe_file(path, name, worktree)
        content = path.read_bytes()
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_bytes(content)
        hashes[name] = files.sha256(content)
    return hashes


def _refuse_unsafe_file(path: Path, name: str, worktree: Path) -> None:
    folders = [folder for folder in path.parents if folder.is_relative_to(worktree)]
    if any(part.is_symlink() for part in (path, *folders)) or not stat.S_ISREG(os.lstat(path).st_mode):
        hint = "policy files must be files of the worktree itself"
        raise Refused(f"policy file {name} is a link or not a regular file", hint=hint)
    if path.name in AUTOMATIC_FILES or path.suffix == ".pth":
        hint = "list only the policy's own files"
        raise Refused(f"policy file {name} would run because of its name", hint=hint)


def _run(evaluation: CommandEvaluation, workspace: _Workspace, spec: SandboxSpec) -> EvaluationFailure | None:
    """Run the command to its end. Return why it failed, if it did."""
    limits = evaluation.limits
    disk_bytes = limits.scratch_bytes + folder_bytes(workspace.folder)
    usage = UsageLimits(limits.processes, limits.memory_bytes, workspace.folder, disk_bytes)
    command = evaluation_command(
        _fill(evaluation, workspace, evaluation.command.argv),
        spec,
        cwd=workspace.tree,
        home=workspace.scratch,
        may_go_unenforced=evaluation.may_go_unenforced,
        PYTHONPATH=":".join(str(workspace.tree / folder) for folder in evaluation.command.python_path),
        PYTHONNOUSERSITE="1",
    )
    with workspace.printed.open("w+b") as log:
        deadline = time.monotonic() + limits.seconds
        with run(command, stdout=log, stderr=log) as process:
            while process.poll() is None:
                failure = limit_failure(process, usage, deadline=deadline, seconds=limits.seconds)
                if failure:
                    # Weights alone neither stall nor fill a disk: without policy files it is not the policy's fault.
                    return replace(failure, is_policy_fault=bool(workspace.policy_files))
                time.sleep(_LOOK_SECONDS)
        if process.returncode == 0:
            return None
        message = f"the eval command ended with exit code {process.returncode}: {_failure_line(log)}"
        return EvaluationFailure("command", message)


def _failure_line(log: IO[bytes]) -> str:
    return failure_line(read_end(log, _TAIL_BYTES).decode("utf-8", "replace"))[:300] or "without a message"


def _fill(evaluation: CommandEvaluation, workspace: _Workspace, words: Sequence[str]) -> list[str]:
    """Replace the placeholders by their values."""
    values = {
        "{checkpoint}": str(workspace.checkpoint),
        "{episodes}": str(evaluation.episodes),
        "{episode_seed}": str(evaluation.seeds[0]),
        "{result}": str(workspace.result),
        "{out}": str(workspace.result.parent),
    }
    filled = list(words)
    for placeholder, value in values.items():
        filled = [word.replace(placeholder, value) for word in filled]
    return filled


def _sandbox(evaluation: CommandEvaluation, workspace: _Workspace) -> SandboxSpec:
    """Return the command's sandbox: it writes its private copy of the tree, a scratch folder and the result."""
    return SandboxSpec(
        reads=(*system_reads(), workspace.checkpoint, *evaluation.reads),
        writes=(workspace.tree, workspace.scratch, workspace.result.parent),
        memory_bytes=evaluation.limits.memory_bytes,
        file_bytes=min(evaluation.limits.scratch_bytes, _OUTPUT_BYTES),
        processes=evaluation.limits.processes,
    )


def _result_path(evaluation: CommandEvaluation, workspace: _Workspace) -> Path:
    source = evaluation.command.source
    template = (source and source.path) or "{result}"
    return workspace.tree / _fill(evaluation, workspace, [template])[0]


def _read_figures(
    evaluation: CommandEvaluation, workspace: _Workspace
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    source = evaluation.command.source
    path = _result_path(evaluation, workspace)
    if source is None or source.reader != "tensorboard":  # then one result is one file
        for other in workspace.result.parent.iterdir():
            if other != path:
                raise EvidenceInvalid(f"next to its result the command wrote {other.name}")
    if not path.resolve().is_relative_to(workspace.folder):
        raise EvidenceInvalid("its result is behind a link, or outside the evaluation's own folder")
    names = dict(evaluation.command.names)
    if source is not None:
        names = {**source.names, **names}
    printed = workspace.printed.read_bytes()[-LARGEST_BYTES:].decode("utf-8", "replace")
    return read_result(
        path, names=names, episodes=evaluation.known_episodes, source=source, printed=printed,
        metric=evaluation.command.metric,
    )  # fmt: skip


def _document(evaluation: CommandEvaluation, workspace: _Workspace) -> dict[str, Any]:
    figures, rows = _read_figures(evaluation, workspace)
    return {
        "schema": SCHEMA,
        "level": LEVEL,
        "purpose": evaluation.purpose,
        "first": evaluation.first,
        "seeds": list(evaluation.seeds) if evaluation.command.takes_episode_seed else None,
        "pin": evaluation.pin.sha256,
        "policy_files": dict(workspace.policy_files),
        "fingerprint": evaluation.fingerprint(),
        "time": time.time(),
        "metric": evaluation.command.metric,
        "score": score(figures, evaluation.command.metric),
        "figures": figures,
        "checkpoint": {"sha256": workspace.sha256},
        "versions": versions(),
        "protocol": evaluation.protocol,
        "episodes": rows,
    }
