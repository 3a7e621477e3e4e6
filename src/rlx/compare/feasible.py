"""Where trained policies still work: the feasible range of one parameter, and what must be said about it; pure.

A value is feasible where the policies keep a declared share of their gain over the random policy (see `kept`) and are
better than the random policy at that value. The range is the unbroken stretch around the nominal value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rlx.compare.kept import Kept, kept
from rlx.evaluate.parameter import Value
from rlx.evaluate.probe import Sweep
from rlx.evaluate.trial import Outcome
from rlx.figures import figure

SHARE = 0.8
CLIFF = 0.5
"""A loss of this share of the nominal gain between neighbouring values is a cliff."""
FLAT = 0.05
"""Smaller changes of the share say nothing about a direction."""


@dataclass(frozen=True)
class Point:
    """One value: what the seeds score there, and whether that is feasible; `is_sure` where its interval agrees."""

    value: Value | None
    is_nominal: bool
    kept: Kept | None = None
    random: float | None = None
    refused: str | None = None
    is_feasible: bool = False
    is_sure: bool = False

    def document(self) -> dict[str, Any]:
        """Return the point as JSON-able data."""
        figures = self.kept.document() if self.kept else {}
        return {
            "value": self.value, "nominal": self.is_nominal, **figures, "random": self.random,
            "feasible": self.is_feasible, "sure": self.is_sure, "refused": self.refused,
        }  # fmt: skip


@dataclass(frozen=True)
class Feasibility:
    """The points in order, and the ends of the feasible range; None where there is none, or values have no order."""

    points: tuple[Point, ...]
    low: Value | None
    high: Value | None
    notes: tuple[str, ...]


def feasible(found: Sweep, *, share: float = SHARE) -> Feasibility:
    """Judge every value of a sweep, and find the stretch around the nominal one that is feasible."""
    points = _points(found, share)
    stretch = _stretch(points) if found.parameter.is_numeric else []
    ends = (stretch[0].value, stretch[-1].value) if stretch else (None, None)
    return Feasibility(tuple(points), *ends, tuple(_notes(found, points, stretch)))


def _points(found: Sweep, share: float) -> list[Point]:
    """Return the values tried and the nominal one, in order."""
    nominal = _point(found.nominal, found.at_nominal, found, share, is_nominal=True)
    others = [_point(value, outcome, found, share) for value, outcome in found.at if outcome is not found.at_nominal]
    points = [nominal, *others]
    can_sort = found.parameter.is_numeric and isinstance(found.nominal, (int, float))
    return sorted(points, key=lambda point: float(point.value or 0)) if can_sort else points


def _point(value: Value | None, outcome: Outcome, found: Sweep, share: float, *, is_nominal: bool = False) -> Point:
    if outcome.refused:
        return Point(value, is_nominal, refused=outcome.refused)
    what = kept(found.at_nominal.scores, outcome.scores, random=found.at_nominal.random)
    beaten = outcome.random is None or what.mean > outcome.random
    is_feasible = what.share is not None and what.share >= share and beaten
    interval = what.share_interval
    is_sure = interval is not None and (interval.low >= share if is_feasible else interval.high < share)
    return Point(value, is_nominal, what, outcome.random, None, is_feasible, is_sure)


def _stretch(points: Sequence[Point]) -> list[Point]:
    """Return the neighbouring feasible points around the nominal one; where that has no value, the longest stretch."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.value is None:
            continue
        if point.is_feasible:
            runs[-1].append(point)
        else:
            runs.append([])
    around = [run for run in runs if any(point.is_nominal for point in run)]
    is_placed = any(point.is_nominal and point.value is not None for point in points)
    return around[0] if around else [] if is_placed else max(runs, key=len)


def _notes(found: Sweep, points: Sequence[Point], stretch: Sequence[Point]) -> Iterator[str]:
    name, count = found.parameter.name, len(found.at_nominal.scores)
    yield f"{name} alone was varied: combinations with other parameters were not tested"
    yield from _training_notes(found)
    if all(point.kept is None or point.kept.share is None for point in points):
        yield "no value is called feasible: the policies are no better than the random one, or it was not measured"
    measured = [point for point in points if point.kept is not None]
    if len(measured) > 1 and all(outcome.scores == found.at_nominal.scores for _, outcome in found.at):
        yield f"no value changed any score: is {name} read only when the environment is made?"
    if found.parameter.is_numeric:
        yield from _shape_notes([point for point in measured if point.value is not None])
        yield from _range_notes([point for point in points if point.value is not None], stretch)
    if count < 3:
        yield f"{count} training seed{'' if count == 1 else 's'}: how others would do is not known"


def _training_notes(found: Sweep) -> Iterator[str]:
    if found.trained is None:
        yield "which value training had cannot be told"
        return
    others = [value for value, _ in found.at if value != found.trained]
    if others:
        yield f"trained at {_spelled(found.trained)} only: every other value is extrapolation"


def _shape_notes(points: Sequence[Point]) -> Iterator[str]:
    """Say where the score falls off a cliff, and whether it goes one way."""
    shares = [(point.value, point.kept.share) for point in points if point.kept and point.kept.share is not None]
    for low, high in pairwise(shares):
        if abs(high[1] - low[1]) >= CLIFF:
            yield f"a cliff between {_spelled(low[0])} and {_spelled(high[0])}: {_fall(low, high)}"
    changes = [after - before for (_, before), (_, after) in pairwise(shares)]
    signs = [change > 0 for change in changes if abs(change) > FLAT]
    turns = sum(a != b for a, b in pairwise(signs))
    if turns > 1 or (turns == 1 and not signs[0]):
        yield "the score goes up and down: values between those tried may do otherwise"


def _fall(*ends: tuple[Value | None, float]) -> str:
    """Say what is lost from one end of a cliff to the other; more than all of it is told by what either keeps."""
    (worse, less), (better, more) = sorted(ends, key=lambda end: end[1])
    if more - less <= 1:
        return f"{_spelled(worse)} keeps {more - less:.0%} of the gain less than {_spelled(better)}"
    return (
        f"{_spelled(worse)} keeps {f'{less:.0%}' if less > 0 else 'nothing'} of the gain, {_spelled(better)} {more:.0%}"
    )


def _range_notes(points: Sequence[Point], stretch: Sequence[Point]) -> Iterator[str]:
    """Say where the range may go on, and what is feasible beyond it."""
    if not stretch or not points:
        return
    if stretch[0] is points[0]:
        yield f"feasible down to the lowest value tried ({_spelled(points[0].value)}): the range may go on"
    if stretch[-1] is points[-1]:
        yield f"feasible up to the highest value tried ({_spelled(points[-1].value)}): the range may go on"
    beyond = [point for point in points if point.is_feasible and point not in stretch]
    if beyond:
        yield f"feasible again at {', '.join(_spelled(point.value) for point in beyond)}, beyond a gap"
    unsure = [point for point in points if point.kept and not point.is_sure and not point.is_nominal]
    if unsure and len(unsure) < len(points):
        yield f"the interval leaves it open at {', '.join(_spelled(point.value) for point in unsure)}"


def _spelled(value: Value | None) -> str:
    return figure(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
