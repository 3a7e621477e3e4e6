"""The same small sweep on any executor. RLX_SWEEP_TRIALS=40 makes it as large as a real one."""

from __future__ import annotations

import os
from typing import Any

from rlx.loop.sweep.sweep_log import SweepLog
from tests.conftest import Project

TRIALS = int(os.environ.get("RLX_SWEEP_TRIALS", "4"))
RATE = "algo.learning_rate=log:1e-4:1e-1"


def words_of(project: Project, name: str) -> tuple[str, ...]:
    """Return the command that starts the sweep: rungs, a race and a confirmation on few seeds."""
    config = project.config(
        name, algo={"total_timesteps": 512, "rollout_steps": 32}, eval={"every": 512, "episodes": 2}
    )
    return (
        "sweep", config, "-p", RATE, "--trials", str(TRIALS), "--name", name, "--halving", "0.5,1", "--race", "2",
        "--confirm", "0",
    )  # fmt: skip


def results(project: Project, name: str) -> dict[Any, Any]:
    """Return the score of every training of a finished sweep."""
    state = SweepLog(project.root / ".rlx" / "sweeps" / name).state()
    assert state.is_over
    assert len(state.trials) == TRIALS
    return {job: score.score for job, score in state.scores.items()}


def attempts(project: Project, name: str) -> list[int]:
    """Return how many attempts every seed of a sweep took."""
    state = SweepLog(project.root / ".rlx" / "sweeps" / name).state()
    return [seed.status.attempt for run in state.runs.values() for seed in project.run(run).seeds]


def use(project: Project, *, settings: str) -> None:
    """Write the executor's settings into the project."""
    (project.root / "rlx.toml").write_text(f"[executor]\n{settings}\n")
