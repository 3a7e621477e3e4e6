"""Check in a sandbox whether an experiment can train: this process never imports a candidate's code.

The candidate's code can fake the answer, so rlx uses only what can do no harm: the backend, or why none can train.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files, plugins
from rlx.config.load import document, parse
from rlx.config.schema import Experiment
from rlx.errors import RlxError
from rlx.launch.resources import job_environment, worker_environment
from rlx.sandbox.popen import PIPE, SandboxedCommand, last_line, run
from rlx.sandbox.spec import SandboxSpec, make_private_home, system_reads

SECONDS = 60.0
LONGEST_ANSWER = 1_000_000


@dataclass(frozen=True)
class TrainingCheck:
    """The result of the check: the experiment with its backend, or why it cannot train."""

    experiment: Experiment | None
    problem: str = ""


def check_in_sandbox(
    experiment: Experiment, *, tree: Path, reads: Sequence[Path] = (), may_go_unenforced: bool = False
) -> TrainingCheck:
    """Check an experiment against the code in a folder, as `launch.check` does."""
    asked = ask_in_sandbox(
        "rlx.launch.study_jobs.check_in_sandbox", document(experiment), tree=tree, reads=reads,
        may_go_unenforced=may_go_unenforced,
    )  # fmt: skip
    answer = asked.answer
    if answer is None:
        return TrainingCheck(None, asked.problem)
    if answer.get("backend") in plugins.BACKENDS:
        return TrainingCheck(experiment.model_copy(update={"backend": answer["backend"]}))
    if "error" not in answer:
        return TrainingCheck(None, "the candidate's code changed the answer of the check")
    problem = str(answer["error"])
    if answer.get("hint"):
        problem += f" ({answer['hint']})"
    return TrainingCheck(None, problem)


@dataclass(frozen=True)
class SandboxAnswer:
    """What a program said about a candidate's code, or why it said nothing."""

    answer: dict[str, Any] | None
    problem: str = ""


def ask_in_sandbox(
    module: str, request: object, *, tree: Path, reads: Sequence[Path] = (), may_go_unenforced: bool = False
) -> SandboxAnswer:
    """Run one of rlx's modules on a candidate's tree, in a sandbox; its last line on stdout is the answer."""
    with tempfile.TemporaryDirectory(prefix="rlx-ask-") as folder, tempfile.TemporaryFile() as log:
        place = Path(folder)
        spec = SandboxSpec(
            reads=(*system_reads(), tree, *reads), writes=(place,), memory_bytes=8 * 2**30,
            file_bytes=2**20, cpu_seconds=int(SECONDS), processes=64,
        )  # fmt: skip
        usual = job_environment(worker_environment({}, root=tree, gpu=None))
        environment = {**usual, **make_private_home(place), "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable, "-P", "-m", module, str(tree)]
        command = SandboxedCommand(argv, spec, environment, tree, may_go_unenforced)
        try:
            with run(command, stdin=PIPE, stdout=PIPE, stderr=log) as child:
                output, _ = child.communicate(files.encode(request), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return SandboxAnswer(None, f"the candidate's code does not answer within {SECONDS:.0f} seconds")
        exit_code = child.returncode
        last = last_line(log)
    try:
        answer = files.decode(output[-LONGEST_ANSWER:].rpartition(b"\n")[2])
    except (ValueError, RlxError):
        answer = None
    if isinstance(answer, dict):
        return SandboxAnswer(answer)
    problem = f"the candidate's code ended the check (exit {exit_code}): its import or its env fails: {last}"
    return SandboxAnswer(None, problem)


def main(argv: list[str]) -> int:
    """Check the experiment on stdin against the folder `argv[0]`; the answer is the last line on stdout."""
    from rlx.launch.launch import check

    stdout = os.dup(1)
    os.dup2(2, 1)  # the project's own prints do not belong to the answer
    experiment = parse(files.decode(sys.stdin.buffer.read()))
    try:
        answer: dict[str, object] = {"backend": check(experiment, root=Path(argv[0])).experiment.backend}
    except RlxError as error:
        answer = {"error": error.message, "hint": error.hint}
    with os.fdopen(stdout, "wb") as stream:
        stream.write(files.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
