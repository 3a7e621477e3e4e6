"""Stress trained policies: each disturbance at a few strengths, and parameters of the environment (factors)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from rlx.errors import JobFailed, UsageError, did_you_mean
from rlx.evaluate.policy import Policy
from rlx.evaluate.robustness import disturbances
from rlx.evaluate.robustness.conditions import ConditionScores, RobustnessTrial
from rlx.evaluate.robustness.disturbances import Array, SpreadRecorder
from rlx.evaluate.robustness.env_parameter import EnvParameter, Value, parse_parameter, parse_values

CORNER = "corner"
# The most factors whose corners can all be tried: they have 32.
MOST_FACTORS = 5


@dataclass(frozen=True)
class Kind:
    """A named disturbance: its description, the unit of its strength, and the strengths to try."""

    description: str
    unit: str
    strengths: tuple[float, ...]
    make: type[disturbances.DisturbedPolicy]


# `sd` is the spread of each observed number in undisturbed episodes. `share` is a probability or a fraction.
KINDS: Mapping[str, Kind] = {
    "noise": Kind("noise on every observation", "sd", (0.1, 0.25, 0.5), disturbances.SensorNoise),
    "offset": Kind("observations shifted by a constant", "sd", (0.1, 0.25, 0.5), disturbances.SensorOffset),
    "frozen": Kind("sensors stuck where the episode began", "share", (0.25, 0.5), disturbances.FrozenSensors),
    "delay": Kind("actions applied late", "steps", (1, 2, 4), disturbances.DelayedActions),
    "dropout": Kind("actions lost, nothing applied", "share", (0.1, 0.3), disturbances.LostActions),
    "repeat": Kind("the action before applied again", "share", (0.1, 0.3), disturbances.RepeatedActions),
}


@dataclass(frozen=True)
class StressCondition:
    """The scores of the policies under one condition: a disturbance or a factor, by its name."""

    name: str
    strength: Value
    outcome: ConditionScores


@dataclass(frozen=True)
class StressResults:
    """The undisturbed scores, and those under every condition. `left_out` has the reasons of skipped disturbances."""

    nominal: ConditionScores
    conditions: tuple[StressCondition, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class StressPlan:
    """The strengths of each disturbance, the factors, and whether to try all corners of the factors."""

    strengths: Mapping[str, tuple[float, ...]]
    factors: tuple[EnvParameter, ...] = ()
    has_corners: bool = False

    @property
    def corners(self) -> tuple[tuple[Value, ...], ...]:
        """Every combination of the factors' first and last values, in the order of the factors."""
        if not self.has_corners:
            return ()
        return tuple(product(*((factor.values[0], factor.values[-1]) for factor in self.factors)))

    def count(self, seeds: int) -> int:
        """Return about how many evaluations there will be."""
        conditions = sum(map(len, self.strengths.values())) + sum(len(factor.values) for factor in self.factors)
        return (conditions + len(self.corners) + 1) * seeds + 1


def parse_stress_plan(given: Sequence[str], *, is_only: bool = False, has_corners: bool = False) -> StressPlan:
    """Read conditions: `noise=0.1,0.5` replaces a disturbance's strengths, any other name is a factor.

    With `is_only` only named disturbances are tried. With `has_corners` also all extremes of the factors together.
    """
    strengths: dict[str, tuple[float, ...]] = {}
    if not is_only:
        strengths = {name: kind.strengths for name, kind in KINDS.items()}
    factors = []
    for text in given:
        name, has_values, values = text.partition("=")
        if name in KINDS:
            strengths[name] = _strengths(name, values) if has_values else KINDS[name].strengths
        elif has_values:
            factors.append(parse_parameter(text))
        else:
            near = did_you_mean(name, list(KINDS))
            known = f"disturbances: {', '.join(KINDS)}; an environment parameter has values (gravity=5,15)"
            raise UsageError(f"unknown condition `{name}`", hint=f"did you mean `{near}`?" if near else known)
    if has_corners and not 2 <= len(factors) <= MOST_FACTORS:
        raise UsageError(
            f"the corners of {len(factors)} factors", hint=f"between two factors and {MOST_FACTORS}: wind=0,5 load=1,2"
        )
    return StressPlan(strengths, tuple(factors), has_corners)


