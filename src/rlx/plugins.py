"""Name → implementation; imports only the one asked for."""

from __future__ import annotations

import importlib
from typing import Any

from rlx.errors import NotFound, did_you_mean

BACKENDS = {
    "fast": "rlx.train.backends.fast.fast_trainer:FastTrainer",
    "sb3": "rlx.train.backends.sb3.sb3_trainer:Sb3Trainer",
    "command": "rlx.train.backends.command.command_trainer:CommandTrainer",
}
# In the order in which they are asked whether a path is theirs.
READERS = {
    "tensorboard": "rlx.runs.readers.tensorboard:TensorboardReader",
    "jsonl": "rlx.runs.readers.jsonl:JsonlReader",
    "csv": "rlx.runs.readers.csv:CsvReader",
    "stdout": "rlx.runs.readers.stdout:StdoutReader",
}
EXECUTORS = {
    "inline": "rlx.launch.executors.inline:InlineExecutor",
    "local": "rlx.launch.executors.local:LocalExecutor",
    "custom": "rlx.launch.executors.custom:CustomExecutor",
    "slurm": "rlx.launch.executors.slurm:SlurmExecutor",
    "ray": "rlx.launch.executors.ray:RayExecutor",
}
# In the order in which they are asked whether a path is theirs.
IMPORTERS = {
    "wandb": "rlx.adopt.importers.wandb_offline:WandbImporter",
    "mlflow": "rlx.adopt.importers.mlflow_runs:MlflowImporter",
    "optuna": "rlx.adopt.importers.optuna_studies:OptunaImporter",
    "trackio": "rlx.adopt.importers.trackio_runs:TrackioImporter",
    "workbench": "rlx.adopt.importers.workbench_runs:WorkbenchImporter",
    "results": "rlx.adopt.importers.results_table:ResultsTableImporter",
    "tensorboard": "rlx.adopt.importers.tensorboard_runs:TensorboardImporter",
    "sb3": "rlx.adopt.importers.sb3_logs:Sb3Importer",
    "csv": "rlx.adopt.importers.csv_runs:CsvImporter",
}
EXPORTERS = {
    "parquet": "rlx.adopt.exporters.parquet_file:write",
    "wandb": "rlx.adopt.exporters.wandb_run:write",
    "mlflow": "rlx.adopt.exporters.mlflow_run:write",
}
# In the order in which they are asked whether a repository is theirs.
PROFILES = {
    "mjlab": "rlx.adopt.profiles.mjlab:PROFILE",
    "holosoma": "rlx.adopt.profiles.holosoma:PROFILE",
    "isaac_lab": "rlx.adopt.profiles.isaac_lab:PROFILE",
    "sb3_zoo": "rlx.adopt.profiles.sb3_zoo:PROFILE",
    "minigrid_starter": "rlx.adopt.profiles.minigrid_starter:PROFILE",
    "cleanrl": "rlx.adopt.profiles.cleanrl:PROFILE",
    "rsl_rl": "rlx.adopt.profiles.rsl_rl:PROFILE",
    "stable_baselines3": "rlx.adopt.profiles.stable_baselines3:PROFILE",
    "hydra_project": "rlx.adopt.profiles.hydra_project:PROFILE",
    "generic": "rlx.adopt.profiles.generic:PROFILE",
}
# How objects show themselves in a notebook; the lower rooms do not know the hosts.
VIEWS = {
    "run": "rlx.hosts.notebook:RunView",
    "comparison": "rlx.hosts.notebook:ComparisonView",
}


def load(family: dict[str, str], name: str, *, kind: str) -> Any:
    """Import and return the implementation registered under `name`."""
    if name not in family:
        near = did_you_mean(name, list(family))
        raise NotFound(
            f"unknown {kind} `{name}`", hint=f"did you mean `{near}`?" if near else f"known: {', '.join(family)}"
        )
    module, _, attribute = family[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
