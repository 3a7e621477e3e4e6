"""Plays the same seed and actions again under other conditions: the episodes should be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.global_rng import GlobalGenerators
from rlx.envs.inspect import record
from rlx.envs.inspect.player import Player, StepResult
from rlx.envs.inspect.record import Difference, Seeds, Twin, brief
from rlx.envs.inspect.simple_policies import random_policy
from rlx.envs.inspect.space_leaves import copied, is_close
from rlx.envs.snapshot.snapshot_diff import same

SEED = 11
STEPS = 60
OTHER_SEEDS = 8
OTHER_STEPS = 12
ROUNDING = 1e-4
MakePlayer = Callable[[], Player]
NO_NUMBERS = np.zeros(0)


@dataclass
class EpisodeTrace:
    """An episode's first observation, its steps, and the actions that led to them."""

    first: Any
    steps: list[StepResult] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)


def play(
    player: Player,
    *,
    seed: int = SEED,
    steps: int = STEPS,
    generators: int = 1,
    like: EpisodeTrace | None = None,
    after_step: Callable[[], None] = lambda: None,
) -> EpisodeTrace:
    """Play an episode with random actions, or with those of another, after seeding the global generators."""
    GlobalGenerators.seed(generators)
    policy = random_policy(player.env.action_space, seed, hold=3)
    trace = EpisodeTrace(player.reset(seed))
    after_step()
    for number in range(len(like.actions) if like else steps):
        action = like.actions[number] if like else policy(NO_NUMBERS, player.mask())
        trace.actions.append(copied(action))
        trace.steps.append(player.step(copied(action)))
        if trace.steps[-1].ended:
            break
        after_step()
    return trace


def difference(
    first: EpisodeTrace, second: EpisodeTrace, is_equal: Callable[[Any, Any], bool] = same
) -> Difference | None:
    """Return the first difference between two episodes."""
    pairs = [(0, "first observation", first.first, second.first)]
    for number, (one_step, other_step) in enumerate(zip(first.steps, second.steps, strict=False), start=1):
        for name in ("observation", "reward", "terminated", "truncated"):
            pairs.append((number, name, getattr(one_step, name), getattr(other_step, name)))
    for number, name, left, right in pairs:
        if not is_equal(left, right):
            is_rounding = is_close(left, right, within=ROUNDING)
            return Difference(number, name, brief(left), brief(right), _is_permutation(left, right), is_rounding)
    return None


def _is_permutation(left: Any, right: Any) -> bool:
    """Return whether two arrays hold the same numbers, at least three different ones, in another order."""
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray) or left.shape != right.shape:
        return False
    has_same_numbers = bool(np.array_equal(np.sort(left.ravel()), np.sort(right.ravel())))
    return has_same_numbers and len(np.unique(left)) >= min(3, left.size) > 1 and not np.array_equal(left, right)


def twins(make: MakePlayer, make_uncounted: MakePlayer, *, steps: int) -> Iterator[Twin]:
    """Play one episode under every condition and compare; stop if it differs even under the same conditions."""
    player = make()
    original = play(player, steps=steps)

    def twin(condition: str, trace: EpisodeTrace) -> Twin:
        return Twin(condition, SEED, len(trace.steps), difference(original, trace))

    again = twin(record.AGAIN, play(make(), like=original))
    yield again
    if again.difference is not None:
        return
    yield twin(record.GLOBALS, play(make(), generators=2, like=original))
    yield twin(record.LATER, _play_later(player, original))
    touched = make_uncounted()
    yield twin(record.TOUCHED, play(touched, like=original, after_step=touched.overwrite_observation))
    yield twin(record.BESIDE, _play_beside(make(), make(), original))


def _play_later(player: Player, original: EpisodeTrace) -> EpisodeTrace:
    """Play the episode after a whole other one and the beginning of a third."""
    play(player, seed=SEED + 1, steps=len(original.actions))
    player.reset(None)
    for action in original.actions[:5]:
        if player.step(copied(action)).ended:
            break
    return play(player, like=original)


