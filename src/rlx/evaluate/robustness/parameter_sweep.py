"""Sweep one parameter of the environment: measure the trained policies at each of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlx.errors import JobFailed
from rlx.evaluate.robustness.conditions import ConditionScores, RobustnessTrial

if TYPE_CHECKING:
    from rlx.evaluate.robustness.env_parameter import EnvParameter, Value


@dataclass(frozen=True)
class ParameterSweep:
    """The scores of the policies at every value.

    `nominal` is the value in the evaluation environment, `trained` in training. `at_nominal` is always measured, even
    if its value is not among the parameter's.
    """

    parameter: EnvParameter
    nominal: Value | None
    trained: Value | None
    at_nominal: ConditionScores
    at: tuple[tuple[Value, ConditionScores], ...]


def count_evaluations(parameter: EnvParameter, seeds: int) -> int:
    """Return how many evaluations a sweep makes: every seed and the random policy, at each value and as configured."""
    return (len(parameter.values) + 1) * (seeds + 1)


def run_sweep(trial: RobustnessTrial, parameter: EnvParameter) -> ParameterSweep:
    """Measure every seed and the random policy at each value. A value that fails has its reason as result.

    Raises if every value fails: then the environment does not have the parameter.
    """
    env = trial.protocol.env
    root = trial.protocol.root
    nominal = parameter.nominal(env, root=root)
    parameter.refuse_absent(env, root=root)
    trained = parameter.nominal(trial.experiment.env, root=root)
    nominal_env = env
    if parameter.kind != "argument" and nominal is not None:
        nominal_env = parameter.applied(env, nominal)
    at_nominal = trial.play(env=nominal_env, with_random=True)
    results: list[tuple[Value, ConditionScores]] = []
    for value in parameter.values:
        scores = at_nominal
        if not _is_same(value, nominal):
            scores = trial.play(env=parameter.applied(env, value), with_random=True)
        results.append((value, scores))
    reason = at_nominal.refused
    if all(scores.refused for _, scores in results):
        reason = reason or results[0][1].refused
    if reason:
        raise JobFailed(f"{parameter.name}: {reason}", hint="no value could be played")
    return ParameterSweep(parameter, nominal, trained, at_nominal, tuple(results))


def _is_same(value: Value, nominal: Value | None) -> bool:
    return isinstance(value, bool) == isinstance(nominal, bool) and value == nominal
