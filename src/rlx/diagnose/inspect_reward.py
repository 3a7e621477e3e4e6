"""Whether an environment's reward changes its sign in the course of an episode, from what was played.

The reward is fitted as a function of what was seen before and after a step and of the action. Where the fit is far
better once the reward of every step after some step is negated, the sign changes there. Both fits have the same
features and the same data, so what the features cannot express counts against both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rlx.envs.inspect_record import Column, Episode, Floats, Inspection

MOST_NUMBERS, LEAST_ROWS, LEAST_LATE = 600_000, 60, 12
MOST_CANDIDATES = 40
FITS, BETTER, CLEAR = 0.7, 0.5, 0.15
"""The negated fit must explain this share of the reward, and leave a clear share of the plain fit's error, or a better
one that what was learned from earlier rewards alone confirms."""
RIDGE = 1e-3
MOST_LABELS = 100
FARTHEST = 5.0
"""Beyond so many times the usual size, features and rewards count no more."""


@dataclass(frozen=True)
class Flip:
    """From which step on the reward is negated, and how well the reward is explained without and with that."""

    step: int
    explained: float
    explained_negated: float
    transitions: int


@dataclass(frozen=True)
class _Transitions:
    features: Floats
    rewards: Floats
    steps: Floats
    folds: Floats


def flip(record: Inspection) -> Flip | None:
    """Return where the reward's sign changes, if it does."""
    inner = _gather(record, is_last=False)
    last = _gather(record, is_last=True)
    return next((found for data in (inner, last) if data is not None and (found := _search(data))), None)


