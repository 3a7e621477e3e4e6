"""Prove that resuming is exact: train from one checkpoint to a later one again and compare every value."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import JobFailed, NotFound
from rlx.launch.resources import worker_environment
from rlx.launch.supervisor import project_of
from rlx.runs import checkpoint
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run, Seed
from rlx.train.session import Session

if TYPE_CHECKING:
    from rlx.evaluate.policy import Policy
    from rlx.runs.checkpoint import Bundle


def prove(run: Run, seed: Seed) -> dict[str, Any]:
    """Train one stretch of a seed again, in a process of its own, and say whether it came out the same."""
    root = project_of(run)
    done = subprocess.run(
        [sys.executable, "-m", "rlx.launch.prove", str(run.path), str(seed.number)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=worker_environment(run.config, root=root, gpu=None),
        cwd=root,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise JobFailed(f"{run.name}: seed {seed.number}: {lines[-1] if lines else 'the proof failed'}")
    proof: dict[str, Any] = files.decode(done.stdout.splitlines()[-1])
    return proof


class _Stretch(Session):
    """A session that writes nothing and ends at a given step, keeping what the trainer stood at."""

    def __init__(self, *arguments: Any, until: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._until = until
        self.reached: Bundle | None = None

    def after_update(
        self, step: int, metrics: Mapping[str, float], *, policy: Policy, snapshot: Callable[[], Bundle]
    ) -> bool:
        self.step = step
        if step >= self._until:
            self.reached = snapshot()
        return step < self._until


def main(argv: list[str]) -> int:
    """Print the proof for the seed `argv[1]` of the run at `argv[0]` as one JSON line."""
    from rlx.config.load import parse
    from rlx.train.trainer import trainer_for

    run = Run(Path(argv[0]))
    seed = run.seed(int(argv[1]))
    earlier, later = _stretch(run, seed)
    experiment = parse(run.config, source=run.name)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / f"seed_{seed.number}"
        folder.mkdir()
        live = LiveSeed(folder, root=project_of(run))
        session = _Stretch(experiment, live, checkpoint=earlier, until=later.step)
        trainer_for(experiment).train(session)
        live.close()
    difference = _difference(session.reached, later)
    proof = {"seed": seed.number, "from": earlier.step, "to": later.step, "label": earlier.resume,
             "is_equal": not difference, "difference": difference}  # fmt: skip
    sys.stdout.write(files.encode(proof).decode() + "\n")
    return 0


def _stretch(run: Run, seed: Seed) -> tuple[checkpoint.Checkpoint, checkpoint.Checkpoint]:
    """Return the two newest checkpoints at different steps."""
    found = {item.step: item for name in checkpoint.names(seed.checkpoints)
             if name != "best" and (item := checkpoint.read(seed.checkpoints / name))}  # fmt: skip
    steps = sorted(found)
    if len(steps) < 2:
        raise NotFound(f"{run.name}: seed {seed.number} has fewer than two checkpoints to prove anything with")
    return found[steps[-2]], found[steps[-1]]


def _difference(reached: Bundle | None, later: checkpoint.Checkpoint) -> str:
    """Name the first array that differs; nothing where all are equal."""
    import numpy as np

    if reached is None or reached.step != later.step:
        return f"stopped at step {reached.step if reached else 0}, not {later.step}"
    for member in ("policy", "optimizer"):
        ours, theirs = getattr(reached, member), getattr(later, member)
        for name in sorted(set(ours) | set(theirs)):
            if name not in ours or name not in theirs or not np.array_equal(ours[name], theirs[name], equal_nan=True):
                return f"{member} {name}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
