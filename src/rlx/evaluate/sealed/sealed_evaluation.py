"""The sealed evaluation: measure checkpoints in a separate process, from a pinned tree, in a sandbox without network.

The evaluator owns the environment, the episode seeds and the scoring. The rewards are the pinned environment's, and rlx
adds them up. A policy only receives observations. Checkpoints are copied, hashed and compared before anything reads
them. The pinned tree is verified before and after. Many checkpoints share one process.

Not covered: processes outside the sandbox under the same account, and the gaps in `Enforcement.not_covered`. If the
candidate changes the environment itself, it is still measured in the pinned one.
"""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from rlx import files
from rlx.errors import EvidenceInvalid, RlxError
from rlx.evaluate.checkpoint_evaluation import (
    SCHEMA,
    EvaluationFailure,
    EvaluationLimits,
    EvaluationResult,
    Subject,
    evaluation_command,
    keep_log,
    limit_failure,
    python_argv,
    staging_failure,
)
from rlx.evaluate.protocol import Purpose, episode_seeds
from rlx.evaluate.sealed.pinned_tree import PinnedTree
from rlx.evaluate.sealed.stage_checkpoint import stage_recorded
from rlx.sandbox.popen import PIPE, SandboxedProcess, kill, last_line, run
from rlx.sandbox.self_test import verify_enforcement
from rlx.sandbox.spec import SandboxSpec, system_reads
from rlx.sandbox.usage_limits import UsageLimits

LEVEL = "sealed"
_LOOK_SECONDS = 0.2
_LONGEST_ANSWER = 2**28


@dataclass(frozen=True)
class SealedEvaluation:
    """How to measure checkpoints: the baseline's experiment in the pinned tree, on the episodes from `first` on.

    `policy` says how to load a foreign policy (`path/file.py:load`) from the folder `policy_root`. The value `rlx`
    means a checkpoint of rlx whose policy brings its own code. `reads` are further folders that the environment needs.
    """

    experiment: Mapping[str, Any]
    pin: PinnedTree
    purpose: Purpose
    first: int
    episodes: int
    python_path: tuple[str, ...] = (".",)
    policy: str | None = None
    policy_root: Path | None = None
    reads: tuple[Path, ...] = ()
    limits: EvaluationLimits = field(default_factory=EvaluationLimits)
    may_go_unenforced: bool = False
    level: str = LEVEL
    """`reported` if the tree has the candidate's own environment: then its code runs next to the scoring."""


def evaluate_sealed(evaluation: SealedEvaluation, subjects: Sequence[Subject]) -> list[EvaluationResult]:
    """Measure checkpoints and write a document for each. A checkpoint that fails does not stop the others.

    Raises if nothing can be measured: the pinned tree has changed, its environment fails, the sandbox does not hold.
    """
    with tempfile.TemporaryDirectory(prefix="rlx-seal-") as folder:
        session = _Session(evaluation, Path(folder).resolve(), subjects)
        session.measure_all()
    evaluation.pin.verify()
    results = [_with_header(session.results[index], evaluation, session.enforced) for index in range(len(subjects))]
    for result in results:
        result.write()
    return results


def _with_header(
    result: EvaluationResult, evaluation: SealedEvaluation, enforced: Mapping[str, Any]
) -> EvaluationResult:
    if result.document is None:
        return result
    seeds = episode_seeds(evaluation.purpose, evaluation.first, evaluation.episodes, seed=result.subject.seed)
    header = {
        "schema": SCHEMA,
        "level": evaluation.level,
        "purpose": evaluation.purpose,
        "first": evaluation.first,
        "seeds": [seeds.start, seeds.stop - 1],
        "pin": evaluation.pin.sha256,
        "policy": evaluation.policy,
    }
    return replace(result, document={**header, **result.document, "enforced": enforced})


@dataclass(frozen=True)
class _Worker:
    """The evaluator's process, the folder that it may write, and its log."""

    process: SandboxedProcess
    scratch: Path
    log: IO[bytes]


