"""Where trained policies still work: the feasible range of one environment parameter, with notes. Pure.

A value is feasible if the policies keep a declared share of their gain over the random policy (see `retained_gain`) and
beat the random policy at that value. The range is the unbroken stretch around the nominal value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rlx.compare.robustness.retained_gain import RetainedGain, retained_gain
from rlx.evaluate.robustness.conditions import ConditionScores
from rlx.evaluate.robustness.env_parameter import Value
from rlx.evaluate.robustness.parameter_sweep import ParameterSweep
from rlx.number_format import counted, figure

SHARE = 0.8
CLIFF = 0.5
"""A loss of this share of the nominal gain between neighbouring values is a cliff."""
FLAT = 0.05
"""Smaller changes of the share say nothing about a direction."""


@dataclass(frozen=True)
class ProbePoint:
    """One value: what the seeds score there, and whether it is feasible. `is_sure` says that its interval agrees."""

    value: Value | None
    is_nominal: bool
    kept: RetainedGain | None = None
    random: float | None = None
    refused: str | None = None
    is_feasible: bool = False
    is_sure: bool = False

    def document(self) -> dict[str, Any]:
        """Return the point as JSON-able data."""
        figures = {}
        if self.kept:
            figures = self.kept.document()
        return {
            "value": self.value, "nominal": self.is_nominal, **figures, "random": self.random,
            "feasible": self.is_feasible, "sure": self.is_sure, "refused": self.refused,
        }  # fmt: skip


@dataclass(frozen=True)
class Feasibility:
    """The points in order, and the ends of the feasible range: None if there is none, or if values have no order."""

    points: tuple[ProbePoint, ...]
    low: Value | None
    high: Value | None
    notes: tuple[str, ...]


def feasible(sweep: ParameterSweep, *, share: float = SHARE) -> Feasibility:
    """Judge every value of a sweep, and find the feasible stretch around the nominal value."""
    points = _points(sweep, share)
    stretch = []
    if sweep.parameter.is_numeric:
        stretch = _stretch(points)
    low = None
    if stretch:
        low = stretch[0].value
    high = None
    if stretch:
        high = stretch[-1].value
    return Feasibility(tuple(points), low, high, tuple(_notes(sweep, points, stretch)))


def _points(sweep: ParameterSweep, share: float) -> list[ProbePoint]:
    """Return the nominal value and the values that were tried, in order."""
    points = [_point(sweep.nominal, sweep.at_nominal, sweep, share, is_nominal=True)]
    points += [_point(value, outcome, sweep, share) for value, outcome in sweep.at if outcome is not sweep.at_nominal]
    if sweep.parameter.is_numeric and isinstance(sweep.nominal, (int, float)):
        points.sort(key=lambda point: float(point.value or 0))
    return points


def _point(
    value: Value | None, outcome: ConditionScores, sweep: ParameterSweep, share: float, *, is_nominal: bool = False
) -> ProbePoint:
    if outcome.refused:
        return ProbePoint(value, is_nominal, refused=outcome.refused)
    kept = retained_gain(sweep.at_nominal.scores, outcome.scores, random=sweep.at_nominal.random)
    beats_random = outcome.random is None or kept.mean > outcome.random
    is_feasible = kept.share is not None and kept.share >= share and beats_random
    is_sure = False
    if kept.share_interval is not None:
        if is_feasible:
            edge = kept.share_interval.low
        else:
            edge = kept.share_interval.high
        is_sure = (edge >= share) == is_feasible
    return ProbePoint(value, is_nominal, kept, outcome.random, None, is_feasible, is_sure)


def _stretch(points: Sequence[ProbePoint]) -> list[ProbePoint]:
    """Return the neighbouring feasible points around the nominal one, or the longest stretch if that has no value."""
    stretches: list[list[ProbePoint]] = [[]]
    for point in points:
        if point.value is None:
            continue
        if point.is_feasible:
            stretches[-1].append(point)
        else:
            stretches.append([])
    for stretch in stretches:
        if any(point.is_nominal for point in stretch):
            return stretch
    has_place = any(point.is_nominal and point.value is not None for point in points)
    if has_place:
        return []
    return max(stretches, key=len)


def _notes(sweep: ParameterSweep, points: Sequence[ProbePoint], stretch: Sequence[ProbePoint]) -> Iterator[str]:
    name = sweep.parameter.name
    count = len(sweep.at_nominal.scores)
    yield f"only {name} was varied: combinations with other parameters were not tested"
    if sweep.trained is None:
        yield "rlx does not know which value training had"
    elif any(value != sweep.trained for value, _ in sweep.at):
        yield f"trained at {_spell(sweep.trained)} only: every other value is extrapolation"
    if all(point.kept is None or point.kept.share is None for point in points):
        yield "no value is called feasible: the policies do not beat the random one, or it was not measured"
    measured = [point for point in points if point.kept is not None]
    if len(measured) > 1 and all(outcome.scores == sweep.at_nominal.scores for _, outcome in sweep.at):
        yield f"no value changed any score: is {name} read only when the environment is made?"
    if sweep.parameter.is_numeric:
        yield from _shape_notes([point for point in measured if point.value is not None])
        yield from _range_notes([point for point in points if point.value is not None], stretch)
    if count < 3:
        yield f"{counted(count, 'training seed')}: rlx cannot say how other seeds would do"


def _shape_notes(points: Sequence[ProbePoint]) -> Iterator[str]:
    """Name cliffs of the score, and say if it does not move in one direction."""
    shares = [(point.value, point.kept.share) for point in points if point.kept and point.kept.share is not None]
    for low, high in pairwise(shares):
        if abs(high[1] - low[1]) >= CLIFF:
            yield f"a cliff between {_spell(low[0])} and {_spell(high[0])}: {_cliff(low, high)}"
    changes = [after - before for (_, before), (_, after) in pairwise(shares)]
    signs = [change > 0 for change in changes if abs(change) > FLAT]
    turns = sum(a != b for a, b in pairwise(signs))
    if turns > 1 or (turns == 1 and not signs[0]):
        yield "the score goes up and down: values between those tried may behave differently"


def _cliff(*ends: tuple[Value | None, float]) -> str:
    """Describe the loss from one end of a cliff to the other. A loss of more than all is given by both ends."""
    (worse, less), (better, more) = sorted(ends, key=lambda end: end[1])
    if more - less <= 1:
        return f"{_spell(worse)} keeps {more - less:.0%} less of the gain than {_spell(better)}"
    rest = "nothing"
    if less > 0:
        rest = f"{less:.0%}"
    return f"{_spell(worse)} keeps {rest} of the gain, {_spell(better)} {more:.0%}"


def _range_notes(points: Sequence[ProbePoint], stretch: Sequence[ProbePoint]) -> Iterator[str]:
    """Say if the range may continue beyond the values tried, and which values beyond a gap are feasible."""
    if not stretch or not points:
        return
    if stretch[0] is points[0]:
        yield f"feasible down to the lowest value tried ({_spell(points[0].value)}): the range may continue"
    if stretch[-1] is points[-1]:
        yield f"feasible up to the highest value tried ({_spell(points[-1].value)}): the range may continue"
    beyond = [point for point in points if point.is_feasible and point not in stretch]
    if beyond:
        yield f"feasible again at {', '.join(_spell(point.value) for point in beyond)}, beyond a gap"
    unsure = [point for point in points if point.kept and not point.is_sure and not point.is_nominal]
    if unsure and len(unsure) < len(points):
        yield f"the interval leaves it open at {', '.join(_spell(point.value) for point in unsure)}"


def _spell(value: Value | None) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return figure(value)
    return str(value)
