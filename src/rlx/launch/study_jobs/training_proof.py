"""Proof that a seed trained: rlx's own learner counted its steps, its weights moved, and it took a plausible time.

Only rlx's learner counts steps and leaves the untrained policy behind. A user's own program does not, so its runs have
no proof. Code that a person approved, such as the baseline, may train with a step of 0: its weights need not move.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rlx import TYPE_CHECKING
from rlx.config.schema import COMMAND
from rlx.errors import RlxError
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED
from rlx.runs.summary import trained_seconds

if TYPE_CHECKING:
    import numpy as np

LEAST_SHARE = 0.99
"""The share of the planned steps that a completed seed has at least."""
LEAST_MOVE = 1e-8
"""The change of a weight that counts. Biases start at 0, so that even a vanishing step leaves a trace."""
MOST_STEPS_PER_SECOND = 5e6
"""Faster than this, no environment was stepped."""


@dataclass(frozen=True)
class TrainingProof:
    """What rlx knows about one seed's training; `has_moved` is None if the untrained policy is not known."""

    seed: int
    steps: int
    planned: int
    seconds: float
    has_moved: bool | None

    @property
    def problems(self) -> list[str]:
        """Why this was not a training; empty if it was."""
        found = []
        if self.steps < LEAST_SHARE * self.planned:
            found.append(f"seed {self.seed} took {self.steps:,} of {self.planned:,} environment steps")
        if self.has_moved is False:
            found.append(f"seed {self.seed} never trained: its weights are those of the untrained policy")
        if self.steps > MOST_STEPS_PER_SECOND * max(self.seconds, 1e-9):
            found.append(f"seed {self.seed} took {self.seconds:g} seconds for {self.steps:,} steps")
        return found


def run_proofs(run: Run) -> Iterator[TrainingProof]:
    """Yield the proof of every completed seed of a run; none for a user's own program, which counts itself."""
    if run.config.get("backend") == COMMAND:
        return
    for seed in run.seeds:
        if seed.status.state == COMPLETED:
            yield TrainingProof(seed.number, seed.step, run.planned_steps, trained_seconds(seed), _has_moved(seed))


def problems(run: Run, *, must_move: bool) -> list[str]:
    """Return why the seeds of a run are not trainings, each with the run's name."""
    proofs = run_proofs(run)
    if not must_move:
        proofs = (replace(proof, has_moved=None) for proof in proofs)
    return [f"{run.name}: {problem}" for proof in proofs for problem in proof.problems]


def _has_moved(seed: Seed) -> bool | None:
    try:
        before = checkpoints.read(seed.checkpoints / checkpoints.UNTRAINED, with_replay=False).policy
        after = checkpoints.read(seed.checkpoints / "latest", with_replay=False).policy
    except (RlxError, OSError):
        return None
    if before.keys() != after.keys():
        return True
    if any(before[name].shape != after[name].shape for name in before):
        return True
    return any(_distance(before[name], after[name]) > LEAST_MOVE for name in before)


def _distance(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> float:
    """Return the largest change of a number; NaN counts as a change."""
    import numpy as np  # `rlx next` imports this module and measures no weights

    if not before.size:
        return 0.0
    largest = float(np.max(np.abs(after.astype(np.float64) - before.astype(np.float64))))
    return np.inf if np.isnan(largest) else largest
