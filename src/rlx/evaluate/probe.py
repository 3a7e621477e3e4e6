"""Probing one parameter of the world: the trained policies, not trained further, at each of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlx.errors import JobFailed
from rlx.evaluate.trial import Outcome, Trial

if TYPE_CHECKING:
    from rlx.evaluate.parameter import Parameter, Value


@dataclass(frozen=True)
class Sweep:
    """What the policies scored at every value; `nominal` is the value of the evaluation world, `trained` of training.

    `at_nominal` is measured in the world as it is configured, whether or not its value is among those tried.
    """

    parameter: Parameter
    nominal: Value | None
    trained: Value | None
    at_nominal: Outcome
    at: tuple[tuple[Value, Outcome], ...]


def count(parameter: Parameter, seeds: int) -> int:
    """Return how many evaluations a sweep makes: every seed and the random policy, at each value and as configured."""
    return (len(parameter.values) + 1) * (seeds + 1)


def sweep(trial: Trial, parameter: Parameter) -> Sweep:
    """Measure every seed and the random policy at each value; a value the environment refuses is one that says so.

    Raises where every value is refused: then it is the parameter that the environment does not have.
    """
    env, root = trial.protocol.env, trial.protocol.root
    nominal = parameter.nominal(env, root=root)
    parameter.refuse_absent(env, root=root)
    trained = parameter.nominal(trial.experiment.env, root=root)
    as_it_is = env if parameter.kind == "argument" or nominal is None else parameter.applied(env, nominal)
    at_nominal = trial.play(env=as_it_is, with_random=True)
    found = [
        (value, at_nominal if _is_same(value, nominal) else _played(trial, parameter, value))
        for value in parameter.values
    ]
    refused = at_nominal.refused or (found[0][1].refused if all(one.refused for _, one in found) else None)
    if refused:
        raise JobFailed(f"{parameter.name}: {refused}", hint="no value could be played")
    return Sweep(parameter, nominal, trained, at_nominal, tuple(found))


def _is_same(value: Value, nominal: Value | None) -> bool:
    return isinstance(value, bool) == isinstance(nominal, bool) and value == nominal


def _played(trial: Trial, parameter: Parameter, value: Value) -> Outcome:
    return trial.play(env=parameter.applied(trial.protocol.env, value), with_random=True)
