"""Preflight: re-score a run's stored trajectories with a reward function of one's own, in a child process with limits.

The limits (CPU seconds, memory, no file written) stop an accident. What is not covered: intent. The function is code of
the person who names it, and runs with that person's rights.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import errors, files
from rlx.diagnose.preflight import FEWEST, Preflight, judge
from rlx.errors import EvidenceInvalid, JobFailed, NotFound, RlxError
from rlx.launch.resources import worker_environment
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.evaluate.trajectory import Trajectory

EPISODES = 20
CPU_SECONDS, WALL_SECONDS, MEMORY_BYTES = 60, 120, 8 * 2**30


def preflight(reference: str, run: Run, *, root: Path) -> Preflight:
    """Judge the reward function `path/file.py:name` on the episodes a run keeps; raises where they do not suffice."""
    known = _episodes(run)
    won = sum(bool(one.success) for one in known)
    if min(won, len(known) - won) < FEWEST:
        lacking, policy = ("successes", run.name) if won < FEWEST else ("failures", f"{run.name}:untrained")
        raise EvidenceInvalid(
            f"{run.name} keeps {won} successes and {len(known) - won} failures; {FEWEST} of each are needed",
            hint=f"for more {lacking}: rlx eval {policy} --keep-trajectories --episodes {2 * EPISODES}",
        )
    scores = _scored(reference, run, root=root)
    judged = judge(
        [score["total"] for score in scores],
        [float(one.rewards.sum()) for one in known],
        [bool(one.success) for one in known],
        not_finite=sum(score["not_finite"] for score in scores),
    )
    assert judged is not None
    return judged


def _episodes(run: Run) -> list[Trajectory]:
    """Return the episodes a run keeps that tell whether they succeeded."""
    from rlx.evaluate.trajectory import read, stored

    episodes = [one for path in stored(run.path) for one in read(path)]
    if not episodes:
        raise NotFound(f"{run.name} keeps no trajectories", hint=f"rlx eval {run.name} --keep-trajectories")
    known = [one for one in episodes if one.success is not None]
    if not known:
        raise EvidenceInvalid(
            f"the {len(episodes)} stored episodes of {run.name} say nothing about success",
            hint='report info["is_success"] with the last step of an episode, then evaluate again',
        )
    return known


def _scored(reference: str, run: Run, *, root: Path) -> list[dict[str, Any]]:
    """Run the function in a process of its own and return its scores of the episodes that know their success."""
    argv = [sys.executable, "-m", "rlx.launch.preflight", reference, str(run.path), str(root)]
    environment = worker_environment({}, root=root, gpu=None)
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=environment, cwd=root, timeout=WALL_SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise JobFailed(f"`{reference}` took more than {WALL_SECONDS} seconds", hint="make it faster") from None
    if done.returncode < 0:
        limits = f"{CPU_SECONDS} s of CPU, {MEMORY_BYTES // 2**30} GB, no files"
        raise JobFailed(f"`{reference}` was ended by signal {-done.returncode}", hint=f"its limits: {limits}")
    answer = files.decode(done.stdout) if done.stdout else {}
    if "scores" in answer:
        return [{"total": files.number(one["total"]), "not_finite": one["not_finite"]} for one in answer["scores"]]
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else f"`{reference}` ended with exit code {done.returncode}"
    kind = getattr(errors, answer.get("kind", ""), JobFailed)
    raise kind(answer.get("error") or last, hint=answer.get("hint"))


def main(argv: list[str]) -> int:
    """Score the trajectories of the run `argv[1]` with the function `argv[0]`; the answer is JSON on stdout."""
    from rlx.evaluate.rescore import rescore

    answer = os.dup(1)
    os.dup2(2, 1)  # what the function prints is talk
    known = _episodes(Run(Path(argv[1])))
    _limit()
    try:
        scores = rescore(argv[0], known, root=Path(argv[2]))
        document: dict[str, Any] = {"scores": [vars(score) for score in scores]}
    except RlxError as error:
        document = {"error": error.message, "hint": error.hint, "kind": type(error).__name__}
    with os.fdopen(answer, "wb") as stream:
        stream.write(files.encode(document))
    return 0


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
