"""An actor and a critic as stacks of matrices: the weights of S seeds in one array, forward and backward by hand.

Everything is kept feature by row, (seeds, nets, features, rows of the batch): a bias is one more column of its matrix,
against a feature that is always 1, and reductions over a few actions run along memory. The two networks have the same
hidden layers, so that one product serves both. Every product is made slice by slice, so that a seed's numbers are the
same, to the bit, whatever other seeds are trained beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rlx.errors import CheckpointInvalid
from rlx.train.backends.fast_activations import ACTIVATIONS

Array = NDArray[Any]

NETS = ("policy", "value")
ALIGNMENT = 64  # bytes: every matrix of every seed starts at a multiple
HIDDEN_GAIN, ACTION_GAIN, VALUE_GAIN = math.sqrt(2), 0.01, 1.0


@dataclass(frozen=True)
class Shape:
    """The sizes of an actor and a critic: features in, hidden units, numbers that describe an action out."""

    inputs: int
    hidden: tuple[int, ...]
    outputs: int
    activation: str
    has_deviation: bool  # a learned log standard deviation for every output, the same in every state


class Weights:
    """One number a parameter, for S seeds: weights, their gradients or an optimizer's moments, as views of `flat`."""

    def __init__(
        self, shape: Shape, *, seeds: int = 1, dtype: DTypeLike = np.float32, flat: Array | None = None
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        sizes = list(zip((shape.inputs, *shape.hidden), shape.hidden, strict=False))
        last = shape.hidden[-1] if shape.hidden else shape.inputs
        shapes: list[tuple[int, ...]] = [(2, size, below + 1) for below, size in sizes]
        shapes += [(shape.outputs, last + 1), (1, last + 1), (shape.outputs if shape.has_deviation else 0,)]
        step = ALIGNMENT // self.dtype.itemsize
        starts = np.cumsum([0, *(-(-math.prod(each) // step) * step for each in shapes)])
        self.flat = aligned((seeds, int(starts[-1])), self.dtype) if flat is None else flat
        views = [self.flat[:, start : start + math.prod(each)].reshape(seeds, *each)
                 for start, each in zip(starts[:-1], shapes, strict=True)]  # fmt: skip
        self.hidden, (self.action, self.value, self.deviation) = views[:-3], views[-3:]

    def only(self, seed: int) -> Weights:
        """Return one seed's parameters by themselves, as views."""
        return Weights(self.shape, dtype=self.dtype, flat=self.flat[seed : seed + 1])

    def named(self, seed: int = 0) -> Iterator[tuple[str, Array]]:
        """Yield one seed's parameters under the names and in the shapes they have in SB3, as views."""
        if self.shape.has_deviation:
            yield "log_std", self.deviation[seed]
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
        """Take one seed's parameters by name: every one, in its shape."""
        views = dict(self.named(seed))
        for name in sorted(views.keys() ^ arrays.keys()):
            raise _misfit(where, f"`{name}` is {'absent' if name in views else 'unknown'}")
        for name, view in views.items():
            if arrays[name].shape != view.shape:
                raise _misfit(where, f"`{name}` is of shape {arrays[name].shape}, not {view.shape}")
            view[...] = arrays[name]

    def initialise(self, generators: Sequence[np.random.Generator]) -> None:
        """Draw every seed's weights from its own generator: orthogonal, biases and log deviations zero."""
        for seed, generator in enumerate(generators):
            for matrix in (*self.hidden, self.action[:, None], self.value[:, None]):
                for net in matrix[seed]:
                    net[:, :-1] = _orthogonal(len(net), net.shape[1] - 1, generator)
            for matrix, gain in ((self.action, ACTION_GAIN), (self.value, VALUE_GAIN)):
                matrix[seed] *= gain
            for matrix in self.hidden:
                matrix[seed] *= HIDDEN_GAIN


class Pass:
    """Forward and backward through the actor, the critic or both, for batches of one size, in memory of its own."""

    def __init__(self, weights: Weights, rows: int, *, nets: slice = slice(None), is_training: bool = False) -> None:
        shape, seeds, dtype = weights.shape, len(weights.flat), weights.dtype
        self.weights = weights
        self.head = aligned((seeds, shape.outputs, rows), dtype)
        self.values = aligned((seeds, 1, rows), dtype)
        self._activation = ACTIVATIONS[shape.activation]
        self._has_actor, self._has_critic = (NETS[nets].count(net) for net in NETS)
        count = self._has_actor + self._has_critic
        self._layers: list[tuple[Array, Array, Array, Array | None]] = []
        for size, matrix in zip(shape.hidden, weights.hidden, strict=True):
            out = aligned((seeds, count, size + 1, rows), dtype)
            out[:, :, -1] = 1.0
            slope = aligned((seeds, count, size, rows), dtype) if is_training else None
            self._layers.append((matrix[:, nets], out, out[:, :, :-1], slope))
        self._deltas = [aligned((seeds, count, size, rows), dtype) for size in shape.hidden if is_training]

    def forward(self, inputs: Array) -> None:
        """Fill `head` (outputs of the actor) and `values` for features (seeds, rows, inputs + 1), the last always 1."""
        top = inputs.transpose(0, 2, 1)[:, None]
        for matrix, out, units, slope in self._layers:
            np.matmul(matrix, top, out=units)
            self._activation(units, slope)
            top = out
        if self._has_actor:
            np.matmul(self.weights.action, top[:, 0], out=self.head)
        if self._has_critic:
            np.matmul(self.weights.value, top[:, -1], out=self.values)

    def backward(self, inputs: Array, head: Array, values: Array, gradients: Weights) -> None:
        """Fill `gradients` from the loss's derivatives with respect to `head` and `values` of the last forward pass."""
        tops = [inputs.transpose(0, 2, 1)[:, None], *(out for _, out, _, _ in self._layers)]
        for top, delta, gradient in ((tops[-1][:, 0], head, gradients.action),
                                     (tops[-1][:, -1], values, gradients.value)):  # fmt: skip
            np.matmul(delta, top.transpose(0, 2, 1), out=gradient)
        if not self._layers:
            return
        delta = self._deltas[-1]
        np.matmul(self.weights.action[:, :, :-1].transpose(0, 2, 1), head, out=delta[:, 0])
        np.multiply(self.weights.value[:, 0, :-1, None], values, out=delta[:, 1])
        for layer in range(len(self._layers) - 1, -1, -1):
            matrix, _, _, slope = self._layers[layer]
            assert slope is not None
            delta = self._deltas[layer]
            np.multiply(delta, slope, out=delta)
            np.matmul(delta, tops[layer].transpose(0, 1, 3, 2), out=gradients.hidden[layer])
            if layer:
                np.matmul(matrix[..., :-1].transpose(0, 1, 3, 2), delta, out=self._deltas[layer - 1])


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros at an address that is a multiple of ALIGNMENT, so that no result depends on where memory was."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def _orthogonal(rows: int, columns: int, generator: np.random.Generator) -> Array:
    drawn = generator.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(drawn)
    q *= np.sign(np.diag(r))
    return q if rows >= columns else q.T


def _misfit(where: str, what: str) -> CheckpointInvalid:
    return CheckpointInvalid(
        f"checkpoint {where}: its weights do not fit the network of its config: {what}",
        hint="resume with the config it was trained with",
    )
