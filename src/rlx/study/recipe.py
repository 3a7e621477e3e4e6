"""What a candidate's job trains: the baseline's config or command, the changes on top of it, and the phase's budget."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.config.defaults import resolve
from rlx.config.load import parse, read
from rlx.config.schema import Algo, Experiment, Resources
from rlx.errors import ConfigError
from rlx.study.candidate import Candidate
from rlx.study.contract import Contract, Hardware
from rlx.study.lifecycle import Phase
from rlx.study.task import Adapter, Task

SMOKE_SHARE = 0.02


def changes_of(chain: Sequence[Candidate]) -> dict[str, Any]:
    """Return the config changes of a candidate and of those it builds on, later ones on top."""
    return {key: value for one in chain for key, value in one.changes.items()}


def experiment_of(task: Task, changes: Mapping[str, Any], *, tree: Path) -> Experiment:
    """Return what a tree of the repository trains with these changes, as a full training."""
    if task.adapter.kind == "rlx":
        overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        return read(tree / str(task.adapter.config), overrides=overrides)
    return parse(_command_config(task, changes), source=f"task {task.name}")


def job_experiment(
    full: Experiment, contract: Contract, *, name: str, phase: Phase, seeds: Sequence[int]
) -> Experiment:
    """Return a job of some seeds: its name, the phase's share of the steps, the contract's hardware."""
    assert contract.hardware is not None
    assert contract.budget is not None
    share = {"smoke": SMOKE_SHARE, "confirmation": 1.0}.get(phase, contract.budget.trial_steps)
    resources = resources_of(full, contract.hardware)
    named = {"run_name": name, "seeds": tuple(seeds), "algo": _shortened(full.algo, share), "resources": resources}
    return full.model_copy(update=named)


def resources_of(full: Experiment, hardware: Hardware) -> Resources:
    """Return what one seed of a job has: the contract's hardware."""
    return full.resources.model_copy(
        update={"cores": hardware.cores, "gpus": hardware.gpus or None, "memory": hardware.memory_gb}
    )


def steps_of(full: Experiment, share: float = 1.0) -> int:
    """Return the steps that a share of a training takes: whole rollouts, or whole rounds between two updates."""
    experiment = resolve(full.model_copy(update={"algo": _shortened(full.algo, share)}))
    algo, copies = experiment.algo, experiment.env.num_envs or 1
    together = copies * max(getattr(algo, "rollout_steps", 1), getattr(algo, "train_every", 1))
    return math.ceil(algo.total_timesteps / together) * together


def _shortened(algo: Algo, share: float) -> Algo:
    """Return a share of a training; one whose length nobody said stays as it is."""
    if not algo.says_length:
        return algo
    return algo.model_copy(update={"total_timesteps": max(1, int(algo.total_timesteps * share))})


def _command_config(task: Task, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a training by the repository's own command."""
    adapter = task.adapter
    if not adapter.train:
        raise ConfigError(f"task {task.name} names no training command", hint="adapter.train in task.yaml")
    return {
        "backend": "command",
        "env": {"id": adapter.env or task.name},
        "algo": {"name": "command", **({"total_timesteps": adapter.steps} if adapter.steps else {})},
        "command": _command(adapter, changes),
    }


def _command(adapter: Adapter, changes: Mapping[str, Any]) -> dict[str, Any]:
    section = {
        "train": list(adapter.train),
        "prefix": list(adapter.prefix),
        "override": adapter.override,
        "overrides": dict(changes),
        "metrics": adapter.metrics.model_dump(mode="json") if adapter.metrics else None,
        "checkpoint": adapter.checkpoint,
        "python_path": list(adapter.python_path),
        "artifacts": list(adapter.artifacts),
    }
    return {key: value for key, value in section.items() if value is not None}
