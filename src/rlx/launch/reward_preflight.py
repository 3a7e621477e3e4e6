"""Rescore a run's stored trajectories with a new reward function, in a child process with limits.

The limits (CPU seconds, memory, no file writes) stop accidents. Not covered: malice. The function is code of the person
who names it, and runs with that person's rights.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import errors, files
from rlx.diagnose.reward_review.ranking import FEWEST, Preflight, judge
from rlx.errors import EvidenceInvalid, JobFailed, NotFound, RlxError
from rlx.launch.resources import worker_environment
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.evaluate.trajectory import Trajectory

EPISODES = 20
CPU_SECONDS = 60
WALL_SECONDS = 120
MEMORY_BYTES = 8 * 2**30


def preflight(reference: str, run: Run, *, root: Path) -> Preflight:
    """Judge the reward function `path/file.py:name` on the stored episodes of a run; raise if they are too few."""
    episodes = _episodes(run)
    successes = sum(bool(episode.success) for episode in episodes)
    failures = len(episodes) - successes
    if min(successes, failures) < FEWEST:
        missing = f"successes: rlx eval {run.name}"
        if successes >= FEWEST:
            missing = f"failures: rlx eval {run.name}:untrained"
        raise EvidenceInvalid(
            f"{run.name} keeps {successes} successes and {failures} failures; {FEWEST} of each are needed",
            hint=f"for more {missing} --keep-trajectories --episodes {2 * EPISODES}",
        )
    scores = _score_in_child(reference, run, root=root)
    judged = judge(
        [score["total"] for score in scores],
        [float(episode.rewards.sum()) for episode in episodes],
        [bool(episode.success) for episode in episodes],
        not_finite=sum(score["not_finite"] for score in scores),
    )
    assert judged is not None
    return judged


def _episodes(run: Run) -> list[Trajectory]:
    """Return the stored episodes of a run that say whether they succeeded."""
    from rlx.evaluate.trajectory import read, stored_trajectories

    episodes = [episode for path in stored_trajectories(run.path) for episode in read(path)]
    if not episodes:
        raise NotFound(f"{run.name} keeps no trajectories", hint=f"rlx eval {run.name} --keep-trajectories")
    known = [episode for episode in episodes if episode.success is not None]
    if not known:
        raise EvidenceInvalid(
            f"the {len(episodes)} stored episodes of {run.name} say nothing about success",
            hint='report info["is_success"] with the last step of an episode, then evaluate again',
        )
    return known


def _score_in_child(reference: str, run: Run, *, root: Path) -> list[dict[str, Any]]:
    """Run the function in a child process and return its scores of the episodes."""
    argv = [sys.executable, "-P", "-m", "rlx.launch.reward_preflight", reference, str(run.path), str(root)]
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
        return [{**score, "total": files.number(score["total"])} for score in answer["scores"]]
    silent = [f"`{reference}` ended with exit code {done.returncode}"]
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or silent
    kind = getattr(errors, answer.get("kind", ""), JobFailed)
    raise kind(answer.get("error") or lines[-1], hint=answer.get("hint"))


def main(argv: list[str]) -> int:
    """Score the trajectories of the run `argv[1]` with the function `argv[0]`; the answer is JSON on stdout."""
    from rlx.evaluate.rescore_trajectories import rescore

    answer = os.dup(1)
    os.dup2(2, 1)  # the function's own prints do not belong to the answer
    episodes = _episodes(Run(Path(argv[1])))
    _limit()
    try:
        scores = rescore(argv[0], episodes, root=Path(argv[2]))
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
