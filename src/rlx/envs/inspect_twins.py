"""Episodes that should be one: the same seed and actions, played again under another condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array

from rlx.envs.differ import same
from rlx.envs.generators import GlobalGenerators
from rlx.envs.inspect_player import Player, Shown
from rlx.envs.inspect_policies import by_chance
from rlx.envs.inspect_record import (
    AGAIN,
    BESIDE,
    GLOBALS,
    LATER,
    TOUCHED,
    VECTOR,
    WORLDS,
    Difference,
    Seeds,
    Twin,
    brief,
)
from rlx.envs.inspect_spaces import copied, is_close

SEED, STEPS, OTHER_SEEDS, OTHER_STEPS = 11, 60, 8, 12
ROUNDING = 1e-4
MakePlayer = Callable[[], Player]


@dataclass
class Trace:
    """What an episode showed, and the actions that led to it."""

    first: Any
    steps: list[Shown] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)


def play(player: Player, *, seed: int, steps: int = STEPS, generators: int = 1, like: Trace | None = None) -> Trace:
    """Play an episode by chance, or with the actions of another, after seeding the global generators."""
    GlobalGenerators.seed(generators)
    policy = by_chance(player.env.action_space, seed, hold=3)
    trace = Trace(player.reset(seed))
    for number in range(steps if like is None else len(like.actions)):
        action = policy(np.zeros(0), player.mask()) if like is None else like.actions[number]
        trace.actions.append(copied(action))
        trace.steps.append(player.step(copied(action)))
        if trace.steps[-1].ended:
            break
    return trace


def difference(one: Trace, other: Trace) -> Difference | None:
    """Return the first difference of two episodes."""
    if not same(one.first, other.first):
        return _differ(0, "first observation", one.first, other.first)
    for number, (mine, theirs) in enumerate(zip(one.steps, other.steps, strict=False), start=1):
        for what in ("observation", "reward", "terminated", "truncated"):
            if not same(getattr(mine, what), getattr(theirs, what)):
                return _differ(number, what, getattr(mine, what), getattr(theirs, what))
    return None


def _differ(step: int, what: str, one: Any, other: Any) -> Difference:
    is_rounding = is_close(one, other, within=ROUNDING)
    return Difference(step, what, brief(one), brief(other), _is_permutation(one, other), is_rounding)


def _is_permutation(one: Any, other: Any) -> bool:
    """Say whether two arrays hold the same numbers, at least three different ones, in another order."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray) or one.shape != other.shape:
        return False
    has_same_numbers = bool(np.array_equal(np.sort(one.ravel()), np.sort(other.ravel())))
    return has_same_numbers and len(np.unique(one)) >= min(3, one.size) > 1 and not np.array_equal(one, other)


def twins(make: MakePlayer, aside: MakePlayer, *, steps: int) -> Iterator[Twin]:
    """Play one episode under every condition and compare; what follows from an earlier failure is left out."""
    first = make()
    original = play(first, seed=SEED, steps=steps)
    again = _twin(AGAIN, original, play(make(), seed=SEED, like=original))
    yield again
    if again.difference is None:
        yield _twin(GLOBALS, original, play(make(), seed=SEED, generators=2, like=original))
        yield _twin(LATER, original, _later(first, original))
        yield _twin(TOUCHED, original, _touched(aside(), original))
        yield _twin(BESIDE, original, _beside(make(), make(), original))


def _twin(how: str, one: Trace, other: Trace) -> Twin:
    return Twin(how, SEED, len(other.steps), difference(one, other))


def _later(player: Player, original: Trace) -> Trace:
    play(player, seed=SEED + 1, steps=len(original.actions))
    player.reset(None)
    for action in original.actions[:5]:
        if player.step(copied(action)).ended:
            break
    return play(player, seed=SEED, like=original)


def _touched(player: Player, original: Trace) -> Trace:
    """Play while overwriting every array that was received: an environment that computes with it goes astray."""
    GlobalGenerators.seed(1)
    trace = Trace(player.reset(SEED))
    player.overwrite_observation()
    for action in original.actions:
        trace.steps.append(player.step(copied(action)))
        player.overwrite_observation()
        if trace.steps[-1].ended:
            break
    return trace


