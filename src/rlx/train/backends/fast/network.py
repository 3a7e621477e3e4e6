"""An actor and a critic as stacked matrices: the weights of S seeds in one array, forward and backward by hand.

Arrays are (seeds, nets, features, rows of the batch). A bias is one more column of its matrix, multiplied with a
feature that is always 1. Actor and critic have the same hidden layers, so that one product computes both. NumPy
multiplies slice by slice: a seed's numbers are the same, to the bit, however many seeds train next to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rlx.errors import CheckpointInvalid
from rlx.train.backends.fast.activations import ACTIVATIONS

Array = NDArray[Any]

NETS = ("policy", "value")
ALIGNMENT = 64  # bytes: every matrix of every seed starts at a multiple
HIDDEN_GAIN = math.sqrt(2)
ACTION_GAIN = 0.01


@dataclass(frozen=True)
class NetworkShape:
    """The sizes of an actor and a critic."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int  # of the actor
    activation: str
    has_log_std: bool  # a learned log standard deviation per output, the same in every state


class Weights:
    """One number per parameter for S seeds, as views of `flat`: weights, gradients or an optimizer's moments."""

    def __init__(
        self, shape: NetworkShape, *, seeds: int = 1, dtype: DTypeLike = np.float32, flat: Array | None = None
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        layers = [shape.inputs, *shape.hidden]
        shapes: list[tuple[int, ...]] = [
            (2, size, below + 1) for below, size in zip(layers, shape.hidden, strict=False)
        ]
        shapes += [(shape.outputs, layers[-1] + 1), (1, layers[-1] + 1), (shape.outputs * shape.has_log_std,)]
        step = ALIGNMENT // self.dtype.itemsize
        starts = np.cumsum([0, *(-(-math.prod(matrix) // step) * step for matrix in shapes)])
        self.flat = aligned((seeds, int(starts[-1])), self.dtype) if flat is None else flat
        views = [
            self.flat[:, start : start + math.prod(matrix)].reshape(seeds, *matrix)
            for start, matrix in zip(starts[:-1], shapes, strict=True)
        ]
        *self.hidden, self.action, self.value, self.log_std = views

    def of_seed(self, seed: int) -> Weights:
        """Return one seed's parameters as views."""
        return Weights(self.shape, dtype=self.dtype, flat=self.flat[seed : seed + 1])

    def named(self, seed: int = 0) -> Iterator[tuple[str, Array]]:
        """Yield views of one seed's parameters, with the names and shapes that they have in SB3."""
        if self.shape.has_log_std:
            yield "log_std", self.log_std[seed]
        for net, name in enumerate(NETS):
            for layer, matrix in enumerate(self.hidden):
                yield f"mlp_extractor.{name}_net.{2 * layer}.weight", matrix[seed, net, :, :-1]
                yield f"mlp_extractor.{name}_net.{2 * layer}.bias", matrix[seed, net, :, -1]
        for name, matrix in (("action", self.action), ("value", self.value)):
            yield f"{name}_net.weight", matrix[seed, :, :-1]
            yield f"{name}_net.bias", matrix[seed, :, -1]

    def arrays(self, seed: int = 0) -> dict[str, Array]:
        """Return a copy of one seed's parameters by name."""
        return {name: view.copy() for name, view in self.named(seed)}

    def load(self, arrays: Mapping[str, Array], *, where: str, seed: int = 0) -> None:
        """Set one seed's parameters by name. All of them must be there, with the right shape."""
        views = dict(self.named(seed))
        for name in sorted(arrays.keys() - views.keys()):
            raise _misfit(where, f"`{name}` is unknown")
        for name, view in views.items():
            if name not in arrays:
                raise _misfit(where, f"`{name}` is absent")
            if arrays[name].shape != view.shape:
                raise _misfit(where, f"`{name}` is of shape {arrays[name].shape}, not {view.shape}")
            view[...] = arrays[name]

    def initialise(self, generators: Sequence[np.random.Generator]) -> None:
        """Draw every seed's orthogonal weights from its own generator; biases and log_std stay zero."""
        for seed, generator in enumerate(generators):
            for matrix in (*self.hidden, self.action[:, None], self.value[:, None]):
                for net in matrix[seed]:
                    net[:, :-1] = _orthogonal(len(net), net.shape[1] - 1, generator)
            self.action[seed] *= ACTION_GAIN
            for matrix in self.hidden:
                matrix[seed] *= HIDDEN_GAIN


@dataclass(frozen=True)
class _Layer:
    """One hidden layer's matrix, and the memory of its results."""

    matrix: Array
    out: Array  # the units and, as last feature, the 1 that the next layer's bias is multiplied with
    units: Array  # `out` without the 1
    derivative: Any  # of the activation; None unless a backward pass follows
    delta: Any  # the loss's derivative with respect to the layer's sums; None unless a backward pass follows


class NetworkPass:
    """Forward and backward passes through the actor, the critic or both, for batches of one size."""

    def __init__(self, weights: Weights, rows: int, *, nets: slice = slice(None), is_training: bool = False) -> None:
        shape = weights.shape
        seeds = len(weights.flat)
        self.weights = weights
        self.actor_out = aligned((seeds, shape.outputs, rows), weights.dtype)
        self.values = aligned((seeds, 1, rows), weights.dtype)
        self._activate = ACTIVATIONS[shape.activation]
        self._has_actor = "policy" in NETS[nets]
        self._has_critic = "value" in NETS[nets]
        self._layers: list[_Layer] = []
        for size, matrix in zip(shape.hidden, weights.hidden, strict=True):
            out = aligned((seeds, len(NETS[nets]), size + 1, rows), weights.dtype)
            out[:, :, -1] = 1.0
            units = out[:, :, :-1]
            memory: list[Any] = [None, None]
            if is_training:
                memory = [aligned(units.shape, weights.dtype), aligned(units.shape, weights.dtype)]
            self._layers.append(_Layer(matrix[:, nets], out, units, *memory))

    def forward(self, inputs: Array) -> None:
        """Fill `actor_out` and `values` for features (seeds, rows, inputs + 1), the last of which is always 1."""
        below = inputs.transpose(0, 2, 1)[:, None]
        for layer in self._layers:
            np.matmul(layer.matrix, below, out=layer.units)
            self._activate(layer.units, layer.derivative)
            below = layer.out
        if self._has_actor:
            np.matmul(self.weights.action, below[:, 0], out=self.actor_out)
        if self._has_critic:
            np.matmul(self.weights.value, below[:, -1], out=self.values)

    def backward(self, inputs: Array, d_actor_out: Array, d_values: Array, gradients: Weights) -> None:
        """Fill `gradients` from the loss's derivatives with respect to the results of the last forward pass."""
        below = [inputs.transpose(0, 2, 1)[:, None], *(layer.out for layer in self._layers)]
        np.matmul(d_actor_out, below[-1][:, 0].transpose(0, 2, 1), out=gradients.action)
        np.matmul(d_values, below[-1][:, -1].transpose(0, 2, 1), out=gradients.value)
        if not self._layers:
            return
        top = self._layers[-1].delta
        np.matmul(self.weights.action[:, :, :-1].transpose(0, 2, 1), d_actor_out, out=top[:, 0])
        np.multiply(self.weights.value[:, 0, :-1, None], d_values, out=top[:, 1])
        for index in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[index]
            np.multiply(layer.delta, layer.derivative, out=layer.delta)
            np.matmul(layer.delta, below[index].transpose(0, 1, 3, 2), out=gradients.hidden[index])
            if index:
                np.matmul(layer.matrix[..., :-1].transpose(0, 1, 3, 2), layer.delta, out=self._layers[index - 1].delta)

    def input_gradients(self, d_actor_out: Array, d_values: Array) -> Array:
        """Return the derivative with respect to the inputs (seeds, rows, inputs) of the last forward pass."""
        deltas = [
            np.matmul(self.weights.action[:, :, :-1].transpose(0, 2, 1), d_actor_out),
            self.weights.value[:, 0, :-1, None] * d_values,
        ]
        for layer in reversed(self._layers):
            for net, delta in enumerate(deltas):
                product = delta * layer.derivative[:, net]
                deltas[net] = np.matmul(layer.matrix[:, net, :, :-1].transpose(0, 2, 1), product)
        return np.asarray(np.add(*deltas).transpose(0, 2, 1))


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros at an address that is a multiple of ALIGNMENT, so that results do not depend on the address."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def _orthogonal(rows: int, columns: int, generator: np.random.Generator) -> Array:
    q, r = np.linalg.qr(generator.standard_normal((max(rows, columns), min(rows, columns))))
    q *= np.sign(np.diag(r))
    return q if rows >= columns else q.T


def _misfit(where: str, problem: str) -> CheckpointInvalid:
    return CheckpointInvalid(
        f"checkpoint {where}: its weights do not fit the network of its config: {problem}",
        hint="resume with the config it was trained with",
    )
