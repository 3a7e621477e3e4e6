"""Tries every value of an action in the same states, which the same seed and actions reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from rlx.envs.global_rng import GlobalGenerators
from rlx.envs.inspect.player import Broken, Player
from rlx.envs.inspect.record import Knob
from rlx.envs.inspect.simple_policies import random_policy, seeded
from rlx.envs.inspect.space_leaves import ActionChoice, choices, copied
from rlx.envs.snapshot.snapshot_diff import same

FIRST_SEED = 1000
MOST_STATES = 200
LEAST_STATES = 8
FEW_CHOICES = 8
LONGEST_WAY = 24
FOLLOWING = 6
"""How many steps an effect may take to show."""


@dataclass
class _Tally:
    """Results for one choice: pairs of values with equal effects so far, and states that a value left unchanged."""

    choice: ActionChoice
    is_careful: bool
    states: int = 0
    alike: dict[tuple[float, float], int] = field(default_factory=dict)
    still: dict[float, int] = field(default_factory=dict)
    raised: dict[float, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = self.choice.values
        self.alike = dict.fromkeys(combinations(values, 2), 0)
        self.still = dict.fromkeys(values, 0)

    def open_values(self) -> list[float]:
        """Return the values worth trying: all at first, later those that still equal another one."""
        is_short = not self.choice.is_continuous and len(self.choice.values) <= LEAST_STATES
        if is_short and self.states < LEAST_STATES:
            return list(self.choice.values)
        return sorted({value for pair in self.alike for value in pair})

    def learn(self, outcomes: dict[float, _Outcome], anew: Callable[[float], _Outcome | None]) -> None:
        """Add the outcomes of values. A difference must show in new instances too: earlier episodes may leave traces.

        To save time, if there are many choices, only values that were equal before are tried again.
        """
        self.states += 1
        for value, outcome in outcomes.items():
            self.still[value] += outcome.is_still
        for pair, count in list(self.alike.items()):
            first, second = pair
            if first in outcomes and second in outcomes:
                again = partial(map, anew, pair) if count or self.is_careful else None
                if _is_same(outcomes[first], outcomes[second], again):
                    self.alike[pair] += 1
                else:
                    del self.alike[pair]

    def knob(self) -> Knob:
        pairs = tuple((*pair, count) for pair, count in self.alike.items() if count)
        still = tuple(self.still[value] for value in self.choice.values)
        tried = self.states if pairs else min(self.states, LEAST_STATES)
        return Knob(self.choice.name, self.choice.values, self.choice.is_continuous, tried, pairs, still,
                    tuple(self.raised.items()))  # fmt: skip


@dataclass(frozen=True)
class _Outcome:
    results: list[Any]
    is_still: bool


def _is_same(left: _Outcome, right: _Outcome, again: Callable[[], Iterable[_Outcome | None]] | None) -> bool:
    if same(left.results, right.results) or again is None:
        return same(left.results, right.results)
    first, second = again()
    return first is not None and second is not None and same(first.results, second.results)


@dataclass
class _State:
    """A state, by the way that leads to it, with an action to vary and those that follow."""

    seed: int
    way: list[Any]
    action: Any
    following: list[Any]


def knobs(make: Callable[[], Player], has_time: Callable[[], bool]) -> tuple[list[Knob], int]:
    """Try every value of every choice in many states; return the results and the number of choices left out."""
    player = make()
    to_try, left_out = choices(player.env.action_space)
    tallies = [_Tally(choice, is_careful=len(to_try) <= FEW_CHOICES) for choice in to_try]
    rng = np.random.default_rng(FIRST_SEED)
    for number in range(MOST_STATES):
        waiting = [tally for tally in tallies if len(tally.open_values()) > 1]
        if not waiting or (number and not has_time()):
            break
        state = _drawn_state(player, FIRST_SEED + number, int(rng.integers(0, LONGEST_WAY)))
        for tally in waiting:
            player = _try(player, state, tally, make)
            if not has_time():
                break
    player.close()
    return [tally.knob() for tally in tallies], left_out


def _try(player: Player, state: _State, tally: _Tally, make: Callable[[], Player]) -> Player:
    """Try the values of a choice in a state; an instance that raised is replaced."""
    outcomes: dict[float, _Outcome] = {}

    @cache
    def anew(value: float) -> _Outcome | None:
        return _outcome(make(), state, tally.choice, value)

    for value in tally.open_values():
        try:
            outcome = _outcome(player, state, tally.choice, value)
        except Broken:
            tally.raised.setdefault(value, str(player.step_number))
            player.close()
            player = make()
            continue
        if outcome is not None:
            outcomes[value] = outcome
    tally.learn(outcomes, anew)
    return player


def _drawn_state(player: Player, seed: int, distance: int) -> _State:
    """Walk to a state and remember the way; if the episode ends sooner, stop before its last step."""
    GlobalGenerators.seed(seed)
    space = seeded(player.env.action_space, seed)
    policy = random_policy(player.env.action_space, seed, hold=4)
    way: list[Any] = []
    player.reset(seed)
    for _ in range(distance):
        action = policy(np.zeros(0), player.mask())
        if player.step(copied(action)).ended:
            break
        way.append(action)
    return _State(seed, way, space.sample(), [space.sample() for _ in range(FOLLOWING)])


def _outcome(player: Player, state: _State, choice: ActionChoice, value: float) -> _Outcome | None:
    """Return the outcome of an action in a state; None if it is not allowed there."""
    GlobalGenerators.seed(state.seed)
    before = player.reset(state.seed)
    for done in state.way:
        before = player.step(copied(done)).observation
    mask = player.mask()
    if mask is not None and choice.index is None and not mask[int(value)]:
        return None
    results: list[Any] = []
    actions = [choice.put(state.action, value)]
    if mask is None:
        actions += state.following
    for action in actions:
        step = player.step(copied(action))
        results.append([step.observation, step.reward, step.terminated, step.truncated])
        if step.ended:
            break
    return _Outcome(results, is_still=same(before, results[0][0]) and not (results[0][2] or results[0][3]))
