"""Which earlier observations a policy with memory uses: attention over time, measured from outside.

rlx replays windows of played episodes. It exchanges one observation, some steps before the last one, with that of
another window, and measures how much the last action changes. This needs no attention layer: it works for an LSTM and
for every other policy that keeps a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlx.evaluate.explain.saliency import Array, change, choices
from rlx.evaluate.policy import Policy, stack
from rlx.evaluate.policy_internals import internals_of

LAGS = (0, 1, 2, 4, 8, 16, 32)
MOST_WINDOWS = 64
FEWEST_WINDOWS = 8


def attention_over_time(
    policy: Policy, episodes: Sequence[Sequence[Any]], space: Any, *, seed: int = 0
) -> dict[int, float]:
    """Return, for each number of steps back, how much the action changes if that observation is exchanged.

    `episodes` are the observations of played episodes in their order. The result is empty if they are too short.
    """
    windows = _windows(episodes, np.random.default_rng(seed))
    if not windows:
        return {}
    length = len(windows[0])
    steps = [stack(space, [window[step] for window in windows]) for step in range(length)]
    before = _last_response(policy, steps)
    found = {}
    for lag in LAGS:
        place = length - 1 - lag
        if place < 0:
            break
        moved = stack(space, [windows[index - 1][place] for index in range(len(windows))])
        found[lag] = change(before, _last_response(policy, [*steps[:place], moved, *steps[place + 1 :]]))
    policy.reset()
    return found


def _windows(episodes: Sequence[Sequence[Any]], generator: np.random.Generator) -> list[Sequence[Any]]:
    """Return windows of equal length from all episodes: as long as the longest lag, if the episodes are that long."""
    for lag in reversed(LAGS[1:]):
        places = [(episode, start) for episode in episodes for start in range(len(episode) - lag)]
        if len(places) >= FEWEST_WINDOWS:
            chosen = generator.permutation(len(places))[:MOST_WINDOWS]
            return [places[index][0][places[index][1] : places[index][1] + lag + 1] for index in chosen.tolist()]
    return []


def _last_response(policy: Policy, steps: Sequence[Any]) -> Array:
    """Play all windows side by side, and return what the policy answers to the last observation."""
    policy.reset()
    for batch in steps[:-1]:
        policy.predict(batch)
    internals = internals_of(policy, steps[-1])
    if internals.probabilities is not None:
        return internals.probabilities
    if internals.mean is not None:
        return internals.mean
    return choices(policy.predict(steps[-1]))
