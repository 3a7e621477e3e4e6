"""What sealed evaluations and command evaluations share: checkpoints, limits, results, and how a process is started."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import rlx
from rlx import files
from rlx.errors import EvidenceInvalid, RlxError
from rlx.evaluate.sealed.stage_checkpoint import CheckpointChanged
from rlx.sandbox.popen import SandboxedCommand, SandboxedProcess, read_end
from rlx.sandbox.spec import SandboxSpec, make_private_home
from rlx.sandbox.usage_limits import UsageLimits, exceeded_limit

SCHEMA = 1
CHANGED = "changed"
_LOG_BYTES = 2**20
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class EvaluationLimits:
    """How much measuring one checkpoint may use. rlx ends an evaluation that exceeds a limit."""

    seconds: float = 600.0
    start_seconds: float = 120.0
    answer_seconds: float = 20.0
    memory_bytes: int = 16 * 2**30
    scratch_bytes: int = 2 * 2**30
    processes: int = 128


@dataclass(frozen=True)
class Subject:
    """A checkpoint to measure, the hash that it must have (`stage_checkpoint`), and the file for its document.

    `seed` is the training seed whose episodes the policy plays.
    """

    checkpoint: Path
    sha256: str | None
    out: Path
    seed: int = 0

    @property
    def log(self) -> Path:
        """The file that keeps the output of a failed evaluation."""
        return self.out.with_suffix(".log")


@dataclass(frozen=True)
class EvaluationFailure:
    """Why a checkpoint has no score.

    The codes are `checkpoint` (unreadable), `changed` (not the recorded one), `policy`, `environment` (it raised an
    error on the policy's actions), `evidence` (the policy does not fit, or the score is not a number), `metric` (there
    is no such figure), `time`, `memory`, `disk`, `processes`, `died`, and for commands `command` and `result`.
    If `is_policy_fault` is true, the policy itself failed and scores nothing. If it is false, measure again.
    """

    code: str
    message: str
    hint: str | None = None
    is_policy_fault: bool = True


@dataclass(frozen=True)
class EvaluationResult:
    """A checkpoint's document, or the reason why there is none."""

    subject: Subject
    document: Mapping[str, Any] | None = None
    failure: EvaluationFailure | None = None

    def require_document(self) -> Mapping[str, Any]:
        """Return the document, or raise the failure as invalid evidence."""
        if self.document is None:
            assert self.failure is not None
            raise EvidenceInvalid(f"{self.failure.code}: {self.failure.message}", hint=self.failure.hint)
        return self.document

    def write(self) -> None:
        """Write the document, if there is one, to its file."""
        if self.document is not None:
            self.subject.out.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(self.subject.out, self.document)


def staging_failure(error: RlxError) -> EvaluationFailure:
    """Return why a checkpoint could not be staged: it is unreadable, or not the one that was recorded."""
    code = "checkpoint"
    if isinstance(error, CheckpointChanged):
        code = CHANGED
    return EvaluationFailure(code, error.message, error.hint)


def limit_failure(
    process: SandboxedProcess, limits: UsageLimits, *, deadline: float, seconds: float
) -> EvaluationFailure | None:
    """Return the failure of a running evaluation that is past its deadline or uses too much."""
    if time.monotonic() > deadline:
        return EvaluationFailure("time", f"it took longer than {seconds:g} s", "evaluation.minutes in the contract")
    exceeded = exceeded_limit(process.pid, limits)
    if exceeded is None:
        return None
    return EvaluationFailure(exceeded.name, f"it used {exceeded.usage}")


def keep_log(log: IO[bytes], subject: Subject) -> None:
    """Keep the output of a failed evaluation next to the file for its document."""
    subject.log.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(subject.log, read_end(log, _LOG_BYTES))


def evaluation_command(
    argv: Sequence[str], spec: SandboxSpec, *, cwd: Path, home: Path, may_go_unenforced: bool, **variables: str
) -> SandboxedCommand:
    """Return a program of an evaluation with its variables: none of rlx's own, one thread, no display.

    `home` is a folder that the sandbox may write; home and temporary files go there.
    """
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(_THREAD_VARIABLES, "1"),
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
        "SDL_NO_SIGNAL_HANDLERS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
        **make_private_home(home),
        **variables,
    }
    return SandboxedCommand(argv, spec, environment, cwd, may_go_unenforced)


def python_argv(module: str, *words: str) -> list[str]:
    """Return the command line that runs `main` of an rlx module with these words.

    The flags keep user packages and the current folder off the import path: it holds a candidate's files.
    """
    code = f"import sys; sys.path.append(sys.argv.pop(1)); from {module} import main; main(sys.argv[1:])"
    return [sys.executable, "-s", "-P", "-B", "-c", code, str(Path(rlx.__file__).parents[1]), *words]