@dataclass
class _Session:
    """Checkpoints that the evaluator's process measures, and their results by index."""

    evaluation: SealedEvaluation
    folder: Path
    subjects: Sequence[Subject]
    results: dict[int, EvaluationResult] = field(default_factory=dict)
    hashes: dict[int, str] = field(default_factory=dict)
    current: int | None = None
    enforced: Mapping[str, Any] = field(default_factory=dict)

    def measure_all(self) -> None:
        """Stage every checkpoint and measure it. If one ends the evaluator, start another for the remaining ones."""
        (self.folder / "staged").mkdir()
        with self._worker() as worker:  # it imports its modules in the meantime, and waits for its request
            self._prepare()
            if self._remaining:
                self._measure(worker)
        while self._remaining:
            with self._worker() as worker:
                self._measure(worker)

    @property
    def _remaining(self) -> list[int]:
        return [index for index in range(len(self.subjects)) if index not in self.results]

    def _prepare(self) -> None:
        """Verify the pinned tree and the sandbox, and stage the checkpoints."""
        self.evaluation.pin.verify()
        spec = self._sandbox(self.folder)
        enforcement = verify_enforcement(spec, may_go_unenforced=self.evaluation.may_go_unenforced)
        self.enforced = enforcement.document()
        for index, subject in enumerate(self.subjects):
            try:
                self.hashes[index] = stage_recorded(subject.checkpoint, self._staged(index), subject.sha256)
            except RlxError as error:
                self._fail(index, staging_failure(error))

    def _staged(self, index: int) -> Path:
        return self.folder / "staged" / f"{index}{self.subjects[index].checkpoint.suffix}"

    def _fail(self, index: int, failure: EvaluationFailure) -> None:
        self.results[index] = EvaluationResult(self.subjects[index], failure=failure)

    @contextlib.contextmanager
    def _worker(self) -> Iterator[_Worker]:
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        command = evaluation_command(
            python_argv("rlx.evaluate.sealed.sealed_worker"),
            self._sandbox(scratch),
            cwd=self.evaluation.pin.folder,
            home=scratch / "own",
            may_go_unenforced=self.evaluation.may_go_unenforced,
            RLX_ROOT=str(self.evaluation.pin.folder.resolve()),
        )
        with tempfile.TemporaryFile() as log, run(command, stdin=PIPE, stdout=PIPE, stderr=log) as process:
            yield _Worker(process, scratch, log)

    def _sandbox(self, scratch: Path) -> SandboxSpec:
        """Return the evaluator's sandbox: it reads the pinned tree and the checkpoints, and writes one folder."""
        evaluation = self.evaluation
        reads = [*system_reads(), evaluation.pin.folder, self.folder / "staged", *evaluation.reads]
        if evaluation.policy_root:
            reads.append(evaluation.policy_root)
        return SandboxSpec(
            reads=tuple(reads),
            writes=(scratch,),
            memory_bytes=evaluation.limits.memory_bytes,
            file_bytes=evaluation.limits.scratch_bytes,
            processes=evaluation.limits.processes,
        )

    def _measure(self, worker: _Worker) -> None:
        self.current = None
        failure = self._receive_answers(worker)
        if failure is None and self._remaining:
            kill(worker.process)
            reason = last_line(worker.log) or "without a message"
            message = f"the evaluator ended with {worker.process.returncode}: {reason}"
            failure = EvaluationFailure("died", message, is_policy_fault=False)
        if failure is None:
            return
        is_before_first = self.current is None or self.current in self.results
        keep_log(worker.log, self.subjects[self._remaining[0] if self.current is None else self.current])
        if is_before_first:
            raise EvidenceInvalid(f"nothing could be measured: {failure.message}", hint=failure.hint)
        # Weights alone neither stall nor fill a disk, so only a policy with its own code can be at fault.
        is_policy_fault = failure.is_policy_fault and self.evaluation.policy is not None
        assert self.current is not None
        self._fail(self.current, replace(failure, is_policy_fault=is_policy_fault))

    def _receive_answers(self, worker: _Worker) -> EvaluationFailure | None:
        """Send the request and take in the answers. Return the failure that ended the evaluator too early."""
        limits = self.evaluation.limits
        usage = UsageLimits(limits.processes, limits.memory_bytes, worker.scratch, limits.scratch_bytes)
        seconds = limits.start_seconds
        deadline = time.monotonic() + seconds
        exchange = _Exchange(worker.process, self._request(worker.scratch))
        while self._remaining and not exchange.is_over:
            for answer in exchange.answers(_LOOK_SECONDS):
                if "failed" in answer:
                    return EvaluationFailure(**answer["failed"])
                self._take(answer)
                seconds = limits.seconds
                deadline = time.monotonic() + seconds
            failure = limit_failure(worker.process, usage, deadline=deadline, seconds=seconds)
            if failure:
                return failure
        return None

    def _take(self, answer: Mapping[str, Any]) -> None:
        if "began" in answer:
            self.current = int(answer["began"])
            return
        index = int(answer["index"])
        if "failure" in answer:
            self._fail(index, EvaluationFailure(**answer["failure"]))
        else:
            document = {**answer["document"], "checkpoint": {"sha256": self.hashes[index]}}
            self.results[index] = EvaluationResult(self.subjects[index], document)

    def _request(self, scratch: Path) -> bytes:
        evaluation = self.evaluation
        subjects = [
            {"index": index, "path": str(self._staged(index)), "seed": self.subjects[index].seed}
            for index in self._remaining
        ]
        return files.encode(
            {
                "experiment": evaluation.experiment,
                "root": str(evaluation.pin.folder.resolve()),
                "python_path": evaluation.python_path,
                "purpose": evaluation.purpose,
                "first": evaluation.first,
                "episodes": evaluation.episodes,
                "subjects": subjects,
                "policy": self._policy(scratch),
            }
        )

    def _policy(self, scratch: Path) -> dict[str, Any] | None:
        """Return how the evaluator starts a process for a foreign policy, and what that must not be able to read."""
        evaluation = self.evaluation
        if evaluation.policy is None:
            return None
        assert evaluation.policy_root is not None
        pinned = evaluation.pin.folder.resolve()
        return {
            "reference": evaluation.policy,
            "root": str(evaluation.policy_root.resolve()),
            "scratch": str(scratch),
            "hidden": [str(pinned), str(pinned.parent)],
            "load_seconds": evaluation.limits.start_seconds,
            "answer_seconds": evaluation.limits.answer_seconds,
            "memory_bytes": evaluation.limits.memory_bytes,
            "may_go_unenforced": evaluation.may_go_unenforced,
        }


class _Exchange:
    """Writes a request and reads answers, one JSON object per line, without blocking on either pipe."""

    def __init__(self, process: SandboxedProcess, request: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in = process.stdin
        self._out = process.stdout
        self._unsent = memoryview(request)
        self._received = bytearray()
        self.is_over = False
        for stream in (self._in, self._out):
            os.set_blocking(stream.fileno(), False)

    def answers(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield the answers that arrive within some seconds."""
        senders = [self._in] if self._unsent else []
        readable, writable, _ = select.select([self._out], senders, [], seconds)
        if writable:
            self._send()
        if readable:
            block = os.read(self._out.fileno(), 2**20)
            self.is_over = not block
            self._received += block
        if len(self._received) > _LONGEST_ANSWER:
            raise EvidenceInvalid(f"the evaluator's answer is longer than {_LONGEST_ANSWER} bytes")
        *lines, self._received = self._received.split(b"\n")
        yield from (files.decode(bytes(line)) for line in lines)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._in.fileno(), self._unsent) :]
        except BrokenPipeError:
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._in.close()
