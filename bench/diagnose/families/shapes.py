"""Learning curves with a known shape: forms that no limit was tuned on, in the noise of real logs.

Noise is white, autocorrelated, or that of means over the last hundred episodes; it may grow with the level. A run has
one seed or five. The truth is known by construction. Curves whose noise hides the shape from anyone are not made: the
change is at least ten times the noise of one point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlx.diagnose.run_case import RETURN, RunCase, SeedCase
from rlx.runs.metrics import Series

Floats = np.ndarray[Any, np.dtype[np.float64]]
Form = Callable[[Floats, np.random.Generator], Floats]
STEPS = 100_000
NOISES = ("white", "autocorrelated", "hundred episodes", "growing")
LENGTHS = (25, 40, 80, 300)


def _gompertz(t: Floats, rng: np.random.Generator) -> Floats:
    return np.exp(-5 * np.exp(-t / rng.uniform(0.04, 0.09)))


def _hill(t: Floats, rng: np.random.Generator) -> Floats:
    half = rng.uniform(0.05, 0.15)
    return t**6 / (t**6 + half**6)


def _dip(t: Floats, rng: np.random.Generator) -> Floats:
    """Learned early, with one short setback that is made good."""
    at = rng.uniform(0.5, 0.7)
    return 1 / (1 + np.exp(-(t - 0.15) / 0.03)) - 0.25 * np.exp(-(((t - at) / 0.04) ** 2))


FORMS: dict[str, tuple[Form, ...]] = {
    "still rising": (
        lambda t, rng: t + 0 * rng.random(),
        lambda t, rng: t ** rng.uniform(0.5, 2.5),
        lambda t, rng: np.log1p(rng.uniform(10, 60) * t) / 4,
        lambda t, rng: np.maximum(0, t - rng.uniform(0.5, 0.75)) * 3,
        lambda t, rng: np.floor(5 * t) / 5 + 0.6 * t,
    ),
    "levelled off": (_gompertz, _hill, _dip, lambda t, rng: np.minimum(1, t / rng.uniform(0.15, 0.5))),
    "flat": (lambda t, rng: 0 * t,),
    "declining": (
        lambda t, rng: -t + 0 * rng.random(),
        lambda t, rng: -(t ** rng.uniform(0.7, 1.5)),
    ),
    "collapsed": (
        lambda t, rng: np.interp(t, [0, 0.3, rng.uniform(0.5, 0.6), 0.7, 1], [0, 1, 1, 0.05, 0.05]),
        lambda t, rng: np.where(t < rng.uniform(0.4, 0.7), 1 - np.exp(-t / 0.1), 0.05),
    ),
    "unstable": (
        lambda t, rng: (t * rng.uniform(4, 7)) % 1,
        lambda t, rng: 0.5 - 0.5 * np.cos(2 * np.pi * t * rng.uniform(3, 6)),
        lambda t, rng: np.minimum(1, 5 * t) * (0.55 + 0.45 * np.sign(np.sin(2 * np.pi * t * rng.uniform(3.5, 6)))),
    ),
}


def noise(kind: str, count: int, level: Floats, rng: np.random.Generator) -> Floats:
    """Return noise with a standard deviation of about 1."""
    white = rng.normal(size=count + 60)
    if kind == "growing":
        return white[:count] * (0.5 + 0.5 * (level - level.min()) / max(float(np.ptp(level)), 1e-9))
    if kind == "white":
        return white[:count]
    if kind == "hundred episodes":
        width = max(3, count // 20)
        return np.convolve(white, np.ones(width), "valid")[:count] / np.sqrt(width)
    values = np.zeros(count + 60)
    for index in range(1, count + 60):
        values[index] = 0.7 * values[index - 1] + 0.714 * white[index]
    return values[60:]


def curve_cases(*, repeats: int, seed: int) -> list[tuple[str, str, RunCase]]:
    """Return (truth, name, run) of every form, noise, length and number of seeds."""
    rng = np.random.default_rng(seed)
    made = []
    for truth, forms in FORMS.items():
        for number, form in enumerate(forms):
            for kind in NOISES:
                for count in LENGTHS:
                    if truth == "unstable" and count < 40:
                        continue  # six swings in 25 points are four points per swing: noise looks the same
                    for seeds in (1, 5):
                        for _ in range(repeats):
                            case = _run(form, kind, count, seeds, rng)
                            made.append((truth, f"{truth} {number}, {kind}, {count} points, {seeds} seeds", case))
    return made


def _run(form: Form, kind: str, count: int, seeds: int, rng: np.random.Generator) -> RunCase:
    steps = np.linspace(STEPS / count, STEPS, count)
    size = rng.uniform(0.02, 0.1)
    unit, shift = rng.choice([1.0, 50.0, 1000.0]), rng.choice([0.0, -300.0, 20.0])
    made = []
    for number in range(seeds):
        level = form(steps / STEPS, rng)
        level = level / max(float(np.ptp(level)), 1e-9)
        values = shift + unit * (level + size * noise(kind, count, level, rng))
        made.append(SeedCase(number, step=STEPS, series={RETURN: Series(steps, values)}))
    return RunCase("curve_001", "ppo", {}, STEPS, tuple(made))