def _strengths(name: str, text: str) -> tuple[float, ...]:
    values = parse_values(text)
    unit = KINDS[name].unit
    for value in values:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or value < 0 or (unit == "share" and value > 1) or (unit == "steps" and value != int(value)):  # type: ignore[operator]
            what = {"sd": "at least 0", "share": "between 0 and 1", "steps": "a whole number"}[unit]
            raise UsageError(f"{name}={text}: {value} is not {what}", hint=f"{name}={_usual(name)}")
    return tuple(float(value) for value in values)


def _usual(name: str) -> str:
    return ",".join(f"{strength:g}" for strength in KINDS[name].strengths)


def run_stress(trial: RobustnessTrial, plan: StressPlan) -> StressResults:
    """Measure every seed undisturbed and under each condition, all on the same episodes."""
    for factor in plan.factors:
        factor.refuse_absent(trial.protocol.env, root=trial.protocol.root)
    watched: dict[int, SpreadRecorder] = {}

    def watch(policy: Policy, seed: int) -> Policy:
        watched[seed] = SpreadRecorder(policy, episodes=trial.protocol.episodes)
        return watched[seed]

    nominal = trial.play(disturb=watch, with_random=True)
    if nominal.refused:
        raise JobFailed(f"undisturbed: {nominal.refused}", hint=f"rlx eval {trial.run.name}")
    spread = _pooled(list(watched.values()))
    neutral = neutral_action(trial.evaluator.env.action_space)
    left_out = _left_out(plan, spread, neutral)
    disturbed = [
        StressCondition(name, strength, trial.play(disturb=partial(_disturbed, name, strength, spread, neutral)))
        for name, strengths in plan.strengths.items()
        if name not in left_out
        for strength in strengths
    ]
    return StressResults(nominal, (*disturbed, *_factors(trial, plan)), left_out)


def _disturbed(
    name: str, strength: float, spread: list[Array | None], neutral: Array | None, policy: Policy, seed: int
) -> Policy:
    make: Any = KINDS[name].make
    beside = {"spread": spread} if issubclass(make, disturbances.SensorDisturbance) else {"neutral": neutral}
    made: Policy = make(policy, strength=strength, seed=seed, **beside)
    return made


def _factors(trial: RobustnessTrial, plan: StressPlan) -> Iterator[StressCondition]:
    for factor in plan.factors:
        for value in factor.values:
            yield StressCondition(factor.name, value, trial.play(env=factor.applied(trial.protocol.env, value)))
    for corner in plan.corners:
        env = trial.protocol.env
        for factor, value in zip(plan.factors, corner, strict=True):
            env = factor.applied(env, value)
        said = ", ".join(f"{factor.name}={value}" for factor, value in zip(plan.factors, corner, strict=True))
        yield StressCondition(CORNER, said, trial.play(env=env))


def _pooled(watched: Sequence[SpreadRecorder]) -> list[Array | None]:
    """Return the mean spread over training seeds, so that all of them are disturbed equally."""
    by_leaf = zip(*(recorder.spread() for recorder in watched), strict=True)
    return [None if any(spread is None for spread in leaf) else np.mean(leaf, axis=0) for leaf in by_leaf]


def neutral_action(space: Any) -> Array | None:
    """Return the action without a command: zero, or the nearest allowed value. None if no action is neutral."""
    from gymnasium.spaces import Box

    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        return None
    neutral: Array = np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    return neutral


def _left_out(plan: StressPlan, spread: list[Array | None], neutral: Array | None) -> dict[str, str]:
    """Return which disturbances do not apply here, with the reasons."""
    reasons: dict[str, str] = {}
    if not any(unit is not None and unit.any() for unit in spread):
        reasons |= dict.fromkeys(
            ("noise", "offset", "frozen"), "no observed number varies; counts and classes are not disturbed"
        )
    if neutral is None:
        reasons["dropout"] = "discrete actions have no neutral one; use `repeat` instead"
    return {name: reason for name, reason in reasons.items() if name in plan.strengths}
