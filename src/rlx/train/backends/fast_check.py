"""What the fast backend cannot train, told from the config and the spaces alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.config.schema import Experiment, Ppo, Problem, RecurrentPpo
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import is_image, normalised_keys
from rlx.train.backends.fast_activations import ACTIVATIONS

COUNTABLE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
INSTEAD = "-s backend=sb3"


def problems(experiment: Experiment, facts: EnvFacts) -> list[Problem]:
    """Return everything that stands against training this experiment in NumPy."""
    return [
        *_algorithm(experiment),
        *_network(experiment),
        *_actions(experiment, facts),
        *_observations(experiment, facts),
    ]


def _algorithm(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    if not isinstance(algo, Ppo) or isinstance(algo, RecurrentPpo):
        message = f"the fast backend trains ppo and maskable_ppo, not `{algo.name}`"
        yield Problem("algo.name", message, INSTEAD)
    elif algo.use_sde:
        yield Problem("algo.use_sde", "the fast backend has no state-dependent exploration", INSTEAD)
    if experiment.device not in ("auto", "cpu"):
        yield Problem("device", f"the fast backend runs on the CPU, not on `{experiment.device}`", "-s device=cpu")


def _network(experiment: Experiment) -> Iterator[Problem]:
    policy = experiment.policy
    if policy.type not in ("mlp", "multi"):
        yield Problem("policy.type", f"the fast backend has mlp policies, not `{policy.type}`", INSTEAD)
    if policy.kwargs:
        yield Problem("policy.kwargs", f"the fast backend takes no policy.kwargs ({', '.join(policy.kwargs)})", INSTEAD)
    if policy.activation not in (None, *ACTIVATIONS):
        yield Problem("policy.activation", f"the fast backend has no `{policy.activation}`", INSTEAD)


def _actions(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    space, is_masked = facts.action_space, experiment.algo.name == "maskable_ppo"
    if not isinstance(space, (*COUNTABLE, spaces.Box)):
        message = f"the fast backend cannot act in {type(space).__name__} action spaces"
        yield Problem("env.id", message, "flatten it to Box or MultiDiscrete in a wrapper")
    elif isinstance(space, spaces.Box):
        yield from _continuous(experiment, space, is_masked=is_masked)
    elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)) and np.any(space.start != 0):
        message = f"the fast backend counts actions from 0; {experiment.env.id} has {space}"
        yield Problem("env.id", message, "shift it in a wrapper")
    if is_masked and not facts.has_masks:
        message = f"`maskable_ppo` needs action masks, and {experiment.env.id} has no `action_masks()` method"
        yield Problem("algo.name", message, "add the method to the environment, or use ppo: -s algo.name=ppo")
    if facts.has_masks and not is_masked:
        message = f"`{experiment.algo.name}` ignores the action masks of {experiment.env.id}"
        yield Problem("algo.name", message, "maskable_ppo uses them", is_error=False)


def _continuous(experiment: Experiment, space: spaces.Box, *, is_masked: bool) -> Iterator[Problem]:
    if is_masked:
        message = f"`maskable_ppo` needs countable actions; {experiment.env.id} has Box"
        yield Problem("algo.name", message, "-s algo.name=ppo")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        message = f"the action space of {experiment.env.id} has no finite bounds"
        yield Problem("env.wrappers", message, "bound it with a wrapper: env.wrappers: [clip_action]")


def _observations(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    unreadable = _unreadable(facts.observation_space)
    if unreadable:
        yield Problem("env.id", f"the fast backend cannot read {unreadable} observations", INSTEAD)
    elif experiment.env.normalize.obs and not normalised_keys(facts.observation_space):
        message = f"`env.normalize.obs`: nothing in the observations of {experiment.env.id} has a scale"
        yield Problem("env.normalize.obs", message, "-s env.normalize.obs=false")


def _unreadable(space: spaces.Space[Any]) -> str | None:
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        inner = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return next((found for part in inner if (found := _unreadable(part))), None)
    if is_image(space):
        return "image"
    return None if isinstance(space, (*COUNTABLE, spaces.Box)) else type(space).__name__
