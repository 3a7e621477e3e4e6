"""The pinned evaluation: the repository's own eval command, from a private copy of the pinned tree, in a box.

Of the candidate only its checkpoint is there, and the `policy_files` that the task lists, laid over the copy: without
them nothing of its code runs. The figures are those the command writes.

What is not covered: policy files run in the evaluator's process and could write its figures, and so could a checkpoint
that the command unpickles; sealed evaluations have no such hole. Neither does anybody here count the episodes that the
command says it played.
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

from rlx import files, sandbox
from rlx.errors import EvidenceInvalid, Refused, RlxError
from rlx.evaluate.pin import Pin
from rlx.evaluate.protocol import Purpose, episode_seeds
from rlx.evaluate.result import LARGEST_BYTES, read_result
from rlx.evaluate.seal import SCHEMA, Failure, Limits, Sealed, Subject, keep, unstaged
from rlx.evaluate.staged import stage_recorded
from rlx.evaluate.tally import NoFigure, score
from rlx.evaluate.variables import plain_environment
from rlx.runs.outcry import outcry
from rlx.runs.provenance import versions
from rlx.sandbox import Box, Caps

if TYPE_CHECKING:
    from rlx.config.schema import Source

LEVEL = "pinned"
_LOOK_SECONDS = 0.1
_OUTPUT_BYTES = 2**26
_TAIL_BYTES = 2**16
ACT_BY_NAME = ("sitecustomize.py", "usercustomize.py", "conftest.py")
"""Files that run because of what they are called; none of them is a policy."""


@dataclass(frozen=True)
class Command:
    """A repository's own evaluation: argv with placeholders, and what its figures are called.

    Placeholders: `{checkpoint}`, `{episodes}`, `{episode_seed}` (the first), `{result}` (the file to write), `{out}`
    (its folder). Without a `source` the result is a JSON object; a source's path has the same placeholders.
    """

    argv: tuple[str, ...]
    metric: str
    names: Mapping[str, str] = field(default_factory=dict)
    python_path: tuple[str, ...] = (".",)
    policy_files: tuple[str, ...] = ()
    source: Source | None = None


@dataclass(frozen=True)
class Pinned:
    """How checkpoints are measured by a command: in which tree, on which episodes, with whose policy files.

    `seed` is the training seed whose episodes are played.
    """

    command: Command
    pin: Pin
    purpose: Purpose
    first: int
    episodes: int
    worktree: Path | None = None
    reads: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    may_go_unenforced: bool = False
    seed: int = 0

    @property
    def seeds(self) -> tuple[int, int]:
        """The first and the last episode seed."""
        played = episode_seeds(self.purpose, self.first, self.episodes, seed=self.seed)
        return played.start, played.stop - 1

    @property
    def protocol(self) -> dict[str, Any]:
        """Everything that two evaluations must share to be compared."""
        return {
            "command": list(self.command.argv),
            "metric": self.command.metric,
            "names": dict(self.command.names),
            "source": self.command.source.model_dump(mode="json") if self.command.source else None,
            "pin": self.pin.sha256,
            "episodes": self.episodes,
            "seeds": list(replace(self, seed=0).seeds),
            "purpose": self.purpose,
        }

    def fingerprint(self) -> str:
        """Return the name of the protocol."""
        return files.sha256(json.dumps(self.protocol, sort_keys=True).encode())[:12]


def pinned(asked: Pinned, subjects: Sequence[Subject]) -> list[Sealed]:
    """Measure checkpoints by the repository's own command, each in a fresh copy; write each one's document."""
    asked.pin.verify()
    found = [_measured(replace(asked, seed=subject.seed), subject) for subject in subjects]
    asked.pin.verify()
    for one in found:
        if one.document is not None:
            one.subject.out.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(one.subject.out, one.document)
    return found


def _measured(asked: Pinned, subject: Subject) -> Sealed:
    with tempfile.TemporaryDirectory(prefix="rlx-pinned-") as name:
        try:
            place = _prepared(asked, subject, Path(name).resolve())
        except RlxError as error:
            return Sealed(subject, failure=unstaged(error))
        enforced = sandbox.probed(_box(asked, place), may_go_unenforced=asked.may_go_unenforced).document()
        found = _found(asked, subject, place, enforced)
        if found.failure is not None:
            with place.printed.open("rb") as log:
                keep(log, subject)
        return found


def _found(asked: Pinned, subject: Subject, place: _Place, enforced: Mapping[str, Any]) -> Sealed:
    failure = _run(asked, place)
    if failure is not None:
        is_policys = failure.code == "command" or bool(place.laid_over)  # weights alone neither stall nor fill a disk
        return Sealed(subject, failure=replace(failure, is_policys=is_policys))
    try:
        return Sealed(subject, _document(asked, place, enforced))
    except NoFigure as error:
        return Sealed(subject, failure=Failure("metric", error.message, error.hint, is_policys=False))
    except EvidenceInvalid as error:
        return Sealed(subject, failure=Failure("result", error.message, error.hint))


@dataclass(frozen=True)
class _Place:
    """The folders of one evaluation."""

    folder: Path
    checkpoint: Path
    digest: str = ""
    laid_over: Mapping[str, str] = field(default_factory=dict)

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


def _prepared(asked: Pinned, subject: Subject, folder: Path) -> _Place:
    place = _Place(folder, folder / "staged" / subject.checkpoint.name)
    for made in (place.scratch, place.result.parent, place.checkpoint.parent):
        made.mkdir()
    digest = stage_recorded(subject.checkpoint, place.checkpoint, subject.sha256)
    asked.pin.copy(place.tree)
    laid = {} if asked.worktree is None else lay_over(place.tree, asked.worktree, asked.command.policy_files)
    for name in laid:
        if any(name in word for word in asked.command.argv):
            raise Refused(
                f"policy file {name} is named by the eval command: it is the evaluator", hint="adapter.policy_files"
            )
    stale = _result_path(asked, place)
    if stale.resolve().is_relative_to(place.tree):
        _forget(stale)
    return replace(place, digest=digest, laid_over=laid)


def lay_over(tree: Path, worktree: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Copy a worktree's files that match into a tree, and return their hashes by path; links are refused."""
    found: dict[str, str] = {}
    for path in sorted({path for pattern in patterns for path in worktree.glob(pattern)}):
        name = path.relative_to(worktree).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        _refuse_odd(path, name, worktree)
        content = path.read_bytes()
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_bytes(content)
        found[name] = files.sha256(content)
    return found