def _gather(record: Inspection, *, is_last: bool) -> _Transitions | None:
    """Lay out transitions: those in which an episode terminates apart, as their rewards are of another kind."""
    rows, rewards, steps, folds = [], [], [], []
    for number, episode in enumerate(record.episodes):
        count = len(episode)
        stop = count - (episode.ending in ("terminated", "both"))
        chosen = slice(stop, count) if is_last else slice(0, stop)
        if count and len(episode.rewards[chosen]):
            rows.append(_features(record, episode, chosen))
            rewards.append(episode.rewards[chosen])
            steps.append(np.arange(count)[chosen])
            folds.append(np.full(len(steps[-1]), number % 2))
    if not rows:
        return None
    features, given = np.concatenate(rows), np.concatenate(rewards)
    keep = _sample(np.isfinite(features).all(axis=1) & np.isfinite(given), MOST_NUMBERS // features.shape[1])
    when, side = (np.concatenate(each).astype(float)[keep] for each in (steps, folds))
    return _Transitions(features[keep], _tamed(given[keep]), when, side)


def _tamed(rewards: Floats) -> Floats:
    """Bring single large rewards down to a few times the usual size; their sign stays."""
    usual = float(np.median(np.abs(rewards[rewards != 0]))) if rewards.any() else 1.0
    return np.clip(rewards, -FARTHEST * usual, FARTHEST * usual)


def _sample(is_usable: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    usable = np.flatnonzero(is_usable)
    if len(usable) <= most:
        return usable
    return np.sort(np.random.default_rng(0).choice(usable, most, replace=False))


def _features(record: Inspection, episode: Episode, chosen: slice) -> Floats:
    """Return what is seen after a step, by how much it changed (for rewards of progress), and the action."""
    seen = _numbers(episode.observations, record.columns)
    before, after = seen[:-1][chosen], seen[1:][chosen]
    done = _numbers(episode.actions[chosen], record.action_columns)
    return np.concatenate([np.ones((len(before), 1)), after, after - before, done], axis=1)


def _numbers(values: Floats, columns: Sequence[Column]) -> Floats:
    """Return labels as indicators; numbers with their size, square, and how far two of them are from 0 together."""
    parts: list[Floats] = [np.zeros((len(values), 0))]
    plain = [index for index, column in enumerate(columns) if not column.labels]
    numbers = values[:, plain]
    parts += [numbers, np.abs(numbers), numbers**2] if len(plain) <= 40 else [numbers]
    if len(plain) <= 12:
        parts += [
            np.hypot(numbers[:, one], numbers[:, two])[:, None] for one, two in combinations(range(len(plain)), 2)
        ]
    for index, column in enumerate(columns):
        if 0 < column.labels <= MOST_LABELS:
            parts.append((values[:, index, None] == np.arange(column.labels)).astype(float))
    return np.concatenate(parts, axis=1)


def _search(data: _Transitions) -> Flip | None:
    """Try steps as the one from which on the reward is negated: spread over all first, then those around the best."""
    every = _candidates(data.steps)
    if len(data.rewards) < LEAST_ROWS or not every or not data.rewards.any():
        return None
    spread = _spread(every, data.steps)
    near = spread.index(_best(data, spread).step)
    around = [step for step in every if spread[max(near - 1, 0)] <= step <= spread[min(near + 1, len(spread) - 1)]]
    found = _best(data, around[:: len(around) // MOST_CANDIDATES + 1])
    ratio = (1 - found.explained_negated) / max(1 - found.explained, 1e-12)
    is_clear = found.explained_negated >= FITS and ratio <= CLEAR
    is_better = found.explained_negated >= FITS and ratio <= BETTER
    return found if is_clear or (is_better and _is_confirmed(data, found.step)) else None


def _spread(every: list[int], steps: Floats) -> list[int]:
    """Return candidates with equally many transitions between them."""
    wanted = np.quantile(steps, np.linspace(0, 1, MOST_CANDIDATES))
    return sorted({every[min(int(np.searchsorted(every, step)), len(every) - 1)] for step in wanted})


def _best(data: _Transitions, candidates: list[int]) -> Flip:
    """Return the candidate with the best fit, all in one solve."""
    signs = np.stack([np.ones(len(data.steps)), *(np.where(data.steps < step, 1.0, -1.0) for step in candidates)], 1)
    errors = _errors(data.features, data.rewards[:, None] * signs, data.folds) / float((data.rewards**2).sum())
    best = int(np.argmin(errors[1:]))
    return Flip(candidates[best], float(1 - errors[0]), float(1 - errors[1 + best]), len(data.rewards))


def _is_confirmed(data: _Transitions, step: int) -> bool:
    """Say whether later rewards are the negative of what earlier ones alone predict for them."""
    early = (data.steps < step).astype(float)
    guess = _predicted(_scaled(data.features), data.rewards[:, None], early == 1)[early == 0, 0]
    late = data.rewards[early == 0]
    return bool(((late + guess) ** 2).sum() < BETTER * min(((late - guess) ** 2).sum(), (late**2).sum()))


def _candidates(steps: Floats) -> list[int]:
    """Return the steps that have enough transitions before and after them."""
    counts = np.cumsum(np.bincount(steps.astype(int)))
    return [
        step
        for step in range(1, len(counts))
        if counts[step - 1] >= LEAST_LATE and counts[-1] - counts[step - 1] >= LEAST_LATE
    ]


def _errors(features: Floats, targets: Floats, folds: Floats) -> Floats:
    """Return the squared error of each target, predicted in each half of the episodes from the other half."""
    scaled = _scaled(features)
    errors = np.zeros(targets.shape[1])
    for fold in (0, 1):
        known, asked = folds != fold, folds == fold
        if not known.any() or not asked.any():
            return np.full(targets.shape[1], np.inf)
        errors += ((_predicted(scaled, targets, known)[asked] - targets[asked]) ** 2).sum(axis=0)
    return errors


def _scaled(features: Floats) -> Floats:
    scale = features.std(axis=0)
    scaled = np.where(scale > 0, (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1), 0.0)
    scaled[:, 0] = 1.0
    return np.clip(scaled, -FARTHEST, FARTHEST)


def _predicted(scaled: Floats, targets: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return what ridge regression on the known rows predicts for all."""
    gram = scaled[known].T @ scaled[known] + RIDGE * known.sum() * np.eye(scaled.shape[1])
    return scaled @ np.linalg.solve(gram, scaled[known].T @ targets[known])
