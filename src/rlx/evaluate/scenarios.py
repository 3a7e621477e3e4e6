"""Check the scenarios of an evaluation, by making each one's environment once.

Not covered: a name in `pass` that is not one of rlx's own, if a short random episode does not end in time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.config.expression import FIGURES, Expression
from rlx.config.schema import Problem
from rlx.errors import JobFailed, RlxError, did_you_mean
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol

if TYPE_CHECKING:
    from rlx.config.schema import Experiment
    from rlx.envs.make import AnyEnv

MOST_SECONDS = 0.5


def scenario_problems(experiment: Experiment, *, root: Path) -> Iterator[Problem]:
    """Yield arguments of scenarios that the environment does not take, and names in `pass` that no episode has."""
    from rlx.envs.make import make_env

    if not experiment.eval.scenarios:
        return
    protocol = Protocol.of(experiment, root=root, purpose="report")
    for name, scenario in protocol.scenarios.items():
        key = f"eval.scenarios.{name}"
        try:
            env = make_env(protocol.scenario_env(name), root=root)
        except RlxError as error:
            yield Problem(f"{key}.kwargs", f"`{key}`: {error.message}", error.hint)
            continue
        try:
            yield from _unknown_names(f"{key}.pass", scenario.passes, env, protocol)
        finally:
            env.close()


def _unknown_names(key: str, rule: str | None, env: AnyEnv, protocol: Protocol) -> Iterator[Problem]:
    if not rule:
        return
    try:
        names = sorted(Expression(rule).names.difference(FIGURES))
    except ValueError:  # `cross_check` reports it
        return
    figures = _episode_figures(env, protocol) if names else None
    for name in names:
        near = did_you_mean(name, (*FIGURES, *(figures or ())))
        hint = f"it has: {', '.join(figures or FIGURES)}"
        if near:
            hint = f"did you mean `{near}`?"
        is_unknown = bool(near)  # without an episode's figures, only a likely typo counts
        if figures is not None:
            is_unknown = name not in figures
        if is_unknown:
            yield Problem(key, f"`{key}` names `{name}`, which an episode of {protocol.env.id} does not have", hint)


def _episode_figures(env: AnyEnv, protocol: Protocol) -> tuple[str, ...] | None:
    """Return the names of the figures of a random episode, or None if it does not end in time."""
    from rlx.evaluate.episode import EpisodeRunner
    from rlx.evaluate.policy import RandomPolicy
    from rlx.evaluate.rollout import isolated_randomness

    seeds = EPISODE_SEEDS["parity"]
    policy = RandomPolicy(env.action_space, seed=seeds.start)
    deadline = time.monotonic() + MOST_SECONDS
    with isolated_randomness(seeds.start):
        runner = EpisodeRunner(env, seeds, protocol=protocol)
        try:
            runner.begin()
            while time.monotonic() < deadline:
                if runner.step(policy.sample(runner.mask())):
                    return tuple(runner.episodes[-1].figures())
        except JobFailed:  # training meets the same error and reports it better
            pass
    return None
