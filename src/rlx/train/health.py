"""NaN and infinity stop a seed at once, with the tensor's name and the step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.errors import JobFailed

HINT = "the last good checkpoint is kept; lower algo.learning_rate, bound the reward, or set env.normalize"


class Diverged(JobFailed):
    """A number that training depends on is no longer finite."""

    def __init__(self, tensor: str, value: float, step: int) -> None:
        super().__init__(f"{tensor} is {value} at step {step}", hint=HINT)
        self.tensor = tensor
        self.step = step


def check_losses(values: Mapping[str, float], *, step: int) -> None:
    """Stop where a loss of the last update is not finite."""
    for name, value in values.items():
        if not math.isfinite(value) and name.endswith(("loss", "objective")):
            raise Diverged(f"loss `{name}`", value, step)


def check_observations(observations: Any, *, step: int) -> None:
    """Stop where an environment observed something that is not finite."""
    _check_parts("observation", observations, step)


def _check_parts(what: str, values: Any, step: int) -> None:
    if not isinstance(values, (dict, tuple)):
        _check(what, values, step)
        return
    for key, part in values.items() if isinstance(values, dict) else enumerate(values):
        _check_parts(f"{what} `{key}`", part, step)


def check_rewards(rewards: NDArray[Any], *, step: int) -> None:
    """Stop where an environment gave a reward that is not finite."""
    _check("reward", rewards, step)


def _check(what: str, values: NDArray[Any], step: int) -> None:
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    index = int(np.argwhere(~np.isfinite(values))[0][0]) if values.ndim else 0
    bad = values[~np.isfinite(values)]
    raise Diverged(f"{what} of environment {index}", float(bad[0]), step)
