"""Action distributions: sample actions from an actor's outputs, and compute log_prob, entropy and their derivatives.

`actor_out` is always (seeds, outputs, rows): logits, or means for a Box. Actions are sampled as (seeds, parts, rows),
with noise that is drawn for a whole rollout at once. PPO learns from `encoded` actions (seeds, rows, outputs): one-hot
vectors, bits, or the sampled numbers. An action mask is True where an action is allowed.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.spaces import choice_sizes

Array = NDArray[Any]
Mask = Array | None
MASKED_LOGIT = -1e8
LOG_TAU = math.log(2 * math.pi)


class Categorical:
    """One or several independent choices: Discrete, MultiDiscrete, and MultiBinary with masks."""

    has_log_std = False

    def __init__(self, space: spaces.Space[Any]) -> None:
        sizes = choice_sizes(space, with_bits=True)
        self.num_outputs = sum(sizes)
        self._space = space
        self._parts = [slice(*pair) for pair in pairwise(np.cumsum([0, *sizes]).tolist())]
        self._probs = np.empty(0)

    @property
    def probabilities(self) -> Array | None:
        """The probabilities (seeds, outputs, rows) of the last `evaluate`; None for numbers."""
        return self._probs

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw the noise that `sample` needs for actor outputs of this shape."""
        # Gumbel noise: the argmax of logits plus noise is a sample from their softmax.
        noise = np.maximum(generator.standard_exponential(shape, dtype=dtype), np.finfo(dtype).tiny)
        np.log(noise, out=noise)
        return np.negative(noise, out=noise)

    def sample(self, actor_out: Array, log_std: Array, noise: Array | None, mask: Mask = None) -> Array:
        """Return the actions that the noise leads to, or the most likely actions without noise."""
        if noise is not None:
            actor_out = np.add(actor_out, noise, out=actor_out)
        if mask is not None:
            np.copyto(actor_out, MASKED_LOGIT, where=~mask)
        if len(self._parts) == 1:
            return np.asarray(np.argmax(actor_out, axis=1, keepdims=True))
        return np.stack([np.argmax(actor_out[:, part], axis=1) for part in self._parts], axis=1)

    def encode(self, actions: Array, dtype: Any) -> Array:
        """Return actions (…, parts, rows) in the form that PPO learns from, (…, rows, outputs)."""
        rows = np.swapaxes(actions, -1, -2)
        one_hot = np.zeros((*rows.shape[:-1], self.num_outputs), dtype=dtype)
        for index, part in enumerate(self._parts):
            np.put_along_axis(one_hot[..., part], rows[..., index : index + 1], 1.0, axis=-1)
        return one_hot

    def to_env(self, actions: Array) -> Array:
        """Return one seed's actions (parts, rows) as the batch that the environments take."""
        if isinstance(self._space, spaces.Discrete):
            return np.asarray(actions[0], dtype=self._space.dtype)
        return np.asarray(actions.T, dtype=self._space.dtype).reshape(-1, *(self._space.shape or ()))

    def evaluate(self, actor_out: Array, encoded: Array, log_std: Array, mask: Mask = None) -> tuple[Array, Any]:
        """Return log_prob and entropy (seeds, rows). `mask` is (seeds, rows, outputs); `actor_out` is overwritten."""
        if mask is not None:
            np.copyto(actor_out, MASKED_LOGIT, where=~mask.transpose(0, 2, 1))
        if self._probs.shape != actor_out.shape:
            self._probs = np.empty_like(actor_out)
        for part in self._parts:  # log-softmax in place: actor_out becomes the normalised log probabilities
            logits = actor_out[:, part]
            probs = self._probs[:, part]
            np.subtract(logits, np.maximum.reduce(logits, axis=1, keepdims=True), out=logits)
            np.exp(logits, out=probs)
            total = np.add.reduce(probs, axis=1, keepdims=True)
            np.divide(probs, total, out=probs)
            np.subtract(logits, np.log(total, out=total), out=logits)
        self._log_probs = actor_out
        self._encoded = encoded.transpose(0, 2, 1)
        self._entropies = [-np.add.reduce(actor_out[:, part] * self._probs[:, part], axis=1) for part in self._parts]
        log_prob = np.add.reduce(actor_out * self._encoded, axis=1)
        return log_prob, sum(self._entropies[1:], self._entropies[0])

    def backward(self, d_log_prob: Array, d_entropy: float, d_log_std: Array) -> Array:
        """Return the loss's derivative with respect to the last `actor_out`; a Gaussian also fills `d_log_std`.

        `d_log_prob` is the derivative with respect to each log_prob, `d_entropy` with respect to each row's entropy.
        """
        # d log_prob / d logit = one_hot - prob
        d_logits = np.subtract(self._encoded, self._probs)
        np.multiply(d_logits, d_log_prob[:, None], out=d_logits)
        if d_entropy:
            for part, entropy in zip(self._parts, self._entropies, strict=True):
                # d entropy / d logit = -prob * (log prob + entropy)
                slope = self._log_probs[:, part] + entropy[:, None]
                np.multiply(slope, self._probs[:, part], out=slope)
                np.multiply(slope, -d_entropy, out=slope)
                np.add(d_logits[:, part], slope, out=d_logits[:, part])
        return d_logits


