"""A Gaussian process on ranks: it learns which regions are good and proposes the most promising candidates there.

It needs only NumPy. The target is the rank of a config (see `ranks`), so units and outliers do not matter, and failed
configs are simply the worst: the search moves away from regions that crash. Parameters that explain more of the ranks
on their own get shorter length scales. A batch is chosen one by one; after each choice the uncertainty around it
shrinks, which spreads the batch. A quarter of every batch is random, so a wrong model cannot stop the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rlx.search.observation import NewConfigs, Observation, ranks
from rlx.search.space import Space, Values

Floats = NDArray[np.float64]
START = 6
"""With fewer finished configs there is nothing to learn from."""
CANDIDATES = 400
NEIGHBOURS = 100
MOST_KNOWN = 500
"""The model learns from at most so many configs. Fewer are used as they are."""
RANDOM_SHARE = 0.25
EXPLORATION = 0.5
"""How many standard deviations an uncertain candidate may gain."""
LEAST_WEIGHT = 0.05
"""A parameter without any visible effect keeps this weight, next to the share of variance it explains."""
MOST_COMPARED = 1000
"""The share that a parameter explains is measured on at most so many configs: every pair of them is compared."""
LENGTHS = (0.4, 0.7, 1.2, 2.0, 3.5)
NOISES = (0.05, 0.2, 0.5, 1.0, 2.0)


class ModelSampler:
    """Proposes by upper confidence bound among random candidates, or among the given ones."""

    def __init__(self, candidates: Sequence[Values] | None = None) -> None:
        self._candidates = candidates

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return new configs: random ones first, then three quarters by the model."""
        new = NewConfigs(space, history, count)
        generator = np.random.default_rng([seed, len(history)])
        ended = [seen for seen in history if seen.score is not None or seen.has_failed]
        known = [seen for seen in ended if space.point(seen.values) is not None]
        candidates = [values for values in self._draw(space, known, generator) if space.is_allowed(values)]
        if len(known) >= START and len({seen.score for seen in known}) > 1:
            by_model = count - round(count * RANDOM_SHARE)
            for values in _best(space, known, candidates, by_model, {space.identity(seen.values) for seen in history}):
                new.add(values)
        for values in candidates:
            new.add(values)
        return new.draw(seed=seed)

    def _draw(self, space: Space, known: Sequence[Observation], generator: np.random.Generator) -> list[Values]:
        """Return candidates: random ones, and neighbours of the best configs so far."""
        if self._candidates is not None:
            return [self._candidates[index] for index in generator.permutation(len(self._candidates))]
        points = list(generator.random((CANDIDATES, len(space.parameters))))
        if known:
            order = np.argsort(-ranks(known), kind="stable")[: max(1, len(known) // 5)]
            for index in generator.choice(order, NEIGHBOURS):
                around = np.array(space.point(known[index].values)) + generator.normal(0, 0.15, len(space.parameters))
                points.append(np.clip(around, 0.0, 1.0))
        return [space.at(point) for point in points]


def _best(
    space: Space,
    known: Sequence[Observation],
    candidates: Sequence[Values],
    count: int,
    tried: set[tuple[object, ...]],
) -> list[Values]:
    """Return the most promising candidates that were not tried."""
    unique = {space.identity(values): values for values in candidates}
    fresh = [values for identity, values in unique.items() if identity not in tried]
    if not fresh or count <= 0:
        return []
    known = _informative(known)
    features = np.array([space.features(seen.values) for seen in known])
    others = np.array([space.features(values) for values in fresh])
    quantile = NormalDist().inv_cdf
    target = np.array([quantile(min(0.999, max(0.001, rank))) for rank in ranks(known)])
    return [fresh[index] for index in choose(features, target, others, count)]


def _informative(known: Sequence[Observation]) -> Sequence[Observation]:
    """Return the configs that the model learns from: all, or the better half of a limit and a spread of the others.

    The time of the model grows with the cube of their number.
    """
    if len(known) <= MOST_KNOWN:
        return known
    order = np.argsort(-ranks(known), kind="stable")
    best = order[: MOST_KNOWN // 2]
    rest = order[MOST_KNOWN // 2 :]
    spread = rest[np.linspace(0, len(rest) - 1, MOST_KNOWN - len(best)).astype(int)]
    return [known[index] for index in sorted([*best, *spread])]


def choose(features: Floats, target: Floats, candidates: Floats, count: int) -> list[int]:
    """Return the indices of the most promising candidates: (n, d), (n,), (m, d) → indices."""
    weights = importance_weights(features, target)
    known = features * weights
    others = candidates * weights
    distances = _squared_distances(known, known)
    length, noise, variance = _most_likely(distances, target)
    inverse = np.linalg.inv(_kernel(distances / length**2) + noise * np.eye(len(target)))
    across = _kernel(_squared_distances(others, known) / length**2)
    mean = across @ (inverse @ target)
    covariance = variance * (_kernel(_squared_distances(others, others) / length**2) - across @ inverse @ across.T)
    chosen: list[int] = []
    for _ in range(min(count, len(candidates))):
        bound = mean + EXPLORATION * np.sqrt(np.maximum(0.0, np.diag(covariance)))
        bound[chosen] = -np.inf
        best = int(np.argmax(bound))
        chosen.append(best)
        column = covariance[:, best]
        # As if its score came out as predicted: the mean stays, the uncertainty around it shrinks.
        covariance = covariance - np.outer(column, column) / (column[best] + variance * noise)
    return chosen


def importance_weights(features: Floats, target: Floats) -> Floats:
    """Return a scale per feature: the square root of the variance it explains alone, with mean square one: (d,)."""
    shares = np.sqrt(LEAST_WEIGHT + explained(features, target))
    weights: Floats = shares * np.sqrt(len(shares) / np.sum(shares**2))
    return weights


def explained(features: Floats, target: Floats) -> Floats:
    """Return the share of the target's variance that each feature predicts alone, leaving one out: (n, d) → (d,).

    Of very many configs, an even spread over their order is enough.
    """
    if len(target) > MOST_COMPARED:
        some = np.linspace(0, len(target) - 1, MOST_COMPARED).astype(int)
        features = features[some]
        target = target[some]
    centred = target - target.mean()
    total = float(centred @ centred)
    shares = np.zeros(features.shape[1])
    if total <= 0:
        return shares
    for index, column in enumerate(features.T):
        near = np.exp(-0.5 * ((column[:, None] - column[None, :]) / 0.15) ** 2)
        np.fill_diagonal(near, 0.0)
        predicted = near @ centred / (near.sum(1) + 1.0)
        shares[index] = max(0.0, 1.0 - float(np.sum((centred - predicted) ** 2)) / total)
    return shares


def _squared_distances(a: Floats, b: Floats) -> Floats:
    distances: Floats = np.maximum(0.0, (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T)
    return distances


def _kernel(squared: Floats) -> Floats:
    """Matérn 5/2 of squared distances."""
    scaled = np.sqrt(5 * squared)
    kernel: Floats = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return kernel


def _most_likely(distances: Floats, target: Floats) -> tuple[float, float, float]:
    """Return the length, the noise (as a share of the variance) and the variance with the highest likelihood."""
    best = (-np.inf, LENGTHS[0], NOISES[-1], 1.0)
    for length in LENGTHS:
        eigenvalues, vectors = np.linalg.eigh(_kernel(distances / length**2))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        projected = (vectors.T @ target) ** 2
        for noise in NOISES:
            variance = float(np.mean(projected / (eigenvalues + noise)))
            likelihood = -0.5 * len(target) * np.log(max(variance, 1e-12)) - 0.5 * np.log(eigenvalues + noise).sum()
            best = max(best, (float(likelihood), length, noise, variance))
    return best[1:]