def _play_beside(player: Player, neighbour: Player, original: EpisodeTrace) -> EpisodeTrace:
    """Play while a second instance plays another episode, step by step."""
    policy = random_policy(neighbour.env.action_space, SEED + 1)
    is_started = False

    def step_neighbour() -> None:
        nonlocal is_started
        if not is_started:
            neighbour.reset(SEED + 1)
            is_started = True
        elif neighbour.step(policy(NO_NUMBERS, neighbour.mask())).ended:
            neighbour.reset(None)

    return play(player, like=original, after_step=step_neighbour)


def vector_twin(make: MakePlayer, vector: Any, *, steps: int) -> Twin:
    """Compare a vector's first environment with a single one, up to the end of the first episode."""
    original = play(make(), steps=steps)
    GlobalGenerators.seed(1)
    first, _ = vector.reset(seed=[SEED, SEED + 1])
    trace = EpisodeTrace(_element(first, 0))
    for action in original.actions:
        observations, rewards, terminated, truncated, infos = vector.step(_batch(vector, [action, action]))
        ended = bool(terminated[0] or truncated[0])
        observation = infos["final_obs"][0] if ended else _element(observations, 0)
        trace.steps.append(StepResult(observation, float(rewards[0]), bool(terminated[0]), bool(truncated[0])))
        if ended:
            break
    # by value: a vector holds its environments' numbers in arrays of the space's own type
    return Twin(record.VECTOR, SEED, len(trace.steps), difference(original, trace, is_close))


def worlds_twin(vector: Any, *, steps: int) -> Twin:
    """Step worlds twice, the second time with another action in the first: the others must not change."""
    traces = []
    for first_seed in (SEED, SEED + 1):
        GlobalGenerators.seed(1)
        first_policy = random_policy(vector.single_action_space, first_seed)
        policy = random_policy(vector.single_action_space, SEED)
        trace = EpisodeTrace(_element(vector.reset(seed=SEED)[0], 1))
        for _ in range(steps):
            actions = [first_policy(NO_NUMBERS, None)]
            actions += [policy(NO_NUMBERS, None) for _ in range(vector.num_envs - 1)]
            observations, rewards, terminated, truncated, _ = vector.step(_batch(vector, actions))
            if np.logical_or(terminated, truncated).any():
                break
            trace.steps.append(StepResult(_element(observations, 1), float(rewards[1]), False, False))
        traces.append(trace)
    return Twin(record.WORLDS, SEED, len(traces[0].steps), difference(traces[0], traces[1], is_close))


def _element(batch: Any, index: int) -> Any:
    if isinstance(batch, dict):
        return {key: _element(item, index) for key, item in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_element(item, index) for item in batch)
    return copied(batch[index])


def _batch(vector: Any, actions: list[Any]) -> Any:
    empty: Any = create_empty_array(vector.single_action_space, n=len(actions))
    return concatenate(vector.single_action_space, [copied(action) for action in actions], empty)


def seeds(player: Player) -> Seeds:
    """Count how many seeds start and continue differently under the same actions."""
    original = play(player, steps=OTHER_STEPS)
    starts = [original.first]
    courses = [original]
    arrived: int | None = None
    for seed in range(SEED + 1, SEED + OTHER_SEEDS):
        trace = play(player, seed=seed, like=original)
        own_seed = getattr(player.env.unwrapped, "_np_random_seed", None)
        if isinstance(own_seed, int) and own_seed not in (seed, -1):
            arrived = own_seed
        if not any(same(trace.first, start) for start in starts):
            starts.append(trace.first)
        if all(difference(trace, course) for course in courses):
            courses.append(trace)
    return Seeds(OTHER_SEEDS, len(starts), len(courses), arrived, _inner_starts(player))


def _inner_starts(player: Player) -> int | None:
    """Count the different starts of the environment inside its wrappers; None without wrappers."""
    inner = player.env.unwrapped
    if inner is player.env:
        return None
    starts: list[Any] = []
    for seed in range(SEED, SEED + OTHER_SEEDS):
        try:
            first = copied(call_foreign(lambda: inner.reset(seed=seed))[0])  # noqa: B023  called at once
        except (ForeignError, TypeError, IndexError, KeyError):
            return None
        if not any(same(first, start) for start in starts):
            starts.append(first)
    return len(starts)
