"""The space around a config: each known key of its algorithm, from a part of its value to a multiple of it.

The outer limits keep proposals sane. They are wider than anything that published configs use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlx.search.space import Choice, Parameter, Range, Space

FACTORS: Mapping[str, tuple[float, float, float]] = {
    "algo.learning_rate": (8.0, 1e-6, 0.02),
    "algo.rollout_steps": (4.0, 8, 4096),
    "algo.update_epochs": (3.0, 1, 30),
    "algo.value_coef": (3.0, 0.05, 2.0),
    "algo.clip_range": (2.0, 0.05, 0.5),
    "algo.tau": (4.0, 0.001, 1.0),
    "algo.target_update_every": (8.0, 10, 20_000),
    "algo.exploration_fraction": (4.0, 0.01, 0.8),
    "algo.max_grad_norm": (4.0, 0.1, 20.0),
}
"""Key → factor in both directions, and the outer limits."""
CHOICES: Mapping[str, tuple[Any, ...]] = {
    "algo.gamma": (0.9, 0.95, 0.98, 0.99, 0.995, 0.999),
    "algo.gae_lambda": (0.8, 0.9, 0.95, 0.98, 1.0),
    "algo.entropy_coef": (0.0, 0.001, 0.003, 0.01, 0.03),
    "policy.hidden_sizes": ([32, 32], [64, 64], [128, 128], [256, 256]),
    "env.normalize.obs": (False, True),
    "env.normalize.reward": (False, True),
}
MOST_KEYS = 6


def neighbourhood(settings: Mapping[str, Any], *, keys: int = MOST_KEYS) -> Space:
    """Return the space around a config (dotted key → value) over its first known keys."""
    parameters: list[Parameter] = []
    for key in (*FACTORS, *CHOICES):
        if key not in settings:
            continue
        value = settings[key]
        if key in CHOICES:
            parameters.append(Parameter(key, _choice(CHOICES[key], value)))
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            parameters.append(Parameter(key, _around(key, value)))
    order = ["algo.learning_rate", "algo.gamma", "algo.entropy_coef", "algo.update_epochs", "algo.rollout_steps"]
    parameters.sort(key=lambda parameter: order.index(parameter.key) if parameter.key in order else len(order))
    return Space(tuple(parameters[:keys]))


def _around(key: str, value: float) -> Range | Choice:
    """Return the domain around a number. A rollout length only doubles or halves: a batch has to divide it."""
    if key == "algo.rollout_steps" and isinstance(value, int):
        _, lowest, highest = FACTORS[key]
        lengths = {value, *(length for length in (value // 2, value * 2, value * 4) if lowest <= length <= highest)}
        return Choice(tuple(sorted(lengths)))
    return _range(key, value)


def _range(key: str, value: float) -> Range:
    factor, lowest, highest = FACTORS[key]
    low = min(value, max(lowest, value / factor))
    high = max(value, min(highest, value * factor))
    if isinstance(value, int):
        low_whole = max(1, round(low))
        return Range(low_whole, max(low_whole + 1, round(high)), is_log=True, is_whole=True)
    if low == high:
        high = low * factor
    return Range(low, high, is_log=True)


def _choice(values: tuple[Any, ...], value: Any) -> Choice:
    if Choice(values).unit(value) is not None:
        return Choice(values)
    if all(isinstance(known, (int, float)) and not isinstance(known, bool) for known in (*values, value)):
        return Choice(tuple(sorted((*values, value))))
    return Choice((*values, value))


def single_steps(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return changes of one key each: into the outer limits if it lies outside, else a step in both directions."""
    outside: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for key, (factor, lowest, highest) in FACTORS.items():
        value = settings.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        if not lowest <= value <= highest:
            nearest = min(highest, max(lowest, value))
            inside = nearest / factor
            if value < lowest:
                inside = nearest * factor
            outside.append({key: type(value)(inside)})
            continue
        for times in (1 / factor**0.5, factor**0.5):
            stepped = min(highest, max(lowest, value * times))
            stepped = float(f"{stepped:.3g}")
            if isinstance(value, int):
                stepped = round(stepped)
            if stepped != value:
                steps.append({key: stepped})
    for key, values in CHOICES.items():
        present = settings.get(key)
        if key in settings:
            steps += [{key: value} for value in _next_values(values, present)]
    first = ("algo.learning_rate", "algo.gamma", "algo.entropy_coef")
    steps.sort(key=lambda step: next(iter(step)) not in first)
    return [*outside, *steps]


def _next_values(values: tuple[Any, ...], present: Any) -> list[Any]:
    """Return the values of a choice next to the present one."""
    if present not in values:
        return list(values[len(values) // 2 :][:1])
    place = values.index(present)
    return [values[index] for index in (place + 1, place - 1) if 0 <= index < len(values)]