class Bernoulli:
    """Independent bits: MultiBinary without masks."""

    has_log_std = False

    def __init__(self, space: spaces.MultiBinary) -> None:
        self.num_outputs = math.prod(space.shape)
        self._space = space

    @property
    def probabilities(self) -> Array | None:
        return np.asarray(self._probs)

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        # Logistic noise: a bit is on if its logit is larger than the noise.
        uniform = generator.random(shape, dtype=dtype)
        np.clip(uniform, np.finfo(dtype).tiny, 1 - np.finfo(dtype).epsneg, out=uniform)
        return np.subtract(np.log(uniform), np.log1p(-uniform))

    def sample(self, actor_out: Array, log_std: Array, noise: Array | None, mask: Mask = None) -> Array:
        return np.greater(actor_out, 0.0) if noise is None else np.greater(actor_out, noise)

    def encode(self, actions: Array, dtype: Any) -> Array:
        return np.swapaxes(actions, -1, -2).astype(dtype)

    def to_env(self, actions: Array) -> Array:
        return actions.T.astype(self._space.dtype).reshape(-1, *self._space.shape)

    def evaluate(self, actor_out: Array, encoded: Array, log_std: Array, mask: Mask = None) -> tuple[Array, Any]:
        self._logits = actor_out
        self._encoded = encoded.transpose(0, 2, 1)
        softplus = np.log1p(np.exp(-np.abs(actor_out))) + np.maximum(actor_out, 0.0)  # log(1 + exp(logit))
        self._probs = np.exp(actor_out - softplus)
        log_prob = np.add.reduce(actor_out * self._encoded - softplus, axis=1)
        return log_prob, np.add.reduce(softplus - actor_out * self._probs, axis=1)

    def backward(self, d_log_prob: Array, d_entropy: float, d_log_std: Array) -> Array:
        # d log_prob / d logit = bit - prob; d entropy / d logit = -logit * prob * (1 - prob)
        d_logits: Array = np.subtract(self._encoded, self._probs)
        np.multiply(d_logits, d_log_prob[:, None], out=d_logits)
        if d_entropy:
            d_logits -= d_entropy * self._logits * self._probs * (1.0 - self._probs)
        return d_logits


class Gaussian:
    """Numbers with a learned log_std that does not depend on the state: Box. Only the environment gets them clipped."""

    has_log_std = True

    def __init__(self, space: spaces.Box) -> None:
        self.num_outputs = math.prod(space.shape)
        self._space = space
        self._low = space.low.reshape(-1)
        self._high = space.high.reshape(-1)

    @property
    def probabilities(self) -> Array | None:
        return None

    def noise(self, generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
        return generator.standard_normal(shape, dtype=dtype)

    def sample(self, actor_out: Array, log_std: Array, noise: Array | None, mask: Mask = None) -> Array:
        return actor_out.copy() if noise is None else np.exp(log_std)[:, :, None] * noise + actor_out

    def encode(self, actions: Array, dtype: Any) -> Array:
        return np.swapaxes(actions, -1, -2)

    def to_env(self, actions: Array) -> Array:
        clipped = np.minimum(np.maximum(actions.T, self._low), self._high)
        return clipped.astype(self._space.dtype, copy=False).reshape(-1, *self._space.shape)

    def evaluate(self, actor_out: Array, encoded: Array, log_std: Array, mask: Mask = None) -> tuple[Array, Any]:
        self._inverse_std = np.exp(-log_std[:, :, None])
        error = np.subtract(encoded.transpose(0, 2, 1), actor_out, out=actor_out)
        self._z = np.multiply(error, self._inverse_std, out=actor_out)  # (action - mean) / std
        sum_log_std = np.add.reduce(log_std, axis=1)[:, None]
        log_prob = np.add.reduce(self._z * self._z, axis=1)
        np.multiply(log_prob, -0.5, out=log_prob)
        np.subtract(log_prob, sum_log_std + 0.5 * self.num_outputs * LOG_TAU, out=log_prob)
        return log_prob, sum_log_std + 0.5 * self.num_outputs * (1 + LOG_TAU)

    def backward(self, d_log_prob: Array, d_entropy: float, d_log_std: Array) -> Array:
        # d log_prob / d log_std = z² - 1; d entropy / d log_std = 1 in every row
        slope = self._z * self._z
        np.subtract(slope, 1.0, out=slope)
        np.multiply(slope, d_log_prob[:, None], out=slope)
        np.add.reduce(slope, axis=2, out=d_log_std)
        np.add(d_log_std, d_entropy * d_log_prob.shape[1], out=d_log_std)
        # d log_prob / d mean = z / std
        d_mean = np.multiply(self._z, d_log_prob[:, None])
        return np.multiply(d_mean, self._inverse_std, out=d_mean)


ActionDistribution = Categorical | Bernoulli | Gaussian
"""All have the same methods, which `Categorical` documents."""


def distribution_for(space: spaces.Space[Any], *, has_masks: bool = False) -> ActionDistribution:
    """Return the distribution for a space. With masks, a bit is a choice between two values, as in sb3-contrib."""
    if isinstance(space, spaces.Box):
        return Gaussian(space)
    if isinstance(space, spaces.MultiBinary) and not has_masks:
        return Bernoulli(space)
    return Categorical(space)
