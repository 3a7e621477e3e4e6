"""Whether an environment's reward changes its sign within an episode, from the episodes that were played.

rlx fits the reward as a function of the observations before and after a step and of the action. If the fit is far
better after the rewards from some step on are negated, the sign changes there. Both fits have the same features and the
same data, so a reward that the features cannot express counts against both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rlx.envs.inspect.record import Column, Episode, Floats, Inspection

MOST_NUMBERS = 600_000
LEAST_ROWS = 60
LEAST_LATE = 12
MOST_CANDIDATES = 40
FITS = 0.7
BETTER = 0.5
CLEAR = 0.15
"""The negated fit must explain `FITS` of the reward and leave at most `CLEAR` of the plain fit's error.

`BETTER` of it is enough if a fit on earlier rewards alone confirms the flip."""
RIDGE = 1e-3
MOST_LABELS = 100
FARTHEST = 5.0
"""Features and rewards are clipped at so many times their usual size."""


@dataclass(frozen=True)
class SignFlip:
    """The step from which on the reward is negated, and how much of it is explained without and with that."""

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


def find_sign_flip(record: Inspection) -> SignFlip | None:
    """Return the step at which the reward changes its sign, if it does."""
    for is_last in (False, True):
        data = _gather(record, is_last=is_last)
        flip = data and _search(data)
        if flip:
            return flip
    return None


def _gather(record: Inspection, *, is_last: bool) -> _Transitions | None:
    """Collect the transitions, or those that end an episode: their rewards are of another kind."""
    rows: list[Floats] = []
    rewards: list[Floats] = []
    steps: list[NDArray[np.int_]] = []
    folds: list[NDArray[np.int_]] = []
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
    features = np.concatenate(rows)
    paid = np.concatenate(rewards)
    keep = _sample(np.isfinite(features).all(axis=1) & np.isfinite(paid), MOST_NUMBERS // features.shape[1])
    when = np.concatenate(steps).astype(float)[keep]
    fold = np.concatenate(folds).astype(float)[keep]
    return _Transitions(features[keep], _clip_large(paid[keep]), when, fold)


def _clip_large(rewards: Floats) -> Floats:
    """Clip single large rewards to a few times the usual size."""
    usual = float(np.median(np.abs(rewards[rewards != 0]))) if rewards.any() else 1.0
    return np.clip(rewards, -FARTHEST * usual, FARTHEST * usual)


def _sample(is_usable: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    usable = np.flatnonzero(is_usable)
    if len(usable) <= most:
        return usable
    return np.sort(np.random.default_rng(0).choice(usable, most, replace=False))


def _features(record: Inspection, episode: Episode, chosen: slice) -> Floats:
    """Return the observation after a step, its change (for rewards of progress), and the action."""
    seen = _numbers(episode.observations, record.columns)
    before = seen[:-1][chosen]
    after = seen[1:][chosen]
    done = _numbers(episode.actions[chosen], record.action_columns)
    return np.concatenate([np.ones((len(before), 1)), after, after - before, done], axis=1)


def _numbers(values: Floats, columns: Sequence[Column]) -> Floats:
    """Return labels as indicators, and numbers with their size, their square and the length of each pair."""
    parts: list[Floats] = [np.zeros((len(values), 0))]
    plain = [index for index, column in enumerate(columns) if not column.labels]
    numbers = values[:, plain]
    parts.append(numbers)
    if len(plain) <= 40:
        parts += [np.abs(numbers), numbers**2]
    if len(plain) <= 12:
        parts += [np.hypot(numbers[:, i], numbers[:, j])[:, None] for i, j in combinations(range(len(plain)), 2)]
    for index, column in enumerate(columns):
        if 0 < column.labels <= MOST_LABELS:
            parts.append((values[:, index, None] == np.arange(column.labels)).astype(float))
    return np.concatenate(parts, axis=1)


def _search(data: _Transitions) -> SignFlip | None:
    """Try steps from which on the reward is negated: first spread over all steps, then those around the best."""
    every = _candidates(data.steps)
    if len(data.rewards) < LEAST_ROWS or not every or not data.rewards.any():
        return None
    spread = _spread(every, data.steps)
    near = spread.index(_best(data, spread).step)
    around = [step for step in every if spread[max(near - 1, 0)] <= step <= spread[min(near + 1, len(spread) - 1)]]
    best = _best(data, around[:: len(around) // MOST_CANDIDATES + 1])
    ratio = (1 - best.explained_negated) / max(1 - best.explained, 1e-12)
    if best.explained_negated < FITS:
        return None
    is_flip = ratio <= CLEAR or (ratio <= BETTER and _is_confirmed(data, best.step))
    return best if is_flip else None


def _spread(every: list[int], steps: Floats) -> list[int]:
    """Return candidates with equally many transitions between them."""
    quantiles = np.quantile(steps, np.linspace(0, 1, MOST_CANDIDATES))
    return sorted({every[min(int(np.searchsorted(every, step)), len(every) - 1)] for step in quantiles})


def _best(data: _Transitions, candidates: list[int]) -> SignFlip:
    """Return the candidate with the best fit, all solved at once."""
    signs = np.stack([np.ones(len(data.steps)), *(np.where(data.steps < step, 1.0, -1.0) for step in candidates)], 1)
    errors = _errors(data.features, data.rewards[:, None] * signs, data.folds) / float((data.rewards**2).sum())
    best = int(np.argmin(errors[1:]))
    return SignFlip(candidates[best], float(1 - errors[0]), float(1 - errors[1 + best]), len(data.rewards))


def _is_confirmed(data: _Transitions, step: int) -> bool:
    """Say whether later rewards are the negative of the prediction from earlier ones alone."""
    early = (data.steps < step).astype(float)
    guess = _predict(_scaled(data.features), data.rewards[:, None], early == 1)[early == 0, 0]
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
        known = folds != fold
        if not known.any() or known.all():
            return np.full(targets.shape[1], np.inf)
        errors += ((_predict(scaled, targets, known)[~known] - targets[~known]) ** 2).sum(axis=0)
    return errors


def _scaled(features: Floats) -> Floats:
    scale = features.std(axis=0)
    scaled = np.where(scale > 0, (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1), 0.0)
    scaled[:, 0] = 1.0
    return np.clip(scaled, -FARTHEST, FARTHEST)


def _predict(scaled: Floats, targets: Floats, known: NDArray[np.bool_]) -> Floats:
    """Return the prediction of a ridge regression on the known rows, for all rows."""
    gram = scaled[known].T @ scaled[known] + RIDGE * known.sum() * np.eye(scaled.shape[1])
    return scaled @ np.linalg.solve(gram, scaled[known].T @ targets[known])
