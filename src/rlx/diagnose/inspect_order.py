"""Whether the numbers of an observation change their places from episode to episode.

Episodes with the same actions are compared: how a number moves, and how that goes with the action, is its
fingerprint. A number has moved where another place's fingerprint of a second episode fits far better than its own
place's does, in both halves of the episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from rlx.envs.inspect_record import Episode, Floats, Inspection

LEAST_STEPS = 8
FITS_BETTER = 0.25
"""Another place must be this much closer, in the half that was searched; in the other half twice that will do."""
MOVED_SHARE = 0.2
FEW_NUMBERS, COURSES_SHARE = 5, 0.4
MOST_EPISODES, MANY_NUMBERS = 10, 60


@dataclass(frozen=True)
class Moved:
    """The share of numbers that have changed places, and one that did."""

    share: float
    pairs: int
    example: str


def moved(record: Inspection) -> Moved | None:
    """Return how many numbers change their places between scripted episodes; None where they keep them."""
    plain = [index for index, column in enumerate(record.columns) if not column.labels]
    episodes = [episode for episode in record.played("script") if len(episode) >= LEAST_STEPS]
    if len(plain) < 2 or len(episodes) < 3 or record.is_image:
        return None
    episodes = episodes[: MOST_EPISODES if len(plain) <= MANY_NUMBERS else 4]
    prints = [_fingerprints(episode, plain, record) for episode in episodes]
    names = [record.columns[index].name for index in plain]
    shares, example = [], ""
    for (one, two), (first, second) in zip(combinations(prints, 2), combinations(episodes, 2), strict=True):
        places = _changed(one, two)
        shares.append(len(places) / max(_moving(one), 1))
        if places and not example:
            index, other = places[0]
            example = f"{names[index]} of seed {first.seed} is {names[other]} of seed {second.seed}"
    share = float(np.mean(shares))
    if share >= MOVED_SHARE:
        return Moved(share, len(shares), example)
    return _moved_by_course([episode.observations[:, plain] for episode in episodes], episodes, record)


def _moved_by_course(seen: list[Floats], episodes: list[Episode], record: Inspection) -> Moved | None:
    """Compare few numbers by how they go on together: what one episode teaches holds for another in its own order."""
    if len(seen[0][0]) > FEW_NUMBERS or not all(np.isfinite(one).all() for one in seen):
        return None
    orders = list(permutations(range(seen[0].shape[1])))
    actions = [_indicated(episode, record) for episode in episodes]
    better = []
    for one, two in zip(range(len(seen)), [*range(1, len(seen)), 0], strict=True):
        learned = _learned(seen[one], actions[one])
        errors = [_error(learned, seen[two][:, order], actions[two]) for order in orders]
        better.append(min(errors) < FITS_BETTER * errors[0])
    share = float(np.mean(better))
    return Moved(share, len(better), "they go on together in another order") if share >= COURSES_SHARE else None


def _learned(seen: Floats, actions: Floats) -> Floats:
    """Return the coefficients of a quadratic fit of the next change, with the size of the changes as last row."""
    features, changes = _quadratic(seen[:-1], actions), np.diff(seen, axis=0)
    gram = features.T @ features + 1e-6 * len(features) * np.eye(features.shape[1])
    size = np.sqrt((changes**2).mean(axis=0, keepdims=True)) + 1e-9
    fit = np.linalg.lstsq(gram, features.T @ changes, rcond=None)[0]  # one absurd number makes the matrix singular
    return np.concatenate([fit, size])


def _error(learned: Floats, seen: Floats, actions: Floats) -> float:
    missed = (_quadratic(seen[:-1], actions) @ learned[:-1] - np.diff(seen, axis=0)) / learned[-1]
    return float(np.median(np.abs(missed).sum(axis=1)))


def _quadratic(seen: Floats, actions: Floats) -> Floats:
    pairs = [(seen[:, one] * seen[:, two])[:, None] for one in range(seen.shape[1]) for two in range(one + 1)]
    return np.concatenate([np.ones((len(seen), 1)), seen, actions, *pairs], axis=1)


def _moving(prints: tuple[Floats, Floats]) -> int:
    return int((prints[0][:, 0] > _STILL).sum())


_STILL = -12.0


def _changed(one: tuple[Floats, Floats], two: tuple[Floats, Floats]) -> list[tuple[int, int]]:
    """Return the places whose number is found at another place in the other episode, in both halves."""
    first, second = _distances(one[0], two[0]), _distances(one[1], two[1])
    found = []
    for index in range(len(first)):
        other = int(np.argmin(first[index]))
        is_mutual = int(np.argmin(first[:, other])) == index
        is_closer = first[index, other] < FITS_BETTER * first[index, index]
        is_confirmed = second[index, other] < 2 * FITS_BETTER * second[index, index]
        if other != index and is_mutual and is_closer and is_confirmed:
            found.append((index, other))
    return found


def _distances(one: Floats, two: Floats) -> Floats:
    squared: Floats = ((one[:, None, :] - two[None, :, :]) ** 2).sum(axis=2)
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
    return values[:, None] if not labels else (values[:, None] == np.arange(min(labels, 8))).astype(float)


def _fingerprint(changes: Floats, actions: Floats) -> Floats:
    """Describe how numbers change: size, steadiness, and correlation with the actions."""
    spread = changes.std(axis=0)
    size = np.log10(np.sqrt((changes**2).mean(axis=0)) + 1e-15)
    steady = _correlations(changes[:-1], changes[1:])
    with_actions = _correlation_table(changes, actions)[:, :12]
    flat = np.where(spread > 1e-12, 1.0, 0.0)
    return np.concatenate([2 * size[:, None], steady[:, None], with_actions, flat[:, None]], axis=1)


def _correlations(one: Floats, two: Floats) -> Floats:
    centred = [each - each.mean(axis=0) for each in (one, two)]
    norm = np.sqrt((centred[0] ** 2).sum(axis=0) * (centred[1] ** 2).sum(axis=0))
    return np.where(norm > 1e-12, (centred[0] * centred[1]).sum(axis=0) / np.where(norm > 1e-12, norm, 1.0), 0.0)


def _correlation_table(changes: Floats, actions: Floats) -> Floats:
    rows = [_correlations(changes, np.repeat(action[:, None], changes.shape[1], axis=1)) for action in actions.T]
    return np.stack(rows, axis=1) if rows else np.zeros((changes.shape[1], 0))