def _beside(player: Player, neighbour: Player, original: Trace) -> Trace:
    """Play while a second instance plays another episode, step by step."""
    GlobalGenerators.seed(1)
    policy = by_chance(neighbour.env.action_space, SEED + 1)
    trace = Trace(player.reset(SEED))
    neighbour.reset(SEED + 1)
    for action in original.actions:
        trace.steps.append(player.step(copied(action)))
        if trace.steps[-1].ended:
            break
        if neighbour.step(policy(np.zeros(0), neighbour.mask())).ended:
            neighbour.reset(None)
    return trace


def vector_twin(make: MakePlayer, vector: Any, *, steps: int) -> Twin:
    """Compare a vector's first environment with the single one, up to the end of the first episode."""
    original = play(make(), seed=SEED, steps=steps)
    GlobalGenerators.seed(1)
    first, _ = vector.reset(seed=[SEED, SEED + 1])
    trace = Trace(_of(first, 0))
    for action in original.actions:
        observations, rewards, terminated, truncated, infos = vector.step(_batched(vector, [action, action]))
        ended = bool(terminated[0] or truncated[0])
        shown = infos["final_obs"][0] if ended else _of(observations, 0)
        trace.steps.append(Shown(shown, float(rewards[0]), bool(terminated[0]), bool(truncated[0])))
        if ended:
            break
    return Twin(VECTOR, SEED, len(trace.steps), _array_difference(original, trace))


def _of(batch: Any, index: int) -> Any:
    if isinstance(batch, dict):
        return {key: _of(item, index) for key, item in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_of(item, index) for item in batch)
    return copied(batch[index])


def worlds_twin(vector: Any, *, steps: int) -> Twin:
    """Step worlds twice, the second time with another action in the first: the others must not notice."""
    traces = []
    for first_seed in (SEED, SEED + 1):
        GlobalGenerators.seed(1)
        policy, other = (by_chance(vector.single_action_space, seed) for seed in (SEED, first_seed))
        trace = Trace(_of(vector.reset(seed=SEED)[0], 1))
        for _ in range(steps):
            actions = [other(np.zeros(0), None), *(policy(np.zeros(0), None) for _ in range(vector.num_envs - 1))]
            observations, rewards, terminated, truncated, _ = vector.step(_batched(vector, actions))
            if np.logical_or(terminated, truncated).any():
                break
            trace.steps.append(Shown(_of(observations, 1), float(rewards[1]), False, False))
        traces.append(trace)
    return Twin(WORLDS, SEED, len(traces[0].steps), _array_difference(*traces))


def _batched(vector: Any, actions: list[Any]) -> Any:
    empty: Any = create_empty_array(vector.single_action_space, n=len(actions))
    return concatenate(vector.single_action_space, [copied(action) for action in actions], empty)


def _array_difference(one: Trace, other: Trace) -> Difference | None:
    """Compare by value: a vector holds its environments' numbers in arrays of the space's own type."""
    if not is_close(one.first, other.first):
        return _differ(0, "first observation", one.first, other.first)
    for number, (mine, theirs) in enumerate(zip(one.steps, other.steps, strict=False), start=1):
        for what in ("observation", "reward", "terminated", "truncated"):
            if not is_close(getattr(mine, what), getattr(theirs, what)):
                return _differ(number, what, getattr(mine, what), getattr(theirs, what))
    return None


def seeds(player: Player) -> Seeds:
    """Count how many seeds start and go on differently under the same actions."""
    original = play(player, seed=SEED, steps=OTHER_STEPS)
    starts, courses = [original.first], [original]
    arrived: int | None = None
    for seed in range(SEED + 1, SEED + OTHER_SEEDS):
        trace = play(player, seed=seed, like=original)
        given = getattr(player.env.unwrapped, "_np_random_seed", None)
        arrived = given if isinstance(given, int) and given not in (seed, -1) else arrived
        starts += [] if any(same(trace.first, start) for start in starts) else [trace.first]
        courses += [] if any(difference(trace, course) is None for course in courses) else [trace]
    return Seeds(OTHER_SEEDS, len(starts), len(courses), arrived, _inner_starts(player))


def _inner_starts(player: Player) -> int | None:
    """Count the different starts of the environment inside its wrappers; None where it has none."""
    inner = player.env.unwrapped
    if inner is player.env:
        return None
    starts: list[Any] = []
    for seed in range(SEED, SEED + OTHER_SEEDS):
        try:
            first = copied(inner.reset(seed=seed)[0])
        except Exception:  # noqa: BLE001  people's environments may raise anything
            return None
        starts += [] if any(same(first, start) for start in starts) else [first]
    return len(starts)