def _refuse_odd(path: Path, name: str, worktree: Path) -> None:
    above = [one for one in path.parents if one.is_relative_to(worktree)]
    if any(one.is_symlink() for one in (path, *above)) or not stat.S_ISREG(os.lstat(path).st_mode):
        raise Refused(f"policy file {name} is a link, or no file", hint="policy files are files of the worktree itself")
    if path.name in ACT_BY_NAME or path.suffix == ".pth":
        raise Refused(f"policy file {name} would run because of its name", hint="name the policy's own files alone")


def _run(asked: Pinned, place: _Place) -> Failure | None:
    """Run the command to its end; return why it has none that counts."""
    limits = asked.limits
    caps = Caps(
        limits.processes, limits.memory_bytes, place.folder, limits.scratch_bytes + sandbox.folder_bytes(place.folder)
    )
    with place.printed.open("w+b") as log:
        process = sandbox.start(
            _filled(asked, place, asked.command.argv), _box(asked, place), env=_environment(asked, place),
            cwd=place.tree, stdout=log, stderr=log, may_go_unenforced=asked.may_go_unenforced,
        )  # fmt: skip
        try:
            failure = _watched(process, caps, limits.seconds)
        finally:
            sandbox.kill(process)
        return failure or _ending(process, log)


def _watched(process: sandbox.Program, caps: Caps, seconds: float) -> Failure | None:
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            return Failure("time", f"it took longer than {seconds:g} s", "evaluation.minutes in the contract")
        if breach := sandbox.breach(process.pid, caps):
            return Failure(breach.name, f"it used {breach.says}")
        time.sleep(_LOOK_SECONDS)
    return None


