"""What every value of an action does: tried in the same states, reached by the same seed and actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from rlx.envs.differ import same
from rlx.envs.generators import GlobalGenerators
from rlx.envs.inspect_player import Broken, Player
from rlx.envs.inspect_policies import by_chance, seeded
from rlx.envs.inspect_record import Knob
from rlx.envs.inspect_spaces import Choice, choices, copied

FIRST_SEED = 1000
MOST_STATES, LEAST_STATES = 200, 8
FEW_CHOICES = 8
LONGEST_WAY, FOLLOWING = 24, 6
"""How far from the start states lie, and for how many steps an effect may take to show."""


@dataclass
class _Tally:
    """What is known of a choice: the pairs of values not yet told apart, and the states each value left unchanged."""

    choice: Choice
    is_careful: bool
    states: int = 0
    alike: dict[tuple[float, float], int] = field(default_factory=dict)
    still: dict[float, int] = field(default_factory=dict)
    raised: dict[float, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = self.choice.values
        self.alike = {(one, other): 0 for index, one in enumerate(values) for other in values[index + 1 :]}
        self.still = dict.fromkeys(values, 0)

    def wanted(self) -> list[float]:
        """Return the values worth trying: all at first, later those that some other one was never told from."""
        is_short = not self.choice.is_continuous and len(self.choice.values) <= LEAST_STATES
        if is_short and self.states < LEAST_STATES:
            return list(self.choice.values)
        return sorted({value for pair in self.alike for value in pair})

    def learn(self, outcomes: dict[float, _Outcome], anew: Callable[[float], _Outcome | None]) -> None:
        """Take in what values led to; a difference must show in new instances too: earlier episodes may leave traces.

        Of many choices only those that were alike before are tried again, to save time.
        """
        self.states += 1
        for value, outcome in outcomes.items():
            self.still[value] += outcome.is_still
        for (one, other), count in list(self.alike.items()):
            if one in outcomes and other in outcomes:
                again = partial(map, anew, (one, other)) if count or self.is_careful else None
                if _is_same(outcomes[one], outcomes[other], again):
                    self.alike[(one, other)] += 1
                else:
                    del self.alike[(one, other)]

    def knob(self) -> Knob:
        pairs = tuple((one, other, count) for (one, other), count in self.alike.items() if count)
        still = tuple(self.still[value] for value in self.choice.values)
        tried = min(self.states, LEAST_STATES) if not pairs else self.states
        return Knob(self.choice.name, self.choice.values, self.choice.is_continuous, tried, pairs, still,
                    tuple(self.raised.items()))  # fmt: skip


@dataclass(frozen=True)
class _Outcome:
    shown: list[Any]
    is_still: bool


def _is_same(one: _Outcome, other: _Outcome, anew: Callable[[], Iterable[_Outcome | None]] | None) -> bool:
    if same(one.shown, other.shown) or anew is None:
        return same(one.shown, other.shown)
    first, second = anew()
    return first is not None and second is not None and same(first.shown, second.shown)


@dataclass
class _State:
    """A state, by the way that leads to it, with an action to vary and those that follow."""

    seed: int
    way: list[Any]
    action: Any
    following: list[Any]


def knobs(make: Callable[[], Player], has_time: Callable[[], bool]) -> tuple[list[Knob], int]:
    """Try every value of every choice in many states; return what was seen, and how many choices were left out."""
    player = make()
    found, left_out = choices(player.env.action_space)
    tallies = [_Tally(choice, is_careful=len(found) <= FEW_CHOICES) for choice in found]
    rng = np.random.default_rng(FIRST_SEED)
    for number in range(MOST_STATES):
        waiting = [tally for tally in tallies if len(tally.wanted()) > 1]
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

    for value in tally.wanted():
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
    """Walk to a state and remember the way; where the episode ends sooner, stop before its last step."""
    GlobalGenerators.seed(seed)
    space = seeded(player.env.action_space, seed)
    policy = by_chance(player.env.action_space, seed, hold=4)
    way: list[Any] = []
    player.reset(seed)
    for _ in range(distance):
        action = policy(np.zeros(0), player.mask())
        if player.step(copied(action)).ended:
            break
        way.append(action)
    return _State(seed, way, space.sample(), [space.sample() for _ in range(FOLLOWING)])


def _outcome(player: Player, state: _State, choice: Choice, value: float) -> _Outcome | None:
    """Return what an action leads to from a state; None where it is not allowed there."""
    GlobalGenerators.seed(state.seed)
    before = player.reset(state.seed)
    for done in state.way:
        before = player.step(copied(done)).observation
    mask = player.mask()
    if mask is not None and choice.index is None and not mask[int(value)]:
        return None
    shown: list[Any] = []
    for each in [choice.put(state.action, value), *(state.following if mask is None else [])]:
        step = player.step(copied(each))
        shown.append([step.observation, step.reward, step.terminated, step.truncated])
        if step.ended:
            break
    return _Outcome(shown, is_still=same(before, shown[0][0]) and not (shown[0][2] or shown[0][3]))
