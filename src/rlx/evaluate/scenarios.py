"""Check the environments of an evaluation, by making each one once: its own, and that of every scenario.

Not covered: a name in `pass` that is not one of rlx's own, if a short random episode does not end in time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.config.expression import FIGURES, Expression
from rlx.config.schema import Problem
from rlx.errors import JobFailed, RlxError, did_you_mean
from rlx.evaluate.protocol import EPISODE_SEEDS, Protocol

if TYPE_CHECKING:
    import gymnasium

    from rlx.config.schema import Experiment
    from rlx.envs.make import AnyEnv, EnvFacts

MOST_SECONDS = 0.5


def evaluation_env_problems(experiment: Experiment, facts: EnvFacts, *, root: Path) -> Iterator[Problem]:
    """Yield why a policy that is trained in an environment cannot act in the evaluation's; bounds may differ."""
    from rlx.envs.make import inspect
    from rlx.envs.spaces import in_words

    env = Protocol.of(experiment, root=root, purpose="report").env
    if experiment.eval.env is None or env == experiment.env:
        return
    try:
        evaluation = inspect(env, root=root)
    except RlxError as error:
        yield Problem("eval.env", f"`eval.env`: {error.message}", error.hint)
        return
    pairs = {
        "observations": (evaluation.observation_space, facts.observation_space),
        "actions": (evaluation.action_space, facts.action_space),
    }
    for what, (evaluated, trained) in pairs.items():
        if _has_other_form(evaluated, trained):
            message = f"the {what} of {env.id} are {in_words(evaluated)} in the evaluation, "
            message += f"but {in_words(trained)} in training"
            yield Problem("eval.env", message, "use the same observations and actions in training and evaluation")


def _has_other_form(space: gymnasium.Space[Any], other: gymnasium.Space[Any]) -> bool:
    if type(space) is not type(other) or space.shape != other.shape:
        return True
    return getattr(space, "n", None) is not None and str(space) != str(other)


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
