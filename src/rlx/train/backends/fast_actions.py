"""What an actor's outputs mean: how actions are drawn from them, how likely one was, and the derivatives of that.

`head` is always (seeds, outputs, rows). An action is drawn as `choices` (seeds, parts, rows) with noise that was drawn
for a whole rollout at once, and learned from as `targets` (seeds, rows, outputs): one-hot, bits, or the numbers drawn.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.spaces import choice_sizes
from rlx.train.backends.fast_network import Weights

Array = NDArray[Any]
CLOSED = -1e8  # the logit of an action that a mask forbids
LOG_TAU = math.log(2 * math.pi)


class Actions(Protocol):
    """The distribution of actions over one kind of space."""

    outputs: int
    has_deviation: bool

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw what `choose` needs, for heads of this shape."""
        ...

    def choose(self, head: Array, weights: Weights, noise: Array | None, closed: Array | None = None) -> Array:
        """Return the choices that noise leads to, or the most likely ones without; `closed` outputs are forbidden."""
        ...

    def targets(self, choices: Array, dtype: Any) -> Array:
        """Return choices (…, parts, rows) in the form they are learned from, (…, rows, outputs)."""
        ...

    def for_env(self, choices: Array) -> Array:
        """Return one seed's choices (parts, rows) as the batch of actions that the environments take."""
        ...

    def evaluate(self, head: Array, targets: Array, weights: Weights, closed: Array | None = None) -> tuple[Array, Any]:
        """Return log probability and entropy (seeds, rows); overwrites `head`."""
        ...

    def backward(self, chances: Array, entropy: float, gradients: Weights) -> Array:
        """Return the loss's derivative with respect to the head of the last `evaluate`.

        `chances` is its derivative with respect to the log probabilities, `entropy` with respect to each row's entropy.
        """
        ...


def actions_of(space: spaces.Space[Any], *, is_masked: bool = False) -> Actions:
    """Return the distribution for a space; with masks a bit is a choice between two, as in sb3-contrib."""
    if isinstance(space, spaces.Box):
        return Gaussian(space)
    if isinstance(space, spaces.MultiBinary) and not is_masked:
        return Bernoulli(space)
    return Categorical(space)


class Categorical:
    """One or several choices among a few: Discrete, MultiDiscrete, and MultiBinary with masks."""

    has_deviation = False

    def __init__(self, space: spaces.Space[Any]) -> None:
        sizes = choice_sizes(space, with_bits=True)
        self.outputs = sum(sizes)
        self._space = space
        self._parts = [slice(*pair) for pair in pairwise(np.cumsum([0, *sizes]).tolist())]
        self._chances = self._head = self._targets = self._entropy = np.empty(0)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        drawn = np.maximum(generator.standard_exponential(shape, dtype=dtype), np.finfo(dtype).tiny)
        np.log(drawn, out=drawn)
        return np.negative(drawn, out=drawn)  # Gumbel: the largest of logits plus this is a draw from their softmax

    def choose(self, head: Array, weights: Weights, noise: Array | None, closed: Array | None = None) -> Array:
        if noise is not None:
            head = np.add(head, noise, out=head)
        if closed is not None:
            np.copyto(head, CLOSED, where=closed)
        if len(self._parts) == 1:
            return np.asarray(np.argmax(head, axis=1, keepdims=True))
        return np.stack([np.argmax(head[:, part], axis=1) for part in self._parts], axis=1)

    def targets(self, choices: Array, dtype: Any) -> Array:
        rows = np.swapaxes(choices, -1, -2)
        hot = np.zeros((*rows.shape[:-1], self.outputs), dtype=dtype)
        for index, part in enumerate(self._parts):
            np.put_along_axis(hot[..., part], rows[..., index : index + 1], 1.0, axis=-1)
        return hot

    def for_env(self, choices: Array) -> Array:
        if isinstance(self._space, spaces.Discrete):
            return np.asarray(choices[0], dtype=self._space.dtype)
        return np.asarray(choices.T, dtype=self._space.dtype).reshape(-1, *(self._space.shape or ()))

    def evaluate(self, head: Array, targets: Array, weights: Weights, closed: Array | None = None) -> tuple[Array, Any]:
        if closed is not None:
            np.copyto(head, CLOSED, where=closed.transpose(0, 2, 1))
        if self._chances.shape != head.shape:
            self._chances = np.empty_like(head)
        chances = self._chances
        for part in self._parts:
            logits, shares = head[:, part], chances[:, part]
            np.subtract(logits, np.maximum.reduce(logits, axis=1, keepdims=True), out=logits)
            np.exp(logits, out=shares)
            total = np.add.reduce(shares, axis=1, keepdims=True)
            np.divide(shares, total, out=shares)
            np.subtract(logits, np.log(total, out=total), out=logits)
        self._head, self._targets = head, targets.transpose(0, 2, 1)
        self._entropies = [-np.add.reduce(head[:, part] * chances[:, part], axis=1) for part in self._parts]
        chosen = np.add.reduce(head * self._targets, axis=1)
        return chosen, sum(self._entropies[1:], self._entropies[0])

    def backward(self, chances: Array, entropy: float, gradients: Weights) -> Array:
        result = np.subtract(self._targets, self._chances)
        np.multiply(result, chances[:, None], out=result)
        if entropy:
            for part, value in zip(self._parts, self._entropies, strict=True):
                bent = self._head[:, part] + value[:, None]
                np.multiply(bent, self._chances[:, part], out=bent)
                np.multiply(bent, -entropy, out=bent)
                np.add(result[:, part], bent, out=result[:, part])
        return result


