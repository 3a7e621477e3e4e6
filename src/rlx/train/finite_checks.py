"""Stops a seed at the first NaN or infinity, with the tensor's name and the step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.errors import JobFailed

ENV_HINT = "the environment returned it: rlx check env ENV finds the call; no setting of the learner cures it"
HINT = "the last good checkpoint is kept; lower algo.learning_rate, bound the reward, or set env.normalize"


class Diverged(JobFailed):
    """A number that training depends on is no longer finite."""

    def __init__(self, tensor: str, value: float, step: int, *, hint: str = HINT) -> None:
        super().__init__(f"{tensor} is {value} at step {step}", hint=hint)
        self.tensor = tensor
        self.step = step


def check_losses(values: Mapping[str, float], *, step: int) -> None:
    """Raise `Diverged` if a loss of the last update is not finite."""
    for name, value in values.items():
        if not math.isfinite(value) and name.endswith(("loss", "objective")):
            raise Diverged(f"loss `{name}`", value, step)


def check_observations(observations: Any, *, step: int) -> None:
    """Raise `Diverged` if an observation is not finite."""
    _check("observation", observations, step)


def check_rewards(rewards: NDArray[Any], *, step: int) -> None:
    """Raise `Diverged` if a reward is not finite."""
    _check("reward", rewards, step)


def _check(name: str, values: Any, step: int) -> None:
    if isinstance(values, tuple):
        values = dict(enumerate(values))
    if isinstance(values, dict):
        for key, part in values.items():
            _check(f"{name} `{key}`", part, step)
    elif values.dtype.kind == "f" and not np.isfinite(values).all():
        rows = np.atleast_1d(values)
        index = int(np.argwhere(~np.isfinite(rows))[0][0])
        raise Diverged(f"{name} of environment {index}", float(rows[~np.isfinite(rows)][0]), step, hint=ENV_HINT)
