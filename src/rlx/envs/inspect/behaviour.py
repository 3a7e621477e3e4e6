"""Plays many short episodes of simple policies, to see different sides of an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.envs.global_rng import GlobalGenerators
from rlx.envs.inspect.player import Player
from rlx.envs.inspect.record import Ending, Episode
from rlx.envs.inspect.simple_policies import Linear, Novelty, Policy, always, random_policy
from rlx.envs.inspect.space_leaves import Numbers, choices, copied

MOST_STEPS = 14_000
LONGEST_EPISODE = 2_000
USUAL_EPISODE = 250
WHOLE = 5
"""The first policies, and those of the hill climbing, play their episodes to the end."""
SCRIPTED = 10
SCRIPT_STEPS = 60
SCRIPTS = ((4, 1.0), (1, 1.0), (1, 0.1))
"""For how many steps an action may be held, and which share of a Box is used."""
RANDOM = 10
MOST_CONSTANT = 6
LINEAR = 30
MANY = 40
CLIMB = 24
FIRST_SEED = 5000
ENDINGS: dict[tuple[bool, bool], Ending] = {
    (True, True): "both", (True, False): "terminated", (False, True): "truncated",
}  # fmt: skip


@dataclass
class Behaviour:
    """The episodes played so far, and their exact actions, so that they can be played again."""

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
            result = self.player.step(copied(taken[-1]))
            self.steps += 1
            rows.append(self.numbers.row(result.observation))
            rewards.append(result.reward)
            if result.ended:
                ending = ENDINGS[result.terminated, result.truncated]
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
        if isinstance(policy, Linear):
            scored.append((policy, episode))
    _climb(behaviour, scored)


def _follow_script(behaviour: Behaviour) -> None:
    """Play the same actions from many starts, with the script that gives the longest episode."""
    space = behaviour.player.env.action_space
    lengths = {}
    for script in SCRIPTS:
        lengths[script] = len(behaviour.play("trial", _script(space, *script), FIRST_SEED, longest=SCRIPT_STEPS))
    best = max(SCRIPTS, key=lambda script: lengths[script])
    for index in range(SCRIPTED):
        if behaviour.goes_on():
            behaviour.play("script", _script(space, *best), FIRST_SEED + index, longest=SCRIPT_STEPS)


def _script(space: Any, hold: int, force: float) -> Policy:
    return random_policy(space, FIRST_SEED, hold=hold, force=force)


def _policies(behaviour: Behaviour, space: Any) -> Iterator[tuple[str, Policy]]:
    rng = np.random.default_rng(FIRST_SEED)
    if not behaviour.episodes:
        behaviour.play("random", random_policy(space, FIRST_SEED), FIRST_SEED)
    seen = np.concatenate([episode.observations for episode in behaviour.episodes])
    starts = np.array([episode.observations[0] for episode in behaviour.episodes])
    comes_back = len(np.unique(seen, axis=0)) < 0.5 * len(seen)
    curious = Novelty(space, FIRST_SEED) if isinstance(space, spaces.Discrete) and comes_back else None
    constants = list(_constants(space))[:MOST_CONSTANT]
    for number in range(MANY):
        if number < RANDOM:
            yield "random", random_policy(space, FIRST_SEED + 200 + number, hold=1 if number % 2 else 8)
        yield from constants[number : number + 1]
        if number < LINEAR and Linear.can_act(space):
            yield "linear", Linear.drawn(space, starts, seen, rng)
        if curious is not None:
            yield "curious", curious


def _constants(space: Any) -> Iterator[tuple[str, Policy]]:
    """Yield policies with a constant action: a value of a discrete action, or an end of a number's range."""
    middle = random_policy(space, FIRST_SEED)(np.zeros(0), None)
    for choice in choices(space)[0]:
        for value in (choice.values[0], choice.values[-1]) if choice.is_continuous else choice.values:
            yield f"constant {choice.name} = {value:g}", always(choice.put(middle, value))


def _climb(behaviour: Behaviour, scored: list[tuple[Linear, Episode]]) -> None:
    """Vary the linear policies with the best return and the longest episode in turn (hill climbing)."""
    rng = np.random.default_rng(FIRST_SEED + 1)
    keys: list[Callable[[tuple[Linear, Episode]], float]] = [
        lambda pair: float(len(pair[1])),
        lambda pair: float(pair[1].rewards.sum()),
    ]
    for number in range(CLIMB):
        if not scored or not behaviour.goes_on():
            return
        policy = max(scored, key=keys[number % 2])[0].varied(rng)
        scored.append((policy, behaviour.play("linear", policy, FIRST_SEED + 300 + number)))
