"""Findings on actions: values that do the same as others, numbers that do nothing, bounds that do not help."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rlx.diagnose.finding import Evidence, Finding, Severity
from rlx.envs.inspect_record import Inspection, Knob
from rlx.figures import figure

LEAST_STATES, SURE_STATES = 8, 30
LEAST_OF_NUMBER, SURE_OF_NUMBER = 3, 6
"""A number with three values that no digit of what follows tells apart is known sooner."""
HUGE = 1e3
MANY_CHANGES = 4


def dead(record: Inspection) -> Iterator[Finding]:
    """Find values that no state told apart."""
    has_one_start = record.seeds is not None and record.seeds.starts == 1
    for knob in record.knobs:
        least = LEAST_OF_NUMBER if knob.is_continuous else LEAST_STATES
        groups = [(group, _states(knob, group)) for group in _groups(knob)]
        sure = [(group, states) for group, states in groups if states >= least]
        if sure:
            yield _alike(knob, *max(sure, key=lambda pair: pair[1]), others=len(sure) - 1, has_one_start=has_one_start)


def _states(knob: Knob, group: tuple[float, ...]) -> int:
    return min(count for one, other, count in knob.alike if one in group and other in group)


def _groups(knob: Knob) -> list[tuple[float, ...]]:
    """Return the sets of values that were never told apart; a number is dead only where all its values are alike."""
    groups: list[set[float]] = []
    for one, other, _ in knob.alike:
        touching = [group for group in groups if one in group or other in group]
        groups = [group for group in groups if group not in touching] + [{one, other}.union(*touching)]
    if knob.is_continuous:
        groups = [group for group in groups if len(group) == len(knob.values)]
    return [tuple(sorted(group)) for group in groups]


def _alike(knob: Knob, group: tuple[float, ...], states: int, *, others: int, has_one_start: bool) -> Finding:
    is_sure = states >= (SURE_OF_NUMBER if knob.is_continuous else SURE_STATES) and not has_one_start
    is_whole = len(group) == len(knob.values)
    listed = ", ".join(figure(value) for value in group)
    if is_whole:
        what = f"{knob.name} has no effect: {listed} led to the same observations, rewards and ends"
    else:
        what = f"values {listed} of {knob.name} do the same: the same observations, rewards and ends"
    more = f"; {others} other groups of values do the same" if others else ""
    claim = f"{what} in all {states} states they were tried in{more}"
    evidence = Evidence(f"states that told {listed} of {knob.name} apart", 0, limit=states)
    tries = ("look where step reads this part of the action", "leave it out of action_space")
    return Finding("dead_action", "high" if is_sure else "medium", claim, (evidence,), tries)


def frozen(record: Inspection) -> Iterator[Finding]:
    """Find a value that stops the world: it never changes the observation where all the others always do."""
    for knob in record.knobs:
        if knob.is_continuous or len(knob.values) < 2 or len(knob.values) > LEAST_STATES or knob.states < LEAST_STATES:
            continue
        still = [value for value, count in zip(knob.values, knob.still, strict=True) if count == knob.states]
        moving = [value for value, count in zip(knob.values, knob.still, strict=True) if count == 0]
        if len(still) == 1 and len(moving) == len(knob.values) - 1:
            claim = (
                f"value {figure(still[0])} of {knob.name} left the observation as it was in all {knob.states} states; "
                "every other value always changed it"
            )
            evidence = Evidence(f"states changed by {figure(still[0])}", 0, limit=knob.states)
            severity: Severity = "medium" if _has_inertia(record) else "low"
            yield Finding("frozen_action", severity, claim, (evidence,), ("nothing, if it is meant to wait",))


def _has_inertia(record: Inspection) -> bool:
    """Say whether the same action again and again has ever new effects: such a world does not stand still by itself."""
    for episode in record.played("constant"):
        changes = np.round(np.diff(episode.observations, axis=0), 6)
        if len(np.unique(changes[np.any(changes != 0, axis=1)], axis=0)) > MANY_CHANGES:
            return True
    return False


def bounds(record: Inspection) -> Iterator[Finding]:
    """Judge the bounds of a continuous action."""
    if record.bounds is None:
        return
    pairs = list(zip(record.bounds.low, record.bounds.high, strict=True))
    odd = [index for index, (low, high) in enumerate(pairs) if not (math.isfinite(low) and math.isfinite(high))]
    huge = [index for index, pair in enumerate(pairs) if index not in odd and max(map(abs, pair)) > HUGE]
    uneven = [
        index for index, (low, high) in enumerate(pairs) if index not in odd and abs(low + high) > 1e-6 * abs(high)
    ]
    if odd:
        yield _bounds("medium", odd, pairs, "has no bounds: policies cannot be scaled to it")
    elif huge:
        yield _bounds("low", huge, pairs, "has very wide bounds: policies start with actions near 0")
    elif uneven:
        yield _bounds("low", uneven, pairs, "is not symmetric: 0, where policies start, is not its middle")


def _bounds(severity: Severity, indexes: list[int], pairs: list[tuple[float, float]], what: str) -> Finding:
    low, high = pairs[indexes[0]]
    evidence = Evidence(f"bounds of action[{indexes[0]}]", f"[{figure(low)}, {figure(high)}]")
    claim = f"action[{indexes[0]}] {what} ([{figure(low)}, {figure(high)}]; {len(indexes)} of {len(pairs)} numbers)"
    return Finding("action_bounds", severity, claim, (evidence,), ("wrapper rescale_action: {min: -1, max: 1}",))


RULES = (dead, frozen, bounds)
