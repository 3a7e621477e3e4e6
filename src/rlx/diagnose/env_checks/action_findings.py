"""Findings on actions: values with the same effect, numbers without an effect, bounds that hinder learning."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rlx.diagnose.finding import Evidence, Severity
from rlx.diagnose.rule import Rule, Sighting
from rlx.envs.inspect.record import Inspection, Knob
from rlx.number_format import figure

LEAST_STATES = 8
SURE_STATES = 30
LEAST_OF_NUMBER = 3
SURE_OF_NUMBER = 6
"""A continuous number needs fewer states: three values that give equal digits are evidence sooner."""
HUGE = 1e3
MANY_CHANGES = 4


def find_dead_actions(record: Inspection) -> Iterator[Sighting]:
    """Find values that had the same effect in every state."""
    has_one_start = record.seeds is not None and record.seeds.starts == 1
    for knob in record.knobs:
        least = LEAST_STATES
        sure = SURE_STATES
        if knob.is_continuous:
            least = LEAST_OF_NUMBER
            sure = SURE_OF_NUMBER
        groups = [(states, group) for group, states in _equal_groups(knob).items() if states >= least]
        if not groups:
            continue
        states, group = max(groups, key=lambda pair: pair[0])
        values = ", ".join(figure(value) for value in group)
        claim = f"values {values} of {knob.name} do the same: they gave the same observations, rewards and ends"
        if len(group) == len(knob.values):
            claim = f"{knob.name} has no effect: {values} gave the same observations, rewards and ends"
        claim += f" in all {states} states they were tried in"
        if len(groups) > 1:
            claim += f"; {len(groups) - 1} other groups of values do the same"
        evidence = Evidence(f"states in which {values} of {knob.name} differed", 0, limit=states)
        is_sure = states >= sure and not has_one_start
        yield Sighting((evidence,), claim, "high" if is_sure else "medium")


def _equal_groups(knob: Knob) -> dict[tuple[float, ...], int]:
    """Return groups of values that never differed, with the number of states in which that was tried.

    A continuous number is dead only if all its values are equal.
    """
    groups: list[set[float]] = []
    for first, second, _ in knob.alike:
        touching = [group for group in groups if first in group or second in group]
        groups = [group for group in groups if group not in touching] + [{first, second}.union(*touching)]
    if knob.is_continuous:
        groups = [group for group in groups if len(group) == len(knob.values)]
    return {
        tuple(sorted(group)): min(count for first, second, count in knob.alike if {first, second} <= group)
        for group in groups
    }


def find_frozen_actions(record: Inspection) -> Iterator[Sighting]:
    """Find a value that never changes the observation although all the others always do."""
    for knob in record.knobs:
        if knob.is_continuous or not 2 <= len(knob.values) <= LEAST_STATES or knob.states < LEAST_STATES:
            continue
        still = [value for value, count in zip(knob.values, knob.still, strict=True) if count == knob.states]
        moving = [value for value, count in zip(knob.values, knob.still, strict=True) if count == 0]
        if len(still) == 1 and len(moving) == len(knob.values) - 1:
            claim = (
                f"value {figure(still[0])} of {knob.name} did not change the observation in any of {knob.states} "
                "states; every other value always changed it"
            )
            evidence = Evidence(f"states changed by {figure(still[0])}", 0, limit=knob.states)
            yield Sighting((evidence,), claim, "medium" if _has_inertia(record) else "low")


def _has_inertia(record: Inspection) -> bool:
    """Say whether repeating one action keeps having new effects. Such an environment does not stand still by itself."""
    for episode in record.played("constant"):
        changes = np.round(np.diff(episode.observations, axis=0), 6)
        if len(np.unique(changes[np.any(changes != 0, axis=1)], axis=0)) > MANY_CHANGES:
            return True
    return False


def check_bounds(record: Inspection) -> Iterator[Sighting]:
    """Find missing, very wide or asymmetric bounds of a continuous action, the worst kind only."""
    if record.bounds is None:
        return
    infinite: list[int] = []
    huge: list[int] = []
    uneven: list[int] = []
    bounds = list(zip(record.bounds.low, record.bounds.high, strict=True))
    for index, (low, high) in enumerate(bounds):
        if not (math.isfinite(low) and math.isfinite(high)):
            infinite.append(index)
        elif max(abs(low), abs(high)) > HUGE:
            huge.append(index)
        elif abs(low + high) > 1e-6 * abs(high):
            uneven.append(index)
    problems: tuple[tuple[list[int], Severity, str], ...] = (
        (infinite, "medium", "has no bounds: policies cannot be scaled to it"),
        (huge, "low", "has very wide bounds: policies start with actions near 0"),
        (uneven, "low", "is not symmetric: policies start at 0, which is not its middle"),
    )
    for indexes, severity, problem in problems:
        if indexes:
            low, high = bounds[indexes[0]]
            ends = f"[{figure(low)}, {figure(high)}]"
            claim = f"action[{indexes[0]}] {problem} ({ends}; {len(indexes)} of {len(bounds)} numbers)"
            evidence = Evidence(f"bounds of action[{indexes[0]}]", ends)
            yield Sighting((evidence,), claim, severity)
            return


RULES: tuple[Rule[Inspection], ...] = (
    Rule(
        "dead_action",
        "high",
        find_dead_actions,
        ("look where step reads this part of the action", "leave it out of action_space"),
        cannot_see="effects that show only after more steps than were played",
    ),
    Rule("frozen_action", "low", find_frozen_actions, ("nothing, if it is meant to wait",)),
    Rule("action_bounds", "low", check_bounds, ("wrapper rescale_action: {min: -1, max: 1}",)),
)
