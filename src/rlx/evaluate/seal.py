"""The sealed evaluation: checkpoints measured in a process of its own, from a pinned tree, in a box without network.

The evaluator owns environment, episode seeds and scoring; the rewards are the pinned environment's and are summed here.
A policy only ever receives observations. Checkpoints are copied, hashed and compared before anything reads them; the
pinned tree is verified before and after. Many checkpoints share one process, which is started once.

What is not covered: whoever runs outside the box under the same account, and what `Enforced.not_covered` lists. If the
candidate is the environment itself, the pinned one is what it is measured in.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import rlx
from rlx import files, sandbox
from rlx.errors import EvidenceInvalid, RlxError
from rlx.evaluate.pin import Pin
from rlx.evaluate.protocol import Purpose, episode_seeds
from rlx.evaluate.staged import CheckpointChanged, stage_recorded
from rlx.evaluate.variables import plain_environment
from rlx.sandbox import Box, Caps, Enforced

SCHEMA = 1
LEVEL = "sealed"
CHANGED = "changed"
_CODE = "import sys; sys.path.append(sys.argv[1]); from rlx.evaluate.chamber import main; main()"
_LOOK_SECONDS = 0.2
_LONGEST_ANSWER = 2**28
_TAIL_BYTES, _LOG_BYTES = 4096, 2**20


@dataclass(frozen=True)
class Limits:
    """What measuring one checkpoint may take; what is passed ends it, and says so."""

    seconds: float = 600.0
    start_seconds: float = 120.0
    answer_seconds: float = 20.0
    memory_bytes: int = 16 * 2**30
    scratch_bytes: int = 2 * 2**30
    processes: int = 128


@dataclass(frozen=True)
class Seal:
    """How checkpoints are measured: the baseline's experiment in the pinned tree, on the episodes from `first` on.

    `policy` is how a foreign policy is loaded (`path/file.py:load`, or `rlx` for rlx's own checkpoints whose policy has
    code of its own), from the folder `policy_root`. `reads` are further folders that the environment needs.
    """

    experiment: Mapping[str, Any]
    pin: Pin
    purpose: Purpose
    first: int
    episodes: int
    python_path: tuple[str, ...] = (".",)
    policy: str | None = None
    policy_root: Path | None = None
    reads: tuple[Path, ...] = ()
    limits: Limits = Limits()
    may_go_unenforced: bool = False


@dataclass(frozen=True)
class Subject:
    """A checkpoint to measure: where it is, the hash it must have (`staged.sha256`), and where its document goes.

    `seed` is the training seed whose episodes it plays.
    """

    checkpoint: Path
    sha256: str | None
    out: Path
    seed: int = 0

    @property
    def log(self) -> Path:
        """Where the words of an evaluation that failed are kept."""
        return self.out.with_suffix(".log")


@dataclass(frozen=True)
class Failure:
    """Why a checkpoint has no score: a code and words.

    Codes: `checkpoint`, `changed` (it is not the one that was recorded), `policy`, `environment` (it raised on the
    policy's actions), `evidence` (it does not fit, or the score is no number), `metric` (there is no such figure),
    `time`, `memory`, `disk`, `processes`, `died`; of commands `command` and `result`.
    `is_policys` says whose failure it is: the policy's own, which then scores nothing, or nobody's: then measure again.
    """

    code: str
    says: str
    hint: str | None = None
    is_policys: bool = True


@dataclass(frozen=True)
class Sealed:
    """A checkpoint's document, or why there is none."""

    subject: Subject
    document: Mapping[str, Any] | None = None
    failure: Failure | None = None

    def required(self) -> Mapping[str, Any]:
        """Return the document, or raise the failure as invalid evidence."""
        if self.document is None:
            assert self.failure is not None
            raise EvidenceInvalid(f"{self.failure.code}: {self.failure.says}", hint=self.failure.hint)
        return self.document


def sealed(seal: Seal, subjects: Sequence[Subject]) -> list[Sealed]:
    """Measure checkpoints and write each one's document; one that cannot be measured does not keep others from it.

    Raises where nothing can be measured: the pinned tree is another, its environment cannot be made, nothing holds.
    """
    with tempfile.TemporaryDirectory(prefix="rlx-seal-") as folder:
        chamber = _Chamber(seal, Path(folder).resolve(), subjects)
        chamber.work()
    seal.pin.verify()
    assert chamber.enforced is not None
    return [_kept(chamber.found[index], seal, chamber.enforced.document()) for index in range(len(subjects))]


def _kept(one: Sealed, seal: Seal, enforced: Mapping[str, Any]) -> Sealed:
    if one.document is None:
        return one
    played = episode_seeds(seal.purpose, seal.first, seal.episodes, seed=one.subject.seed)
    document = {
        "schema": SCHEMA,
        "level": LEVEL,
        "purpose": seal.purpose,
        "first": seal.first,
        "seeds": [played.start, played.stop - 1],
        "pin": seal.pin.sha256,
        "policy": seal.policy,
        **one.document,
        "enforced": enforced,
    }
    one.subject.out.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(one.subject.out, document)
    return Sealed(one.subject, document)


@dataclass(frozen=True)
class _Evaluator:
    """The evaluator's process, where it may write, and what it prints."""

    process: sandbox.Program
    scratch: Path
    log: IO[bytes]


@dataclass
class _Chamber:
    """One side's checkpoints on their way through the evaluator's process."""

    seal: Seal
    folder: Path
    subjects: Sequence[Subject]
    found: dict[int, Sealed] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    current: int | None = None
    enforced: Enforced | None = None

    def work(self) -> None:
        """Stage every checkpoint, then let the evaluator measure them; again without one that ended it."""
        (self.folder / "staged").mkdir()
        with self._started() as evaluator:  # it imports meanwhile, and does nothing before it is asked
            self._prepare()
            if self._left:
                self._measure(evaluator)
        while self._left:
            with self._started() as evaluator:
                self._measure(evaluator)

    @property
    def _left(self) -> list[int]:
        return [index for index in range(len(self.subjects)) if index not in self.found]

    def _prepare(self) -> None:
        """Try the box out, verify the tree and stage the checkpoints."""
        self.seal.pin.verify()
        self.enforced = sandbox.probed(self._box(self.folder), may_go_unenforced=self.seal.may_go_unenforced)
        for index in range(len(self.subjects)):
            self._stage(index)

    def _stage(self, index: int) -> None:
        subject = self.subjects[index]
        try:
            self.digests[index] = stage_recorded(subject.checkpoint, self._staged(index), subject.sha256)
        except RlxError as error:
            self._fail(index, unstaged(error))

    def _staged(self, index: int) -> Path:
        return self.folder / "staged" / f"{index}{self.subjects[index].checkpoint.suffix}"

    def _fail(self, index: int, failure: Failure) -> None:
        self.found[index] = Sealed(self.subjects[index], failure=failure)

    @contextlib.contextmanager
    def _started(self) -> Iterator[_Evaluator]:
        """Start an evaluator, which waits for its request, and end it with everything below it."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        with tempfile.TemporaryFile() as log:
            process = sandbox.start(
                [sys.executable, "-s", "-P", "-B", "-c", _CODE, str(Path(rlx.__file__).parents[1])],
                self._box(scratch), env=self._environment(scratch), cwd=self.seal.pin.folder,
                stdin=sandbox.PIPE, stdout=sandbox.PIPE, stderr=log, may_go_unenforced=self.seal.may_go_unenforced,
            )  # fmt: skip
            try:
                yield _Evaluator(process, scratch, log)
            finally:
                sandbox.kill(process)
                _close(process)

    def _measure(self, evaluator: _Evaluator) -> None:
        self.current = None
        failure = self._listen(evaluator)
        if failure is None and self._left:
            sandbox.kill(evaluator.process)
            says = f"the evaluator ended with {evaluator.process.returncode}: {tail(evaluator.log)}"
            failure = Failure("died", says, is_policys=False)
        if failure is not None:
            keep(evaluator.log, self.subjects[self._left[0] if self.current is None else self.current])
            self._settle(failure)

    def _settle(self, failure: Failure) -> None:
        """Give a failure to the checkpoint that was being measured; before the first one it is everybody's."""
        if self.current is None or self.current in self.found:
            raise EvidenceInvalid(f"nothing could be measured: {failure.says}", hint=failure.hint)
        is_policys = failure.is_policys and self.seal.policy is not None  # weights alone neither stall nor fill a disk
        self._fail(self.current, replace(failure, is_policys=is_policys))

    def _listen(self, evaluator: _Evaluator) -> Failure | None:
        """Hand the request over and take the answers in; return what ended the evaluator before its time."""
        limits = self.seal.limits
        caps = Caps(limits.processes, limits.memory_bytes, evaluator.scratch, limits.scratch_bytes)
        deadline = time.monotonic() + limits.start_seconds
        talk = _Talk(evaluator.process, self._request(evaluator.scratch))
        while self._left and not talk.is_over:
            for answer in talk.lines(_LOOK_SECONDS):
                if "failed" in answer:
                    return Failure(**answer["failed"])
                self._take(answer)
                deadline = time.monotonic() + limits.seconds
            if time.monotonic() > deadline:
                given = limits.start_seconds if self.current is None else limits.seconds
                return Failure("time", f"it took longer than {given:g} s", "evaluation.minutes in the contract")
            if breach := sandbox.breach(evaluator.process.pid, caps):
                return Failure(breach.name, f"it used {breach.says}")
        return None

    def _take(self, answer: Mapping[str, Any]) -> None:
        if "began" in answer:
            self.current = int(answer["began"])
            return
        index = int(answer["index"])
        if "failure" in answer:
            self._fail(index, Failure(**answer["failure"]))
        else:
            document = {**answer["document"], "checkpoint": {"sha256": self.digests[index]}}
            self.found[index] = Sealed(self.subjects[index], document)

    def _request(self, scratch: Path) -> bytes:
        seal = self.seal
        request = {
            "experiment": seal.experiment,
            "root": str(seal.pin.folder.resolve()),
            "python_path": seal.python_path,
            "purpose": seal.purpose,
            "first": seal.first,
            "episodes": seal.episodes,
            "subjects": [
                {"index": index, "path": str(self._staged(index)), "seed": self.subjects[index].seed}
                for index in self._left
            ],
            "policy": self._policy(scratch),
        }
        return files.encode(request)

    def _policy(self, scratch: Path) -> dict[str, Any] | None:
        seal = self.seal
        if seal.policy is None:
            return None
        assert seal.policy_root is not None
        return {
            "reference": seal.policy,
            "root": str(seal.policy_root.resolve()),
            "scratch": str(scratch),
            "hidden": [str(seal.pin.folder.resolve()), str(seal.pin.folder.resolve().parent)],
            "load_seconds": seal.limits.start_seconds,
            "answer_seconds": seal.limits.answer_seconds,
            "memory_bytes": seal.limits.memory_bytes,
            "may_go_unenforced": seal.may_go_unenforced,
        }

    def _box(self, scratch: Path) -> Box:
        seal = self.seal
        own = [seal.pin.folder, self.folder / "staged", *([seal.policy_root] if seal.policy_root else []), *seal.reads]
        return Box(
            reads=(*sandbox.system_reads(), *own),
            writes=(scratch,),
            memory_bytes=seal.limits.memory_bytes,
            file_bytes=seal.limits.scratch_bytes,
            processes=seal.limits.processes,
        )

    def _environment(self, scratch: Path) -> dict[str, str]:
        private = sandbox.private(scratch / "own")
        return {**plain_environment(), **private, "RLX_ROOT": str(self.seal.pin.folder.resolve())}


class _Talk:
    """The request on its way in, and the lines of the answer on their way out, without waiting for either."""

    def __init__(self, process: sandbox.Program, request: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._left = memoryview(request)
        self._buffer = bytearray()
        self.is_over = False
        for stream in (self._in, self._out):
            os.set_blocking(stream.fileno(), False)

    def lines(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the answers that come within some seconds."""
        readable, writable, _ = select.select([self._out], [self._in] if self._left else [], [], seconds)
        if writable:
            self._write()
        if readable:
            block = os.read(self._out.fileno(), 2**20)
            self.is_over = not block
            self._buffer += block
        if len(self._buffer) > _LONGEST_ANSWER:
            raise EvidenceInvalid(f"the evaluator's answer is longer than {_LONGEST_ANSWER} bytes")
        *complete, rest = self._buffer.split(b"\n")
        self._buffer = rest
        yield from (files.decode(bytes(line)) for line in complete)

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._in.fileno(), self._left) :]
        except BrokenPipeError:
            self._left = memoryview(b"")
        if not self._left:
            self._in.close()


def _close(process: sandbox.Program) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def unstaged(error: RlxError) -> Failure:
    """Return why a checkpoint cannot be measured: it does not read, or is not the one that was recorded."""
    return Failure(CHANGED if isinstance(error, CheckpointChanged) else "checkpoint", error.message, error.hint)


def tail(log: IO[bytes]) -> str:
    """Return the last line that a program wrote."""
    lines = _end(log, _TAIL_BYTES).decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else "without a word"


def keep(log: IO[bytes], subject: Subject) -> None:
    """Keep what an evaluation that failed has printed, beside where its document would be."""
    subject.log.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(subject.log, _end(log, _LOG_BYTES))


def _end(log: IO[bytes], size: int) -> bytes:
    log.seek(max(0, log.seek(0, os.SEEK_END) - size))
    return log.read()
