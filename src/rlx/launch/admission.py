"""Ask whether an experiment can train, in a sandbox: a candidate's code is never imported by the process that asks.

The answer is believed only as far as it can do no harm: which backend trains, or why none can.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlx import files, plugins, sandbox
from rlx.config.load import document, parse
from rlx.config.schema import Experiment
from rlx.errors import RlxError
from rlx.evaluate.seal import tail
from rlx.launch.resources import worker_environment
from rlx.sandbox import Box

SECONDS = 60.0
LONGEST_ANSWER = 1_000_000


@dataclass(frozen=True)
class Admission:
    """What came of asking: the experiment with its backend named, or what stands against it."""

    experiment: Experiment | None
    problem: str = ""


def ask(
    experiment: Experiment, *, tree: Path, reads: Sequence[Path] = (), may_go_unenforced: bool = False
) -> Admission:
    """Check an experiment against the code in a tree, as `launch.check` does."""
    from rlx.launch.governed import harmless

    with tempfile.TemporaryDirectory(prefix="rlx-ask-") as folder:
        place = Path(folder)
        box = Box(
            reads=(*sandbox.system_reads(), tree, *reads), writes=(place,), memory_bytes=8 * 2**30,
            file_bytes=2**20, cpu_seconds=int(SECONDS), processes=64,
        )  # fmt: skip
        usual = worker_environment({}, root=tree, gpu=None)
        environment = {**harmless(usual), **sandbox.private(place), "PYTHONDONTWRITEBYTECODE": "1"}
        answer, code, said_last = _asked(experiment, box, environment, tree=tree, may_go_unenforced=may_go_unenforced)
    try:
        said = files.decode(answer)
        if said.get("backend") in plugins.BACKENDS:
            return Admission(experiment.model_copy(update={"backend": said["backend"]}))
        hint = said.get("hint")
        return Admission(None, str(said["error"]) + (f" ({hint})" if hint else ""))
    except (ValueError, KeyError, TypeError, RlxError):
        says = f"the code of the candidate ended the check (exit {code}): its import or its env fails: {said_last}"
        return Admission(None, says)


def _asked(
    experiment: Experiment, box: Box, environment: dict[str, str], *, tree: Path, may_go_unenforced: bool
) -> tuple[bytes, int | None, str]:
    """Return the answer, the exit code and the last line that was said beside it."""
    with tempfile.TemporaryFile() as log:
        child = sandbox.start(
            [sys.executable, "-m", "rlx.launch.admission", str(tree)], box, env=environment, cwd=tree,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, may_go_unenforced=may_go_unenforced,
        )  # fmt: skip
        try:
            answer, _ = child.communicate(files.encode(document(experiment)), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            says = f"the code of the candidate does not answer within {SECONDS:.0f} seconds"
            return files.encode({"error": says}), None, tail(log)
        return answer[-LONGEST_ANSWER:].rpartition(b"\n")[2], child.returncode, tail(log)


def main(argv: list[str]) -> int:
    """Check the experiment on stdin against the tree `argv[0]`; the answer is the last line on stdout."""
    from rlx.launch.launch import check

    told = os.dup(1)
    os.dup2(2, 1)  # what the project's code prints is talk
    experiment = parse(files.decode(sys.stdin.buffer.read()))
    try:
        said: dict[str, object] = {"backend": check(experiment, root=Path(argv[0])).experiment.backend}
    except RlxError as error:
        said = {"error": error.message, "hint": error.hint}
    with os.fdopen(told, "wb") as stream:
        stream.write(files.encode(said))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
