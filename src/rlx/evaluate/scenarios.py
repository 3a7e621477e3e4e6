"""What is wrong with the scenarios of an evaluation, found by making each one's environment once.

What is not covered: a name in `pass` that is none of rlx's own, where a short random episode does not come to its end.
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
    """Yield what an environment does not take of a scenario's arguments, and names in `pass` that no episode has."""
    from rlx.envs.make import make_env

    if not experiment.eval.scenarios:
        return
    protocol = Protocol.of(experiment, root=root, purpose="report")
    for name, scenario in protocol.scenarios.items():
        key = f"eval.scenarios.{name}"
        try:
            made = make_env(protocol.scenario_env(name), root=root)
        except RlxError as error:
            yield Problem(f"{key}.kwargs", f"`{key}`: {error.message}", error.hint)
            continue
        try:
            yield from _misnamed(f"{key}.pass", scenario.passes, made, protocol)
        finally:
            made.close()


def _misnamed(key: str, passes: str | None, env: AnyEnv, protocol: Protocol) -> Iterator[Problem]:
    try:
        unknown = sorted(Expression(passes).names.difference(FIGURES)) if passes else []
    except ValueError:  # `cross_check` says so
        return
    figures = _figures(env, protocol) if unknown else None
    for name in unknown:
        near = did_you_mean(name, (*FIGURES, *(figures or ())))
        if name not in figures if figures is not None else near:
            had = f"it has: {', '.join(figures or FIGURES)}"
            message = f"`{key}` names `{name}`, which an episode of {protocol.env.id} does not have"
            yield Problem(key, message, f"did you mean `{near}`?" if near else had)


def _figures(env: AnyEnv, protocol: Protocol) -> tuple[str, ...] | None:
    """Return what an episode of random actions has; None where it does not end in time."""
    from rlx.evaluate.episode import Lane
    from rlx.evaluate.policy import RandomPolicy
    from rlx.evaluate.rollout import own_randomness

    seeds = EPISODE_SEEDS["parity"]
    randomly = RandomPolicy(env.action_space, seed=seeds.start)
    deadline = time.monotonic() + MOST_SECONDS
    with own_randomness(seeds.start):
        lane = Lane(env, seeds, protocol=protocol)
        try:
            lane.begin()
            while time.monotonic() < deadline:
                if lane.step(randomly.sample(lane.mask() if lane.mask_of else None)):
                    return tuple(lane.played[-1].figures())
        except JobFailed:  # training will meet it too, and tell it better
            pass
    return None
