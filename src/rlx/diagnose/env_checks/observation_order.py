"""Whether the numbers of an observation change their places from episode to episode.

Episodes with the same actions are compared. The fingerprint of a number is how it changes, and how that correlates with
the action. A number has moved if the fingerprint of another place in a second episode fits far better than that of its
own place, in both halves of the episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from rlx.envs.inspect.record import Episode, Floats, Inspection

LEAST_STEPS = 8
FITS_BETTER = 0.25
"""Another place must be this much closer in the half that was searched, and half as much in the other half."""
MOVED_SHARE = 0.2
FEW_NUMBERS = 5
DYNAMICS_SHARE = 0.4
MOST_EPISODES = 10
MANY_NUMBERS = 60
_STILL = -12.0
"""Twice the log of a change below which a number does not move."""


@dataclass(frozen=True)
class MovedNumbers:
    """The share of numbers that have changed places, and an example."""

    share: float
    pairs: int
    example: str


def find_moved_numbers(record: Inspection) -> MovedNumbers | None:
    """Return how many numbers change places between scripted episodes, or None if they keep them."""
    plain = [index for index, column in enumerate(record.columns) if not column.labels]
    episodes = [episode for episode in record.played("script") if len(episode) >= LEAST_STEPS]
    if len(plain) < 2 or len(episodes) < 3 or record.is_image:
        return None
    episodes = episodes[:MOST_EPISODES]
    if len(plain) > MANY_NUMBERS:
        episodes = episodes[:4]
    prints = [_fingerprints(episode, plain, record) for episode in episodes]
    names = [record.columns[index].name for index in plain]
    shares = []
    example = ""
    for (prints_a, prints_b), (first, second) in zip(combinations(prints, 2), combinations(episodes, 2), strict=True):
        places = _changed_places(prints_a, prints_b)
        moving = int((prints_a[0][:, 0] > _STILL).sum())
        shares.append(len(places) / max(moving, 1))
        if places and not example:
            index, other = places[0]
            example = f"{names[index]} of seed {first.seed} is {names[other]} of seed {second.seed}"
    share = float(np.mean(shares))
    if share >= MOVED_SHARE:
        return MovedNumbers(share, len(shares), example)
    return _moved_by_dynamics([episode.observations[:, plain] for episode in episodes], episodes, record)


def _moved_by_dynamics(seen: list[Floats], episodes: list[Episode], record: Inspection) -> MovedNumbers | None:
    """Compare few numbers by their joint dynamics: a model of one episode fits another episode in the same order."""
    if len(seen[0][0]) > FEW_NUMBERS or not all(np.isfinite(values).all() for values in seen):
        return None
    orders = list(permutations(range(seen[0].shape[1])))
    actions = [_indicated(episode, record) for episode in episodes]
    better = []
    for index in range(len(seen)):
        following = (index + 1) % len(seen)
        model = _fit_changes(seen[index], actions[index])
        errors = [_error(model, seen[following][:, order], actions[following]) for order in orders]
        better.append(min(errors) < FITS_BETTER * errors[0])
    share = float(np.mean(better))
    if share < DYNAMICS_SHARE:
        return None
    return MovedNumbers(share, len(better), "their dynamics fit in another order")


def _fit_changes(seen: Floats, actions: Floats) -> Floats:
    """Return the coefficients of a quadratic fit of the next change, with the size of the changes as last row."""
    features = _quadratic(seen[:-1], actions)
    changes = np.diff(seen, axis=0)
    gram = features.T @ features + 1e-6 * len(features) * np.eye(features.shape[1])
    size = np.sqrt((changes**2).mean(axis=0, keepdims=True)) + 1e-9
    fit = np.linalg.lstsq(gram, features.T @ changes, rcond=None)[0]  # a single absurd number makes the matrix singular
    return np.concatenate([fit, size])


def _error(model: Floats, seen: Floats, actions: Floats) -> float:
    missed = (_quadratic(seen[:-1], actions) @ model[:-1] - np.diff(seen, axis=0)) / model[-1]
    return float(np.median(np.abs(missed).sum(axis=1)))


def _quadratic(seen: Floats, actions: Floats) -> Floats:
    columns = range(seen.shape[1])
    pairs = [(seen[:, i] * seen[:, j])[:, None] for i in columns for j in range(i + 1)]
    return np.concatenate([np.ones((len(seen), 1)), seen, actions, *pairs], axis=1)


def _changed_places(prints_a: tuple[Floats, Floats], prints_b: tuple[Floats, Floats]) -> list[tuple[int, int]]:
    """Return the places whose number is at another place in the other episode, in both halves."""
    first = _distances(prints_a[0], prints_b[0])
    second = _distances(prints_a[1], prints_b[1])
    places = []
    for index in range(len(first)):
        other = int(np.argmin(first[index]))
        is_mutual = int(np.argmin(first[:, other])) == index
        is_closer = first[index, other] < FITS_BETTER * first[index, index]
        is_confirmed = second[index, other] < 2 * FITS_BETTER * second[index, index]
        if other != index and is_mutual and is_closer and is_confirmed:
            places.append((index, other))
    return places


def _distances(first: Floats, second: Floats) -> Floats:
    squared: Floats = ((first[:, None, :] - second[None, :, :]) ** 2).sum(axis=2)
    return np.sqrt(squared)


def _fingerprints(episode: Episode, plain: list[int], record: Inspection) -> tuple[Floats, Floats]:
    """Return each number's fingerprint from the first and from the second half of an episode."""
    changes = np.diff(episode.observations[:, plain], axis=0)
    actions = _indicated(episode, record)
    half = len(changes) // 2
    return _fingerprint(changes[:half], actions[:half]), _fingerprint(changes[half:], actions[half:])


def _indicated(episode: Episode, record: Inspection) -> Floats:
    labels = [column.labels for column in record.action_columns]
    return np.concatenate([_indicators(episode.actions[:, i], count) for i, count in enumerate(labels)], axis=1)


def _indicators(values: Floats, labels: int) -> Floats:
    if not labels:
        return values[:, None]
    return np.asarray(values[:, None] == np.arange(min(labels, 8)), dtype=np.float64)


def _fingerprint(changes: Floats, actions: Floats) -> Floats:
    """Describe how numbers change: size, steadiness, and correlation with the actions."""
    spread = changes.std(axis=0)
    size = np.log10(np.sqrt((changes**2).mean(axis=0)) + 1e-15)
    steady = _correlations(changes[:-1], changes[1:])
    with_actions = _correlation_table(changes, actions)[:, :12]
    flat = np.where(spread > 1e-12, 1.0, 0.0)
    return np.concatenate([2 * size[:, None], steady[:, None], with_actions, flat[:, None]], axis=1)


def _correlations(first: Floats, second: Floats) -> Floats:
    centred = [values - values.mean(axis=0) for values in (first, second)]
    norm = np.sqrt((centred[0] ** 2).sum(axis=0) * (centred[1] ** 2).sum(axis=0))
    return np.where(norm > 1e-12, (centred[0] * centred[1]).sum(axis=0) / np.where(norm > 1e-12, norm, 1.0), 0.0)


def _correlation_table(changes: Floats, actions: Floats) -> Floats:
    rows = [_correlations(changes, np.repeat(action[:, None], changes.shape[1], axis=1)) for action in actions.T]
    return np.stack(rows, axis=1) if rows else np.zeros((changes.shape[1], 0))
