"""Refuse a sweep that cannot run before it starts: a base that does not train, and values that no trial can have.

A value is refused if no config of the space that has it can train. So a batch size that fits only some rollout lengths
is allowed: the samplers leave out the configs in which it does not fit, and `left_out` says how many these are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.config.labels import spell
from rlx.errors import ConfigError, RlxError, UsageError
from rlx.loop.sweep.sweep_plan import LOCKED, LOCKED_SECTIONS, SweepPlan
from rlx.search.space import Choice, Parameter, Range, Values

if TYPE_CHECKING:
    from rlx.config.schema import Experiment

PARTNERS = 24
"""How many values of the other parameters are tried with one value that the base config does not take."""
SAMPLE = 100
MOST_CHECKED = 50
"""Of a longer list, only so many values are checked."""
ASKS_ENV = ("env", "policy", "backend", "device", "stop")
"""Sections whose values fit only some environments or machines; so does the name of an algorithm."""


def check_plan(plan: SweepPlan, *, root: Path) -> Experiment:
    """Refuse a plan that cannot run, and return its base config."""
    from rlx.launch import launch

    if not plan.space.parameters:
        raise UsageError("the space has no parameters", hint="-p algo.learning_rate=log:1e-5:1e-2")
    for parameter in plan.space.parameters:
        _refuse_locked(parameter.key)
    try:
        base = launch.check(plan.experiment({}), root=root).experiment
    except RlxError as error:
        raise type(error)(f"the base config does not train: {error.message}", hint=error.hint) from None
    trials = _Trials(plan, root)
    for parameter in plan.space.parameters:
        _refuse_fractions(trials, parameter)
        _refuse_ends(trials, parameter)
        _refuse_values(trials, parameter)
    return base


def left_out(plan: SweepPlan) -> str:
    """Return a note on the configs of the space that are not valid, by a sample of it; empty if all are valid."""
    reasons = []
    sample = _sample(plan)
    for values in sample:
        try:
            plan.experiment(values, source="for example")
        except ConfigError as error:
            reasons.append(error.message.splitlines()[0])
    if not reasons:
        return ""
    return (
        f"about {len(reasons) / len(sample):.0%} of the configs in this space are not valid and left out; {reasons[0]}"
    )


def _refuse_locked(key: str) -> None:
    section = key.split(".")[0]
    reason = LOCKED.get(key) or LOCKED_SECTIONS.get(section)
    if reason:
        raise UsageError(f"`{key}` cannot be a parameter: {reason}", hint="set it in the base config")


def _sample(plan: SweepPlan) -> list[Values]:
    """Return some configs of the space, always the same ones."""
    generator = random.Random(0)
    width = len(plan.space.parameters)
    return [plan.space.at([generator.random() for _ in range(width)]) for _ in range(SAMPLE)]


class _Trials:
    """Says whether configs of a plan's space can train."""

    def __init__(self, plan: SweepPlan, root: Path) -> None:
        self.plan = plan
        self.root = root

    def objection(self, values: Mapping[str, Any]) -> RlxError | None:
        """Return why a config cannot train; None if it can."""
        from rlx.launch import launch

        try:
            experiment = self.plan.experiment(values, source="-p")
        except ConfigError as error:
            return error
        if any(key == "algo.name" or key.split(".")[0] in ASKS_ENV for key in values):
            try:
                launch.check(experiment, root=self.root)
            except RlxError as error:
                settings = ", ".join(f"{key}={spell(value)}" for key, value in values.items())
                return type(error)(f"no trial with {settings} can train: {error.message}", hint=error.hint)
        return None

    def with_value(self, parameter: Parameter, value: Any) -> Iterator[Values]:
        """Yield configs with a value: on top of the base config, those of the plan, and with values of the others."""
        yield {**self._required(parameter), parameter.key: value}
        yield from (first for first in self.plan.first if first.get(parameter.key) == value)
        for values in _sample(self.plan)[:PARTNERS]:
            point = self.plan.space.point({**values, **self._required(parameter), parameter.key: value})
            if point is not None:
                yield self.plan.space.at(point)

    def _required(self, parameter: Parameter) -> Values:
        """Return the values of other parameters under which a parameter counts."""
        if parameter.condition is None:
            return {}
        key = parameter.condition.key
        other = next(known for known in self.plan.space.parameters if known.key == key)
        return {**self._required(other), key: parameter.condition.values[0]}


def _refuse_values(trials: _Trials, parameter: Parameter) -> None:
    """Raise if no trial with a value of a list can train, or with no value of a range."""
    levels = parameter.domain.levels()[:MOST_CHECKED]
    objections = []
    for level in levels:
        first: RlxError | None = None
        for values in trials.with_value(parameter, level):
            found = trials.objection(values)
            if found is None:
                break
            first = first or found
        else:
            assert first is not None
            objections.append(first)
    if objections and (isinstance(parameter.domain, Choice) or len(objections) == len(levels)):
        raise UsageError(objections[0].message, hint=objections[0].hint)


def _refuse_fractions(trials: _Trials, parameter: Parameter) -> None:
    """Raise if a key takes whole numbers, but its range has others in between."""
    domain = parameter.domain
    if not isinstance(domain, Range) or domain.is_whole or parameter.condition:
        return
    whole = round(domain.value(0.4999))
    # Fractions on both sides: 1 is the upper bound of a share, and 0.999 is still a share.
    near = [trials.objection({parameter.key: whole + offset}) for offset in (-0.001, 0.001)]
    if None not in near and trials.objection({parameter.key: whole}) is None:
        kind = "int:log" if domain.is_log else "int"
        hint = f"-p {parameter.key}={kind}:{math.ceil(domain.low)}:{math.floor(domain.high)}"
        raise UsageError(f"`{parameter.key}` takes whole numbers only", hint=hint)


def _refuse_ends(trials: _Trials, parameter: Parameter) -> None:
    """Raise if a range reaches beyond what its key takes. Whether whole numbers fit may depend on other keys."""
    from rlx.config.validate import validate

    domain = parameter.domain
    if not isinstance(domain, Range) or parameter.condition:
        return
    for end in (domain.low, domain.high):
        if domain.is_whole:
            own = validate(trials.plan.trial_data({parameter.key: int(end)}))[1]
            for problem in own.values():
                raise UsageError(f"-p: {problem.message}", hint=problem.hint)
        else:
            found = trials.objection({parameter.key: end})
            if isinstance(found, ConfigError):
                raise UsageError(found.message, hint=found.hint)
