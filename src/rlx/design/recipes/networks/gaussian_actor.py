"""A gaussian actor squashed by tanh, as in SAC: bounded log σ, corrected log-density, and a small last layer.

The density of a = tanh(u) is N(u; μ, σ) / (1 − tanh²(u)). The stable form of log(1 − tanh²(u)) is
2 (log 2 − u − softplus(−2u)).
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_most
from rlx.design.recipes.small_worlds import Floats

LOG_STD_BOUNDS = (-20.0, 2.0)


def orthogonal(rng: np.random.Generator, rows: int, columns: int, *, gain: float) -> Floats:
    """Return a matrix with orthogonal rows or columns, times a gain."""
    drawn = rng.normal(size=(max(rows, columns), min(rows, columns)))
    basis, triangle = np.linalg.qr(drawn)
    basis = basis * np.sign(np.diag(triangle))
    if rows < columns:
        basis = basis.T
    return gain * basis


class TanhGaussianActor:
    """Two hidden layers, then mean and log σ."""

    def __init__(self, inputs: int, actions: int, *, seed: int, hidden: int = 64) -> None:
        rng = np.random.default_rng(seed)
        sizes = [(inputs, hidden, np.sqrt(2)), (hidden, hidden, np.sqrt(2)), (hidden, 2 * actions, 0.01)]
        self.layers = [orthogonal(rng, rows, columns, gain=gain) for rows, columns, gain in sizes]
        self.actions = actions

    def parameters_of(self, observations: Floats) -> tuple[Floats, Floats]:
        """Return mean and log σ."""
        hidden = np.tanh(np.tanh(observations @ self.layers[0]) @ self.layers[1])
        both = hidden @ self.layers[2]
        return both[..., : self.actions], np.clip(both[..., self.actions :], *LOG_STD_BOUNDS)

    def sample(self, observations: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return actions in (−1, 1) and their log-densities."""
        mean, log_std = self.parameters_of(observations)
        raw = mean + np.exp(log_std) * rng.normal(size=mean.shape)
        return np.tanh(raw), log_density(raw, mean, log_std)


def log_density(raw: Floats, mean: Floats, log_std: Floats) -> Floats:
    """Return the log-density of tanh(raw), summed over the numbers of an action."""
    normal = -0.5 * ((raw - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    correction = 2 * (np.log(2) - raw - np.logaddexp(0.0, -2 * raw))
    density: Floats = (normal - correction).sum(axis=-1)
    return density


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Integrate the density over all actions, and look at the first actions of a fresh actor."""
    edges = np.linspace(-1, 1, int(20_000 * scale) + 2001)
    middle = (edges[1:] + edges[:-1]) / 2
    raw = np.arctanh(middle)[:, None]
    worst = 0.0
    for mean, log_std in ((0.0, 0.0), (1.0, -1.0), (-0.5, 0.5)):
        density = np.exp(log_density(raw, np.full_like(raw, mean), np.full_like(raw, log_std)))
        worst = max(worst, abs(float((density * np.diff(edges)).sum()) - 1))
    actor = TanhGaussianActor(8, 2, seed=seed)
    first_mean, _ = actor.parameters_of(np.random.default_rng(seed).normal(size=(500, 8)))
    far = log_density(np.array([[30.0]]), np.array([[0.0]]), np.array([[2.0]]))
    return [
        at_most("error of the density's integral", worst, 1e-2),
        at_most("largest first mean action", float(np.abs(first_mean).max()), 0.05),
        at_most("densities that are not finite", float((~np.isfinite(far)).sum()), 0.0),
    ]
