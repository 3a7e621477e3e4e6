"""Plays a transition again with only a counter of the environment changed: the same transition at another time.

Not covered: counters outside the attributes of the environment, its wrappers and the plain objects they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import gymnasium

from rlx.envs.global_rng import GlobalGenerators
from rlx.envs.inspect.player import Broken, Player, StepResult
from rlx.envs.inspect.record import ClockTrial
from rlx.envs.inspect.space_leaves import copied
from rlx.envs.snapshot.snapshot_diff import same
from rlx.envs.snapshot.value_kinds import attributes_of, is_env, kind_of

MOVES = (10, 25, 50, 80, 120, 180, 300, 450, 800)
WATCHED_STEPS = 6
LEAST_WATCHED = 3
Place = tuple[int, tuple[str, ...]]
"""Which layer of wrappers, from outside, and the attributes that lead to the number."""


@dataclass(frozen=True)
class Moment:
    """A transition, by the seed and actions that lead to it; the last action is its own."""

    seed: int
    actions: Sequence[Any]


def clocks(player: Player, moment: Moment) -> dict[Place, float]:
    """Return the numbers that grow or shrink by the same amount at every step, with that amount."""
    player.reset(moment.seed)
    watched = [dict(_numbers(player))]
    for action in moment.actions[:WATCHED_STEPS]:
        ended = player.step(copied(action)).ended
        watched.append(dict(_numbers(player)))
        if ended:
            break
    if len(watched) <= LEAST_WATCHED:
        return {}
    gains = {place: _gain([numbers.get(place) for numbers in watched]) for place in watched[0]}
    return {place: gain for place, gain in gains.items() if gain}


def _gain(course: list[float | None]) -> float:
    """Return by how much a number grows at every step; 0 if that is not always the same."""
    values = [value for value in course if value is not None]
    gains = [later - earlier for earlier, later in pairwise(values)]
    is_steady = len(values) == len(course) and all(abs(gain - gains[0]) < 1e-9 for gain in gains)
    return gains[0] if is_steady else 0.0


def try_clocks(player: Player, moment: Moment, places: dict[Place, float]) -> Iterator[ClockTrial]:
    """Play a transition as it is, then with each clock moved on by several amounts."""
    plain = _outcome(player, moment)
    for place, gain in places.items():
        for steps in MOVES:
            try:
                moved = _outcome(player, moment, place=place, amount=gain * steps)
            except Broken:  # the environment cannot be in that state
                break
            is_same = same(plain.observation, moved.observation)
            is_same = is_same and (plain.terminated, plain.truncated) == (moved.terminated, moved.truncated)
            yield ClockTrial(
                _name(player, place), moment.seed, len(moment.actions), steps, plain.reward, moved.reward, is_same
            )


def _outcome(player: Player, moment: Moment, *, place: Place | None = None, amount: float = 0.0) -> StepResult:
    GlobalGenerators.seed(moment.seed)
    player.reset(moment.seed)
    for action in moment.actions[:-1]:
        player.step(copied(action))
    if place is not None:
        owner = _owner(player, place)
        before = getattr(owner, place[1][-1])
        setattr(owner, place[1][-1], type(before)(before + amount))
    return player.step(copied(moment.actions[-1]))


def _layers(player: Player) -> list[Any]:
    layers: list[Any] = [player.env]
    while isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    return layers


def _owner(player: Player, place: Place) -> Any:
    owner = _layers(player)[place[0]]
    for name in place[1][:-1]:
        owner = getattr(owner, name)
    return owner


def _name(player: Player, place: Place) -> str:
    return ".".join([type(_layers(player)[place[0]]).__name__, *place[1]])


def _numbers(player: Player) -> Iterator[tuple[Place, float]]:
    for index, layer in enumerate(_layers(player)):
        for path, value in _plain_numbers(layer):
            yield (index, path), value


def _plain_numbers(owner: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, value in list(attributes_of(owner).items()):
        if type(value) in (int, float):
            yield (*path, name), value
        elif not path and not is_env(value) and kind_of(type(value)) == "object":
            yield from _plain_numbers(value, (name,))
