"""Continue a run in a new one, with lineage: other settings, the same starting weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import NotFound, UsageError
from rlx.launch import launch
from rlx.runs import checkpoint
from rlx.runs.run import SNAPSHOT, Run, Seed
from rlx.train.trainer import refuse_other_backend

if TYPE_CHECKING:
    from rlx.config.schema import Experiment


def fork(origin: Run, *, overrides: list[str]) -> Run:
    """Start a new run whose seeds go on from the origin's newest checkpoints."""
    from rlx.launch.supervisor import project_of

    if origin.is_opaque:
        raise UsageError(f"{origin.name} is trained by a program of its own", hint=f"rlx resume {origin.name}")
    sources = {seed.number: _source(origin, seed) for seed in origin.seeds}
    experiment = _experiment(origin, overrides)
    furthest = max(source.step for source in sources.values())
    if furthest >= experiment.algo.total_timesteps:
        raise UsageError(
            f"{origin.name} already stands at step {furthest:,} of {experiment.algo.total_timesteps:,}",
            hint=f"rlx resume {origin.name} --fork -s algo.total_timesteps={2 * furthest}",
        )
    root = project_of(origin)
    experiment = launch.check(experiment, root=root).experiment
    for source in sources.values():
        refuse_other_backend(experiment, source)
    lineage = {"forked_from": origin.name, "steps": {str(number): source.step for number, source in sources.items()}}
    run = launch.create(experiment, root=root, lineage=lineage)
    for number, source in sources.items():
        _copy(source.path, run.seed(number).checkpoints / "latest")
    launch.start(run, sources)
    return Run(run.path)


def _source(origin: Run, seed: Seed) -> checkpoint.Checkpoint:
    found = checkpoint.newest(seed.checkpoints)
    if found is None:
        raise NotFound(f"{origin.name} has no valid checkpoint for seed {seed.number}", hint=f"rlx info {origin.name}")
    return found


def _experiment(origin: Run, overrides: list[str]) -> Experiment:
    from rlx.config.load import load

    seeds = [seed.number for seed in origin.seeds]
    return load(origin.path / SNAPSHOT, overrides=[*overrides, f"seeds={seeds}"])


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True)
    shutil.copytree(source, target)
