"""Many short episodes of simple policies: what an environment shows to whoever acts differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.envs.generators import GlobalGenerators
from rlx.envs.inspect_player import Player
from rlx.envs.inspect_policies import Linear, Novelty, Policy, always, by_chance
from rlx.envs.inspect_record import Ending, Episode
from rlx.envs.inspect_spaces import Numbers, choices, copied

MOST_STEPS, LONGEST_EPISODE, USUAL_EPISODE = 14_000, 2_000, 250
WHOLE = 5
"""So many policies, and those that are climbed with, are played to the end of their episodes."""
SCRIPTED, SCRIPT_STEPS = 10, 60
SCRIPTS = ((4, 1.0), (1, 1.0), (1, 0.1))
"""For how many steps an action may be held, and how much of a Box is used."""
RANDOM, MOST_CONSTANT, LINEAR, MANY, CLIMB = 10, 6, 30, 40, 24
FIRST_SEED = 5000


@dataclass
class Behaviour:
    """Episodes as they are played, and the very actions of each, so that it can be played again."""

    player: Player
    numbers: Numbers
    action_numbers: Numbers
    has_time: Callable[[], bool]
    episodes: list[Episode] = field(default_factory=list)
    actions: list[list[Any]] = field(default_factory=list)
    steps: int = 0

    def goes_on(self) -> bool:
        return self.steps < MOST_STEPS and self.has_time()

    def play(self, name: str, policy: Policy, seed: int, *, longest: int = LONGEST_EPISODE) -> Episode:
        """Play one episode and keep it."""
        self.player.policy = name
        GlobalGenerators.seed(seed)
        age = self.player.age
        rows = [self.numbers.row(self.player.reset(seed))]
        taken: list[Any] = []
        rewards: list[float] = []
        ending: Ending = "cut"
        while len(taken) < longest and (len(taken) < 2 or self.goes_on()):
            taken.append(policy(rows[-1], self.player.mask()))
            shown = self.player.step(copied(taken[-1]))
            self.steps += 1
            rows.append(self.numbers.row(shown.observation))
            rewards.append(shown.reward)
            if shown.ended:
                ending = (
                    "both"
                    if shown.terminated and shown.truncated
                    else "terminated"
                    if shown.terminated
                    else "truncated"
                )
                break
        made = [self.action_numbers.row(action) for action in taken]
        episode = Episode(name, seed, np.array(rows), np.array(made), np.array(rewards), ending, age)
        self.episodes.append(episode)
        self.actions.append(taken)
        return episode


def behave(behaviour: Behaviour) -> None:
    """Play scripted, random, constant, linear and curious policies, a little of each at first."""
    space = behaviour.player.env.action_space
    has_mask = behaviour.player.env.has_wrapper_attr("action_masks")
    if not has_mask:
        _follow_script(behaviour)
    scored: list[tuple[Linear, Episode]] = []
    for number, (name, policy) in enumerate(_policies(behaviour, space)):
        if not behaviour.goes_on():
            return
        longest = LONGEST_EPISODE if number < WHOLE else USUAL_EPISODE
        episode = behaviour.play(name, policy, FIRST_SEED + 100 + number, longest=longest)
        scored += [(policy, episode)] if isinstance(policy, Linear) else []
    _climb(behaviour, scored)


def _follow_script(behaviour: Behaviour) -> None:
    """Play the same actions from many starts: those of a few scripts under which an episode is longest."""
    space = behaviour.player.env.action_space
    tried = [
        (behaviour.play("trial", _script(space, *each), FIRST_SEED, longest=SCRIPT_STEPS), each) for each in SCRIPTS
    ]
    best = max(tried, key=lambda pair: len(pair[0]))[1]
    for index in range(SCRIPTED):
        if behaviour.goes_on():
            behaviour.play("script", _script(space, *best), FIRST_SEED + index, longest=SCRIPT_STEPS)


def _script(space: Any, hold: int, force: float) -> Policy:
    return by_chance(space, FIRST_SEED, hold=hold, force=force)


def _policies(behaviour: Behaviour, space: Any) -> Iterator[tuple[str, Policy]]:
    rng = np.random.default_rng(FIRST_SEED)
    if not behaviour.episodes:
        behaviour.play("random", by_chance(space, FIRST_SEED), FIRST_SEED)
    seen = np.concatenate([episode.observations for episode in behaviour.episodes])
    starts = np.array([episode.observations[0] for episode in behaviour.episodes])
    comes_back = len(np.unique(seen, axis=0)) < 0.5 * len(seen)
    curious = Novelty(space, FIRST_SEED) if isinstance(space, spaces.Discrete) and comes_back else None
    constants = list(_constants(space))[:MOST_CONSTANT]
    for number in range(MANY):
        if number < RANDOM:
            yield "random", by_chance(space, FIRST_SEED + 200 + number, hold=1 if number % 2 else 8)
        yield from constants[number : number + 1]
        if number < LINEAR and Linear.can_act(space):
            yield "linear", Linear.drawn(space, starts, seen, rng)
        if curious is not None:
            yield "curious", curious


def _constants(space: Any) -> Iterator[tuple[str, Policy]]:
    """Yield policies that always do one thing: a value of a discrete action, an end of a number's range."""
    middle = by_chance(space, FIRST_SEED)(np.zeros(0), None)
    for choice in choices(space)[0]:
        for value in (choice.values[0], choice.values[-1]) if choice.is_continuous else choice.values:
            yield f"constant {choice.name} = {value:g}", always(choice.put(middle, value))


def _climb(behaviour: Behaviour, scored: list[tuple[Linear, Episode]]) -> None:
    """Vary the linear policies with the best return and the longest episode in turn, and go on from what is better."""
    rng = np.random.default_rng(FIRST_SEED + 1)
    for number in range(CLIMB if scored else 0):
        if not behaviour.goes_on():
            return
        key = (lambda pair: float(pair[1].rewards.sum())) if number % 2 else (lambda pair: float(len(pair[1])))
        policy = max(scored, key=key)[0].varied(rng)
        scored.append((policy, behaviour.play("linear", policy, FIRST_SEED + 300 + number)))
