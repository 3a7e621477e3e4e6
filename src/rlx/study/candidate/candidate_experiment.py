"""The experiment of a candidate's job: the baseline's config or command, the changes, and the phase's budget."""

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
from rlx.study.candidate.candidate import Candidate
from rlx.study.contract.contract import Contract, Hardware
from rlx.study.ledger.lifecycle import Phase
from rlx.study.task.task import Task

SMOKE_SHARE = 0.02


def changes_of(chain: Sequence[Candidate]) -> dict[str, Any]:
    """Return the config changes of a chain of candidates; later changes replace earlier ones."""
    return {key: value for candidate in chain for key, value in candidate.changes.items()}


def experiment_of(task: Task, changes: Mapping[str, Any], *, tree: Path) -> Experiment:
    """Return the full training of a folder's code with these changes."""
    if task.adapter.kind == "rlx":
        overrides = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
        return read(tree / str(task.adapter.config), overrides=overrides)
    return parse(_command_config(task, changes), source=f"task {task.name}")


def job_experiment(
    full: Experiment, contract: Contract, *, name: str, phase: Phase, seeds: Sequence[int], smoke_share: float
) -> Experiment:
    """Return the experiment of a job: its name, seeds, the phase's share of the steps, the contract's hardware."""
    assert contract.hardware is not None
    assert contract.budget is not None
    share = {"smoke": smoke_share, "confirmation": 1.0}.get(phase, contract.budget.trial_steps)
    resources = resources_of(full, contract.hardware)
    named = {"run_name": name, "seeds": tuple(seeds), "algo": _shortened(full.algo, share), "resources": resources}
    return full.model_copy(update=named)


def resources_of(full: Experiment, hardware: Hardware) -> Resources:
    """Return the resources of one seed: the contract's hardware."""
    return full.resources.model_copy(
        update={"cores": hardware.cores, "gpus": hardware.gpus or None, "memory": hardware.memory_gb}
    )


def steps_of(full: Experiment, share: float = 1.0) -> int:
    """Return the steps of a share of a training, rounded up to whole rollouts or update rounds."""
    experiment = resolve(full.model_copy(update={"algo": _shortened(full.algo, share)}))
    algo = experiment.algo
    per_env = max(getattr(algo, "rollout_steps", 1), getattr(algo, "train_every", 1))
    size = per_env * (experiment.env.num_envs or 1)
    return math.ceil(algo.total_timesteps / size) * size


def _shortened(algo: Algo, share: float) -> Algo:
    """Return a share of a training; a training without a known length stays as it is."""
    if not algo.says_length:
        return algo
    return algo.model_copy(update={"total_timesteps": max(1, int(algo.total_timesteps * share))})


def _command_config(task: Task, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a training with the repository's own command."""
    adapter = task.adapter
    if not adapter.train:
        raise ConfigError(f"task {task.name} names no training command", hint="adapter.train in task.yaml")
    algo: dict[str, Any] = {"name": "command"}
    if adapter.steps:
        algo["total_timesteps"] = adapter.steps
    section = {
        "train": list(adapter.train),
        "prefix": list(adapter.prefix),
        "override": adapter.override,
        "overrides": dict(changes),
        "metrics": adapter.metrics and adapter.metrics.model_dump(mode="json"),
        "checkpoint": adapter.checkpoint,
        "python_path": list(adapter.python_path),
        "cwd": adapter.cwd or None,
        "artifacts": list(adapter.artifacts),
    }
    command = {key: value for key, value in section.items() if value is not None}
    return {"backend": "command", "env": {"id": adapter.env or task.name}, "algo": algo, "command": command}
