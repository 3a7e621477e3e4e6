"""Prove that resuming is exact: train a stretch once in one go and once with a break, and compare every value."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import JobFailed, UsageError
from rlx.launch.resources import worker_environment
from rlx.launch.supervisor import project_of
from rlx.runs import checkpoint
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run, Seed
from rlx.train.session import Session

if TYPE_CHECKING:
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoint import Bundle, Checkpoint

LEAST_STEPS = 2000
SCRATCH = "nothing"


def prove(run: Run, seed: Seed) -> dict[str, Any]:
    """Train on from a seed's newest unfinished checkpoint, with and without a break, and say whether both agree."""
    if run.is_opaque:
        raise UsageError(f"{run.name} is trained by a program of its own", hint=f"rlx resume {run.name}")
    start = _start(run, seed)
    first = start.step if start else 0
    middle, end = _stretch(run, first)
    origin = str(start.path) if start else SCRATCH
    with tempfile.TemporaryDirectory() as folder:
        whole = _train(run, seed, origin, end, Path(folder) / "whole")
        half = _train(run, seed, origin, middle, Path(folder) / "half")
        joined = _train(run, seed, str(half.path), end, Path(folder) / "joined")
    difference = _difference(whole, joined)
    return {
        "seed": seed.number,
        "from": first,
        "break": half.step,
        "to": whole.step,
        "label": half.resume,
        "missing": half.missing,
        "is_equal": not difference,
        "difference": difference,
    }


def _start(run: Run, seed: Seed) -> Checkpoint | None:
    """Return the newest checkpoint that leaves something to train; None starts from nothing."""
    found = [checkpoint.read(seed.checkpoints / name) for name in checkpoint.names(seed.checkpoints)]
    unfinished = [item for item in found if item.step < run.planned_steps]
    return max(unfinished, key=lambda item: item.step, default=None)


def _stretch(run: Run, first: int) -> tuple[int, int]:
    """Return where to break and where to end: a few updates, not beyond the plan."""
    algo = run.config["algo"]
    rollout = int(algo.get("rollout_steps", 1)) * int(run.config["env"].get("num_envs", 1))
    span = max(LEAST_STEPS, 4 * rollout, 2 * int(algo.get("learning_starts", 0)))
    end = min(run.planned_steps, first + span)
    return first + (end - first) // 2, end


def _train(run: Run, seed: Seed, origin: str, until: int, target: Path) -> Checkpoint:
    """Train in a process of its own, as a worker would, and return where it ended."""
    root = project_of(run)
    done = subprocess.run(
        [sys.executable, "-m", "rlx.launch.prove", str(run.path), str(seed.number), origin, str(until), str(target)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=worker_environment(run.config, root=root, gpu=None),
        cwd=root,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise JobFailed(f"{run.name}: seed {seed.number}: {lines[-1] if lines else 'the proof failed'}")
    return checkpoint.read(target)


class _Stretch(Session):
    """A session that logs and evaluates nothing and ends at a given step, keeping what the trainer stood at."""

    def __init__(self, *arguments: Any, until: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._until = until
        self.reached: Bundle | None = None

    def after_update(
        self, step: int, metrics: Callable[[], Mapping[str, float]], *, policy: Policy, snapshot: Callable[[], Bundle]
    ) -> bool:
        self.step = step
        if step >= self._until:
            self.reached = snapshot()
        return step < self._until


def main(argv: list[str]) -> int:
    """Train a seed of the run `argv[0]` from the checkpoint `argv[2]` to a step and save it at `argv[4]`."""
    from rlx.config.load import document, parse
    from rlx.train.trainer import trainer_for

    run, number, origin, until, target = Run(Path(argv[0])), int(argv[1]), argv[2], int(argv[3]), Path(argv[4])
    experiment = parse(run.config, source=run.name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / f"seed_{number}"
        folder.mkdir()
        live = LiveSeed(folder, root=project_of(run))
        start = None if origin == SCRATCH else checkpoint.read(Path(origin))
        session = _Stretch(experiment, live, checkpoint=start, until=until)
        trainer_for(experiment).train(session)
        session.close()
        live.close()
    assert session.reached is not None
    checkpoint.write(target.parent, session.reached, name=target.name, config=document(experiment))
    return 0


def _difference(one: Checkpoint, other: Checkpoint) -> str:
    """Name the first value that differs; nothing where all are equal."""
    import numpy as np

    if one.step != other.step:
        return f"step {one.step} against {other.step}"
    for member in ("policy", "optimizer"):
        ours, theirs = getattr(one, member), getattr(other, member)
        for name in sorted(set(ours) | set(theirs)):
            if name not in ours or name not in theirs or not np.array_equal(ours[name], theirs[name], equal_nan=True):
                return f"{member} {name}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