def _ending(process: sandbox.Program, log: IO[bytes]) -> Failure | None:
    if process.returncode == 0:
        return None
    return Failure("command", f"the eval command ended with exit code {process.returncode}: {_outcry(log)}")


def _outcry(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
    return outcry(log.read().decode("utf-8", "replace"))[:300] or "without a word"


def _filled(asked: Pinned, place: _Place, words: Sequence[str]) -> list[str]:
    """Put values for the placeholders."""
    values = {
        "{checkpoint}": str(place.checkpoint),
        "{episodes}": str(asked.episodes),
        "{episode_seed}": str(asked.seeds[0]),
        "{result}": str(place.result),
        "{out}": str(place.result.parent),
    }
    filled = list(words)
    for placeholder, value in values.items():
        filled = [word.replace(placeholder, value) for word in filled]
    return filled


def _box(asked: Pinned, place: _Place) -> Box:
    return Box(
        reads=(*sandbox.system_reads(), place.checkpoint, *asked.reads),
        writes=(place.tree, place.scratch, place.result.parent),
        memory_bytes=asked.limits.memory_bytes,
        file_bytes=min(asked.limits.scratch_bytes, _OUTPUT_BYTES),
        processes=asked.limits.processes,
    )


def _environment(asked: Pinned, place: _Place) -> dict[str, str]:
    path = ":".join(str(place.tree / one) for one in asked.command.python_path)
    return {**plain_environment(), **sandbox.private(place.scratch), "PYTHONPATH": path, "PYTHONNOUSERSITE": "1"}


def _figures(asked: Pinned, place: _Place) -> tuple[dict[str, float], list[dict[str, Any]]]:
    source, path = asked.command.source, _result_path(asked, place)
    if source is None or source.reader != "tensorboard":
        _refuse_more(place, path)
    if not path.resolve().is_relative_to(place.folder):
        raise EvidenceInvalid("its result is behind a link, or outside of the evaluation's own folder")
    names = {**(source.names if source else {}), **asked.command.names}
    printed = place.printed.read_bytes()[-LARGEST_BYTES:].decode("utf-8", "replace")
    return read_result(path, names=names, episodes=asked.episodes, source=source, printed=printed)


def _result_path(asked: Pinned, place: _Place) -> Path:
    source = asked.command.source
    (told,) = _filled(asked, place, [source.path if source and source.path else "{result}"])
    return place.tree / told


def _forget(path: Path) -> None:
    """Remove a result that came with the tree: it is an older one, and nobody wrote it here."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_more(place: _Place, result: Path) -> None:
    """Refuse further files beside the result: one result is one file."""
    for path in place.result.parent.iterdir():
        if path != result:
            raise EvidenceInvalid(f"beside its result it wrote {path.name}")


def _document(asked: Pinned, place: _Place, enforced: Mapping[str, Any]) -> dict[str, Any]:
    figures, rows = _figures(asked, place)
    value = score(figures, asked.command.metric)
    return {
        "schema": SCHEMA,
        "level": LEVEL,
        "purpose": asked.purpose,
        "first": asked.first,
        "seeds": list(asked.seeds),
        "pin": asked.pin.sha256,
        "policy_files": dict(place.laid_over),
        "fingerprint": asked.fingerprint(),
        "time": time.time(),
        "metric": asked.command.metric,
        "score": value,
        "figures": figures,
        "checkpoint": {"sha256": place.digest},
        "versions": versions(),
        "protocol": asked.protocol,
        "episodes": rows,
        "enforced": enforced,
    }
