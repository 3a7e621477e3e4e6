"""Prove that resuming is exact: train some steps once without and once with a break, and compare every value."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import JobFailed, UsageError
from rlx.evaluate.stored_code import stored_experiment
from rlx.launch.resources import worker_environment
from rlx.launch.supervisor import project_of
from rlx.launch.worker import make_project_importable
from rlx.runs.checkpoints import checkpoint
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run, Seed
from rlx.train.session import Session

if TYPE_CHECKING:
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint

LEAST_STEPS = 2000
SCRATCH = "nothing"


def prove(run: Run, seed: Seed) -> dict[str, Any]:
    """Train on from a seed's newest unfinished checkpoint, with and without a break, and compare the results."""
    if run.is_opaque:
        raise UsageError(f"{run.name} is trained by a program of its own", hint=f"rlx resume {run.name}")
    stored_experiment(run, root=project_of(run))
    first = 0
    origin = SCRATCH
    start = _start(run, seed)
    if start:
        first = start.step
        origin = str(start.path)
    middle, end = _stretch(run, first)
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
    """Return the newest checkpoint before the end of training; None means: start from scratch."""
    found = [checkpoint.read(seed.checkpoints / name) for name in checkpoint.names(seed.checkpoints)]
    unfinished = [item for item in found if item.step < run.planned_steps]
    return max(unfinished, key=lambda item: item.step, default=None)


def _stretch(run: Run, first: int) -> tuple[int, int]:
    """Return the steps at which to break and to end: a few updates, within the planned steps."""
    algo = run.config["algo"]
    rollout = int(algo.get("rollout_steps", 1)) * int(run.config["env"].get("num_envs", 1))
    span = max(LEAST_STEPS, 4 * rollout, 2 * int(algo.get("learning_starts", 0)))
    end = min(run.planned_steps, first + span)
    return first + (end - first) // 2, end


def _train(run: Run, seed: Seed, origin: str, until: int, target: Path) -> Checkpoint:
    """Train in a child process, as a worker does, and return the last checkpoint."""
    root = project_of(run)
    arguments = (str(run.path), str(seed.number), origin, str(until), str(target))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rlx.launch.prove_resume", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=worker_environment(run.config, root=root, gpu=None),
        cwd=root,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["the proof failed"]
        raise JobFailed(f"{run.name}: seed {seed.number}: {lines[-1]}")
    return checkpoint.read(target)


class _Stretch(Session):
    """A session that neither logs nor evaluates, ends at a given step, and keeps the trainer's state at that step."""

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

    run = Run(Path(argv[0]))
    make_project_importable(run)
    target = Path(argv[4])
    experiment = parse(run.config, source=run.name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / f"seed_{argv[1]}"
        folder.mkdir()
        live = LiveSeed(folder, root=project_of(run))
        start = None if argv[2] == SCRATCH else checkpoint.read(Path(argv[2]))
        session = _Stretch(experiment, live, checkpoint=start, until=int(argv[3]))
        trainer_for(experiment).train(session)
        session.close()
        live.close()
    assert session.reached is not None
    checkpoint.write(target.parent, session.reached, name=target.name, config=document(experiment))
    return 0


def _difference(whole: Checkpoint, joined: Checkpoint) -> str:
    """Name the first value that differs; empty if all are equal."""
    import numpy as np

    if whole.step != joined.step:
        return f"step {whole.step} against {joined.step}"
    for part in ("policy", "optimizer"):
        first = getattr(whole, part)
        second = getattr(joined, part)
        for name in sorted(first.keys() | second.keys()):
            is_in_both = name in first and name in second
            if not is_in_both or not np.array_equal(first[name], second[name], equal_nan=True):
                return f"{part} {name}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
