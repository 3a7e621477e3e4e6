"""Activation functions on arrays, in place, with their slopes where a backward pass will need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Activation = Callable[[Array, Array | None], None]
"""Replaces its first argument by the activation of it, and fills the second with the derivative there."""


def tanh(values: Array, slope: Array | None) -> None:
    np.tanh(values, out=values)
    if slope is not None:
        np.multiply(values, values, out=slope)
        np.subtract(1.0, slope, out=slope)


def relu(values: Array, slope: Array | None) -> None:
    np.maximum(values, 0.0, out=values)
    if slope is not None:
        np.greater(values, 0.0, out=slope)


def elu(values: Array, slope: Array | None) -> None:
    low = np.expm1(np.minimum(values, 0.0))
    if slope is not None:
        np.add(low, 1.0, out=slope)
    np.maximum(values, 0.0, out=values)
    np.add(values, low, out=values)


def silu(values: Array, slope: Array | None) -> None:
    share = _sigmoid(values)
    if slope is not None:
        np.subtract(1.0, share, out=slope)
        np.multiply(slope, values, out=slope)
        np.add(slope, 1.0, out=slope)
        np.multiply(slope, share, out=slope)
    np.multiply(values, share, out=values)


def gelu(values: Array, slope: Array | None) -> None:
    share = _normal_share(values)
    if slope is not None:
        np.multiply(values, values, out=slope)
        np.multiply(slope, -0.5, out=slope)
        np.exp(slope, out=slope)
        np.multiply(slope, 0.3989422804014327, out=slope)
        np.multiply(slope, values, out=slope)
        np.add(slope, share, out=slope)
    np.multiply(values, share, out=values)


def _sigmoid(values: Array) -> Array:
    half = np.tanh(np.multiply(values, 0.5))
    np.multiply(half, 0.5, out=half)
    return np.add(half, 0.5, out=half)


# erfc(x) = t exp(-x² + polynomial(t)), t = 1 / (1 + x/2): within 1.2e-7 of itself everywhere (Numerical Recipes 6.2).
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
         -0.82215223, 0.17087277)  # fmt: skip


def _normal_share(values: Array) -> Array:
    """Return how much of the standard normal distribution lies below each value."""
    size = np.abs(values) * 0.7071067811865476
    t = 1.0 / (1.0 + 0.5 * size)
    exponent = np.zeros_like(t)
    for coefficient in reversed(_ERFC):
        exponent = exponent * t + coefficient
    above = 0.5 * t * np.exp(exponent - size * size)
    return np.where(values > 0.0, 1.0 - above, above)


ACTIVATIONS: dict[str, Activation] = {"tanh": tanh, "relu": relu, "elu": elu, "silu": silu, "gelu": gelu}
