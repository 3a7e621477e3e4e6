"""Continue a run as a new run: the same starting weights, other settings, and a record of where it came from."""

from __future__ import annotations

import shutil

from rlx.errors import NotFound, UsageError
from rlx.launch import launch
from rlx.runs.checkpoints import checkpoint
from rlx.runs.run import SNAPSHOT, Run
from rlx.train.trainer import refuse_other_backend


def branch_run(origin: Run, *, overrides: list[str]) -> Run:
    """Start a new run whose seeds continue from the newest checkpoints of `origin`."""
    from rlx.config.load import load
    from rlx.evaluate.stored_code import refuse_stored_code
    from rlx.launch.supervisor import project_of

    if origin.is_opaque:
        raise UsageError(f"{origin.name} is trained by a program of its own", hint=f"rlx resume {origin.name}")
    sources: dict[int, checkpoint.Checkpoint] = {}
    for seed in origin.seeds:
        newest = checkpoint.newest(seed.checkpoints)
        if newest is None:
            message = f"{origin.name} has no valid checkpoint for seed {seed.number}"
            raise NotFound(message, hint=f"rlx info {origin.name}")
        sources[seed.number] = newest
    refuse_stored_code(origin.path / SNAPSHOT, root=project_of(origin))
    experiment = load(origin.path / SNAPSHOT, overrides=[*overrides, f"seeds={list(sources)}"])
    furthest = max(source.step for source in sources.values())
    if furthest >= experiment.algo.total_timesteps:
        raise UsageError(
            f"{origin.name} is already at step {furthest:,} of {experiment.algo.total_timesteps:,}",
            hint=f"rlx resume {origin.name} --fork -s algo.total_timesteps={2 * furthest}",
        )
    root = project_of(origin)
    experiment = launch.check(experiment, root=root).experiment
    for source in sources.values():
        refuse_other_backend(experiment, source)
    lineage = {"forked_from": origin.name, "steps": {str(number): source.step for number, source in sources.items()}}
    run = launch.create(experiment, root=root, lineage=lineage)
    for number, source in sources.items():
        shutil.copytree(source.path, run.seed(number).checkpoints / "latest")
    launch.start(run, sources)
    return Run(run.path)
