"""Problems with an environment's spaces that concern every backend: actions, masks and normalisation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.config.schema import ALGORITHMS, Experiment, OffPolicy, Problem
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import is_image, normalised_keys

STEP_BYTES = 16
"""Reward, end and time limit of one step in a replay buffer, generously."""
Kinds = tuple[type[spaces.Space[Any]], ...]
DISCRETE: Kinds = (spaces.Discrete,)
CONTINUOUS: Kinds = (spaces.Box,)
COUNTABLE: Kinds = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
KNOWN_SPACES: Kinds = (spaces.Box, *COUNTABLE)
ACTIONS: dict[str, Kinds] = {
    "maskable_ppo": COUNTABLE, "dqn": DISCRETE, "qrdqn": DISCRETE, "sac": CONTINUOUS, "td3": CONTINUOUS,
    "ddpg": CONTINUOUS, "tqc": CONTINUOUS, "ars": (spaces.Box, spaces.Discrete),
}  # fmt: skip
"""The action spaces of algorithms that do not take every kind."""


def action_problems(experiment: Experiment, facts: EnvFacts, *, backend: str) -> Iterator[Problem]:
    """Yield what makes the action space, or its masks, unusable for the experiment's algorithm."""
    name = experiment.algo.name
    env_id = experiment.env.id
    space = facts.action_space
    kind = type(space).__name__
    if not isinstance(space, KNOWN_SPACES):
        message = f"{backend} cannot act in {kind} action spaces"
        yield Problem("env.id", message, "flatten it to Box or MultiDiscrete in a wrapper")
        return
    allowed = ACTIONS.get(name, KNOWN_SPACES)
    if not isinstance(space, allowed):
        message = f"`{name}` needs {' or '.join(kind.__name__ for kind in allowed)} actions; {env_id} has {kind}"
        others = {"Box": "ppo, sac or td3", "Discrete": "ppo or dqn"}.get(kind, "ppo")
        yield Problem("algo.name", message, f"use {others}: -s algo.name=ppo")
    if isinstance(space, spaces.Box) and not np.isfinite([space.low, space.high]).all():
        message = f"the action space of {env_id} has no finite bounds"
        yield Problem("env.wrappers", message, "bound it with a wrapper: env.wrappers: [clip_action]")
    if starts_late(space):
        message = f"{backend} counts actions from 0; {env_id} has {space}"
        yield Problem("env.id", message, "shift it in a wrapper")
    if name == "maskable_ppo" and not facts.has_masks:
        message = f"`maskable_ppo` needs action masks, and {env_id} has no `action_masks()` method"
        yield Problem("algo.name", message, "add the method to the environment, or use ppo: -s algo.name=ppo")
    if name != "maskable_ppo" and facts.has_masks and name in ALGORITHMS:
        message = f"`{name}` ignores the action masks of {env_id}"
        yield Problem("algo.name", message, "maskable_ppo uses them", is_error=False)


def normalisation_problems(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    """Yield a problem if observations should be normalised and none of them can be."""
    space = facts.observation_space
    if experiment.env.normalize.obs and not normalised_keys(space):
        reason = "the network scales images itself" if is_image(space) else "they have no scale"
        message = f"`env.normalize.obs`: {experiment.env.id} has {type(space).__name__} observations; {reason}"
        yield Problem("env.normalize.obs", message, "-s env.normalize.obs=false")


def buffer_problems(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    """Yield a problem if the replay buffers of all seeds need more memory than is free: training fills it only late.

    A buffer reserves its whole size. Only the pages that are written take memory, but a machine reserves at most what
    it has.
    """
    algo = experiment.algo
    if not isinstance(algo, OffPolicy):
        return
    bytes_per_step = step_bytes(facts.observation_space, facts.action_space)
    reserved = algo.buffer_size * bytes_per_step
    written_steps = min(algo.buffer_size, algo.total_timesteps)
    needed = written_steps * bytes_per_step
    page = os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_AVPHYS_PAGES") * page
    installed = os.sysconf("SC_PHYS_PAGES") * page
    seeds = len(experiment.training_seeds())
    if needed > free:
        message = (
            f"a replay buffer of {algo.buffer_size:,} steps needs {_gigabytes(needed)}, and {_gigabytes(free)} are free"
        )
        half_of_free = int(written_steps * free / needed / 2)
        yield Problem("algo.buffer_size", message, f"-s algo.buffer_size={half_of_free}")
    elif reserved > installed:
        message = (
            f"a replay buffer of {algo.buffer_size:,} steps reserves {_gigabytes(reserved)}, and this machine has "
            f"{_gigabytes(installed)}; it trains for {algo.total_timesteps:,} steps"
        )
        yield Problem("algo.buffer_size", message, f"-s algo.buffer_size={written_steps}")
    elif needed * seeds > free:
        message = f"{seeds} replay buffers of {_gigabytes(needed)} do not fit into {_gigabytes(free)} of free memory"
        hint = "train fewer seeds at the same time, or -s algo.buffer_size=N"
        yield Problem("algo.buffer_size", message, hint, is_error=False)


def step_bytes(observation: spaces.Space[Any], action: spaces.Space[Any]) -> int:
    """Return the bytes that one step takes in a replay buffer: two observations, the action and what came of it."""
    return 2 * space_bytes(observation) + space_bytes(action) + STEP_BYTES


def space_bytes(space: spaces.Space[Any]) -> int:
    """Return the bytes that one value of a space takes in a replay buffer."""
    if isinstance(space, spaces.Dict):
        return sum(space_bytes(part) for part in space.values())
    if isinstance(space, spaces.Tuple):
        return sum(space_bytes(part) for part in space)
    size = int(np.prod(space.shape)) if space.shape else 1
    return size * (np.dtype(space.dtype).itemsize if space.dtype is not None else 8)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


def starts_late(space: spaces.Space[Any]) -> bool:
    """Return whether a discrete space counts from another number than 0."""
    return isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and bool(np.any(space.start != 0))
