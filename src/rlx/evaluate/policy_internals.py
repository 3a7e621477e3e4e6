"""What a policy computes for an observation: its value estimate, its action distribution and the entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.policy import Batch, Masks, Policy

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PolicyInternals:
    """One row per observation; None for anything that a policy does not compute.

    `probabilities` belong to the options of all choices, in order. `mean` and `std` belong to real actions.
    """

    values: Array | None = None
    entropy: Array | None = None
    probabilities: Array | None = None
    mean: Array | None = None
    std: Array | None = None


@runtime_checkable
class Introspective(Protocol):
    """A policy that returns its internals."""

    def internals(self, observations: Batch, masks: Masks = None) -> PolicyInternals:
        """Return the internals for raw observations, without changing the policy's memory."""
        ...


@runtime_checkable
class Differentiable(Protocol):
    """A policy whose network can be differentiated with respect to its inputs: flat, normalised rows of numbers."""

    def inputs(self, observations: Batch) -> NDArray[Any]:
        """Return raw observations as the network sees them."""
        ...

    def outputs(self, inputs: NDArray[Any]) -> tuple[Array, Array | None]:
        """Return the actor's outputs (rows, outputs), logits or means, and the values (rows,) if there is a critic."""
        ...

    def gradients(self, inputs: NDArray[Any], weights: Array, value_weight: float) -> Array:
        """Return the gradient of `outputs · weights + value_weight · value` with respect to every input."""
        ...


def internals_of(policy: Policy, observations: Batch, masks: Masks = None) -> PolicyInternals:
    """Return the internals of a policy; without any values if it does not return them."""
    if isinstance(policy, Introspective):
        return policy.internals(observations, masks)
    return PolicyInternals()
