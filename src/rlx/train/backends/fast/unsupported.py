"""Problems that keep the fast backend from training an experiment, found in the config and the spaces alone."""

from __future__ import annotations

from collections.abc import Iterator

from rlx.config.schema import Experiment, Ppo, Problem, RecurrentPpo
from rlx.envs.make import EnvFacts
from rlx.envs.spaces import is_image, leaves
from rlx.train.backends.fast.activations import ACTIVATIONS
from rlx.train.space_problems import KNOWN_SPACES, action_problems, normalisation_problems

FIX = "-s backend=sb3"


def problems(experiment: Experiment, facts: EnvFacts) -> list[Problem]:
    """Return every problem, the algorithm's first."""
    return [
        *_config_problems(experiment),
        *action_problems(experiment, facts, backend="the fast backend"),
        *_observation_problems(experiment, facts),
    ]


def _config_problems(experiment: Experiment) -> Iterator[Problem]:
    algo = experiment.algo
    policy = experiment.policy
    if not isinstance(algo, Ppo) or isinstance(algo, RecurrentPpo):
        yield Problem("algo.name", f"the fast backend trains ppo and maskable_ppo, not `{algo.name}`", FIX)
    elif algo.use_sde:
        yield Problem("algo.use_sde", "the fast backend has no state-dependent exploration", FIX)
    if experiment.device not in ("auto", "cpu"):
        yield Problem("device", f"the fast backend runs on the CPU, not on `{experiment.device}`", "-s device=cpu")
    if policy.type not in ("mlp", "multi"):
        yield Problem("policy.type", f"the fast backend has mlp policies, not `{policy.type}`", FIX)
    if policy.kwargs:
        yield Problem("policy.kwargs", f"the fast backend takes no policy.kwargs ({', '.join(policy.kwargs)})", FIX)
    if policy.activation not in (None, *ACTIVATIONS):
        yield Problem("policy.activation", f"the fast backend has no `{policy.activation}`", FIX)


def _observation_problems(experiment: Experiment, facts: EnvFacts) -> Iterator[Problem]:
    for _, space in leaves(facts.observation_space):
        if is_image(space) or not isinstance(space, KNOWN_SPACES):
            kind = "image" if is_image(space) else type(space).__name__
            yield Problem("env.id", f"the fast backend cannot read {kind} observations", FIX)
            return
    yield from normalisation_problems(experiment, facts)
