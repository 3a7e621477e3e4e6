"""Name → implementation; imports only the one asked for."""

from __future__ import annotations

import importlib
from typing import Any

from rlx.errors import NotFound, did_you_mean

BACKENDS = {
    "fast": "rlx.train.backends.fast:FastTrainer",
    "sb3": "rlx.train.backends.sb3:Sb3Trainer",
    "command": "rlx.train.backends.command:CommandTrainer",
}
READERS = {
    "tensorboard": "rlx.runs.readers.tensorboard:TensorboardReader",
    "jsonl": "rlx.runs.readers.jsonl:JsonlReader",
    "csv": "rlx.runs.readers.csv:CsvReader",
    "stdout": "rlx.runs.readers.stdout:StdoutReader",
}
"""In the order in which they are asked whether a path is theirs."""
EXECUTORS = {
    "inline": "rlx.launch.executors.inline:InlineExecutor",
    "local": "rlx.launch.executors.local:LocalExecutor",
    "custom": "rlx.launch.executors.custom:CustomExecutor",
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
