"""Stressing trained policies: each disturbance at a few strengths, and factors of the world that training never had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from rlx.errors import JobFailed, UsageError, did_you_mean
from rlx.evaluate import disturb
from rlx.evaluate.disturb import Array, Observed
from rlx.evaluate.parameter import Parameter, Value, parse, values_of
from rlx.evaluate.policy import Policy
from rlx.evaluate.trial import Outcome, Trial

CORNER = "corner"
MOST_FACTORS = 5
"""Of which all corners may be tried: 32 of them."""


@dataclass(frozen=True)
class Kind:
    """A disturbance that is known by name: what it does, in which unit, and how strong it is tried."""

    says: str
    unit: str
    strengths: tuple[float, ...]
    make: type[disturb.Disturbed]


KINDS: Mapping[str, Kind] = {
    "noise": Kind("noise on every observation", "sd", (0.1, 0.25, 0.5), disturb.Noise),
    "offset": Kind("observations shifted by a constant", "sd", (0.1, 0.25, 0.5), disturb.Offset),
    "frozen": Kind("sensors stuck where the episode began", "share", (0.25, 0.5), disturb.Frozen),
    "delay": Kind("actions applied late", "steps", (1, 2, 4), disturb.Delay),
    "dropout": Kind("actions lost, nothing applied", "share", (0.1, 0.3), disturb.Dropout),
    "repeat": Kind("the action before applied again", "share", (0.1, 0.3), disturb.Repeat),
}
"""`sd` is the spread of each observed number in undisturbed episodes; `share` is a chance or a part."""


@dataclass(frozen=True)
class Stressed:
    """What the policies scored under one condition: a disturbance, or a factor of the world, by its name."""

    name: str
    strength: Value
    outcome: Outcome


@dataclass(frozen=True)
class Battery:
    """The undisturbed scores, and those under every condition; `left_out` says which disturbances do not apply."""

    nominal: Outcome
    conditions: tuple[Stressed, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Plan:
    """What to try: the strengths of each disturbance, factors of the world, and whether also the corners of those."""

    strengths: Mapping[str, tuple[float, ...]]
    factors: tuple[Parameter, ...] = ()
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


def planned(given: Sequence[str], *, is_only: bool = False, has_corners: bool = False) -> Plan:
    """Read what was asked for: `noise=0.1,0.5` replaces a disturbance's strengths, everything else is a factor.

    With `is_only` nothing is tried that was not named; with `has_corners` also all extremes of the factors together.
    """
    strengths = {} if is_only else {name: kind.strengths for name, kind in KINDS.items()}
    factors = []
    for text in given:
        name, has_values, values = text.partition("=")
        if name in KINDS:
            strengths[name] = _strengths(name, values) if has_values else KINDS[name].strengths
        elif has_values:
            factors.append(parse(text))
        else:
            near = did_you_mean(name, list(KINDS))
            known = f"disturbances: {', '.join(KINDS)}; a factor of the world has values (gravity=5,15)"
            raise UsageError(f"nothing is called `{name}`", hint=f"did you mean `{near}`?" if near else known)
    if has_corners and not 2 <= len(factors) <= MOST_FACTORS:
        raise UsageError(
            f"the corners of {len(factors)} factors", hint=f"between two factors and {MOST_FACTORS}: wind=0,5 load=1,2"
        )
    return Plan(strengths, tuple(factors), has_corners)


def _strengths(name: str, text: str) -> tuple[float, ...]:
    values = values_of(text)
    unit = KINDS[name].unit
    for value in values:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or value < 0 or (unit == "share" and value > 1) or (unit == "steps" and value != int(value)):  # type: ignore[operator]
            what = {"sd": "at least 0", "share": "between 0 and 1", "steps": "a whole number"}[unit]
            raise UsageError(f"{name}={text}: {value} is not {what}", hint=f"{name}={_usual(name)}")
    return tuple(float(value) for value in values)


def _usual(name: str) -> str:
    return ",".join(f"{strength:g}" for strength in KINDS[name].strengths)


def battery(trial: Trial, plan: Plan) -> Battery:
    """Measure every seed undisturbed and under each condition, all on the same episodes."""
    for factor in plan.factors:
        factor.refuse_absent(trial.protocol.env, root=trial.protocol.root)
    watched: dict[int, Observed] = {}

    def watch(policy: Policy, seed: int) -> Policy:
        watched[seed] = Observed(policy, episodes=trial.protocol.episodes)
        return watched[seed]

    nominal = trial.play(disturb=watch, with_random=True)
    if nominal.refused:
        raise JobFailed(f"undisturbed: {nominal.refused}", hint=f"rlx eval {trial.run.name}")
    spread, neutral = _pooled(list(watched.values())), neutral_action(trial.evaluator.env.action_space)
    left_out = _left_out(plan, spread, neutral)
    disturbed = [
        Stressed(name, strength, trial.play(disturb=partial(_disturbed, name, strength, spread, neutral)))
        for name, strengths in plan.strengths.items()
        if name not in left_out
        for strength in strengths
    ]
    return Battery(nominal, (*disturbed, *_factors(trial, plan)), left_out)


def _disturbed(
    name: str, strength: float, spread: list[Array | None], neutral: Array | None, policy: Policy, seed: int
) -> Policy:
    make: Any = KINDS[name].make
    beside = {"spread": spread} if issubclass(make, disturb.Sensors) else {"neutral": neutral}
    made: Policy = make(policy, strength=strength, seed=seed, **beside)
    return made


def _factors(trial: Trial, plan: Plan) -> Iterator[Stressed]:
    for factor in plan.factors:
        for value in factor.values:
            yield Stressed(factor.name, value, trial.play(env=factor.applied(trial.protocol.env, value)))
    for corner in plan.corners:
        env = trial.protocol.env
        for factor, value in zip(plan.factors, corner, strict=True):
            env = factor.applied(env, value)
        said = ", ".join(f"{factor.name}={value}" for factor, value in zip(plan.factors, corner, strict=True))
        yield Stressed(CORNER, said, trial.play(env=env))


def _pooled(watched: Sequence[Observed]) -> list[Array | None]:
    """Return the mean spread over training seeds, so that all of them are disturbed alike."""
    by_leaf = zip(*(one.spread() for one in watched), strict=True)
    return [None if any(one is None for one in leaf) else np.mean(leaf, axis=0) for leaf in by_leaf]


def neutral_action(space: Any) -> Array | None:
    """Return the action of actuators without a command: zero, or what is nearest to it; None where nothing is."""
    from gymnasium.spaces import Box

    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        return None
    neutral: Array = np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    return neutral


def _left_out(plan: Plan, spread: list[Array | None], neutral: Array | None) -> dict[str, str]:
    """Say which disturbances do not apply here, and why."""
    reasons: dict[str, str] = {}
    if not any(unit is not None and unit.any() for unit in spread):
        reasons |= dict.fromkeys(("noise", "offset", "frozen"), "no observed number varies: they are counts or classes")
    if neutral is None:
        reasons["dropout"] = "no action is neutral among classes of actions; `repeat` is the same there"
    return {name: reason for name, reason in reasons.items() if name in plan.strengths}