class Bernoulli:
    """Bits, each on or off by itself: MultiBinary."""

    has_deviation = False

    def __init__(self, space: spaces.MultiBinary) -> None:
        self.outputs = math.prod(space.shape)
        self._space = space
        self._head = self._on = self._targets = np.empty(0)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        drawn = generator.random(shape, dtype=dtype)
        np.clip(drawn, np.finfo(dtype).tiny, 1 - np.finfo(dtype).epsneg, out=drawn)
        return np.subtract(np.log(drawn), np.log1p(-drawn))  # logistic: a logit above this is a bit that is on

    def choose(self, head: Array, weights: Weights, noise: Array | None, closed: Array | None = None) -> Array:
        return np.greater(head, 0.0 if noise is None else noise)

    def targets(self, choices: Array, dtype: Any) -> Array:
        return np.swapaxes(choices, -1, -2).astype(dtype)

    def for_env(self, choices: Array) -> Array:
        return choices.T.astype(self._space.dtype).reshape(-1, *self._space.shape)

    def evaluate(self, head: Array, targets: Array, weights: Weights, closed: Array | None = None) -> tuple[Array, Any]:
        self._head, self._targets = head, targets.transpose(0, 2, 1)
        cost = np.log1p(np.exp(-np.abs(head))) + np.maximum(head, 0.0)  # log(1 + exp(head))
        self._on = np.exp(head - cost)
        chosen = np.add.reduce(head * self._targets - cost, axis=1)
        return chosen, np.add.reduce(cost - head * self._on, axis=1)

    def backward(self, chances: Array, entropy: float, gradients: Weights) -> Array:
        result = np.subtract(self._targets, self._on)
        np.multiply(result, chances[:, None], out=result)
        if entropy:
            result -= entropy * self._head * self._on * (1.0 - self._on)
        return result


class Gaussian:
    """Numbers with a learned deviation that does not depend on the state: Box. Clipped for the environment only."""

    has_deviation = True

    def __init__(self, space: spaces.Box) -> None:
        self.outputs = math.prod(space.shape)
        self._space = space
        self._low, self._high = space.low.reshape(-1), space.high.reshape(-1)
        self._distance = self._scaled = np.empty(0)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        return generator.standard_normal(shape, dtype=dtype)

    def choose(self, head: Array, weights: Weights, noise: Array | None, closed: Array | None = None) -> Array:
        return head.copy() if noise is None else np.exp(weights.deviation)[:, :, None] * noise + head

    def targets(self, choices: Array, dtype: Any) -> Array:
        return np.swapaxes(choices, -1, -2)

    def for_env(self, choices: Array) -> Array:
        clipped = np.minimum(np.maximum(choices.T, self._low), self._high)
        return clipped.astype(self._space.dtype, copy=False).reshape(-1, *self._space.shape)

    def evaluate(self, head: Array, targets: Array, weights: Weights, closed: Array | None = None) -> tuple[Array, Any]:
        width = weights.deviation[:, :, None]
        self._scaled = np.exp(-width)
        self._distance = np.multiply(np.subtract(targets.transpose(0, 2, 1), head, out=head), self._scaled, out=head)
        logs = np.add.reduce(weights.deviation, axis=1)[:, None]
        chosen = np.add.reduce(self._distance * self._distance, axis=1)
        np.multiply(chosen, -0.5, out=chosen)
        np.subtract(chosen, logs + 0.5 * self.outputs * LOG_TAU, out=chosen)
        return chosen, logs + 0.5 * self.outputs * (1 + LOG_TAU)

    def backward(self, chances: Array, entropy: float, gradients: Weights) -> Array:
        squares = self._distance * self._distance
        np.subtract(squares, 1.0, out=squares)
        np.multiply(squares, chances[:, None], out=squares)
        np.add.reduce(squares, axis=2, out=gradients.deviation)
        np.add(gradients.deviation, entropy * chances.shape[1], out=gradients.deviation)
        result = np.multiply(self._distance, chances[:, None])
        return np.multiply(result, self._scaled, out=result)
