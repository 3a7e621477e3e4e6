"""More learning curves with a known shape: formulas and noises that were written after the shape test was fixed.

No constant of the shape test may be chosen on them. Noise has heavy tails, a memory of two points, a few wild values,
or comes in bursts. A run has one, three or eight seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from families.shapes import STEPS, Floats, Form
from rlx.diagnose.run_case import RETURN, RunCase, SeedCase
from rlx.runs.metrics import Series

NOISES = ("heavy tails", "second order", "outliers", "bursts")
LENGTHS = (30, 60, 150, 500)
SEEDS = (1, 3, 8)


def _late_start(t: Floats, rng: np.random.Generator) -> Floats:
    """Nothing for half of the run, then a rise that has not ended."""
    width = rng.uniform(0.05, 0.12)
    return width * np.log1p(np.exp((t - rng.uniform(0.45, 0.6)) / width))


def _second_wave(t: Floats, rng: np.random.Generator) -> Floats:
    """An early skill, a pause, and a second rise under way."""
    return 0.4 / (1 + np.exp(-(t - 0.15) / 0.03)) + np.maximum(0, t - rng.uniform(0.55, 0.7)) * 1.8


def _bends_down(t: Floats, rng: np.random.Generator) -> Floats:
    """A fast rise that goes on at a third of the speed."""
    bend = rng.uniform(0.25, 0.4)
    return np.minimum(t, bend) * 1.5 + np.maximum(0, t - bend) * 0.6


def _power_law(t: Floats, rng: np.random.Generator) -> Floats:
    return 1 - (1 + t / rng.uniform(0.02, 0.04)) ** -3.0


def _two_steps(t: Floats, rng: np.random.Generator) -> Floats:
    """Two sudden insights, the second before the middle."""
    return 0.5 * (t > rng.uniform(0.08, 0.18)) + 0.5 * (t > rng.uniform(0.28, 0.42))


def _overshoot(t: Floats, rng: np.random.Generator) -> Floats:
    """A rise slightly beyond the level where it stays."""
    return np.tanh(t / 0.1) + 0.12 * np.exp(-(((t - rng.uniform(0.22, 0.3)) / 0.06) ** 2))


def _crash_late(t: Floats, rng: np.random.Generator) -> Floats:
    return np.where(t < rng.uniform(0.7, 0.82), np.tanh(t / 0.15), 0.08)


def _telegraph(t: Floats, rng: np.random.Generator) -> Floats:
    """Switches between a good and a bad policy, five to eight times."""
    switches = np.sort(rng.uniform(0.08, 0.95, int(rng.integers(5, 9))))
    gaps = np.diff(np.concatenate([[0.0], switches, [1.0]]))
    if gaps.min() < 0.05:
        return _telegraph(t, rng)
    return 0.15 + 0.85 * (np.searchsorted(switches, t) % 2)


def _forgets(t: Floats, rng: np.random.Generator) -> Floats:
    """Learns slowly, loses all at once, again and again."""
    period = rng.uniform(0.16, 0.24)
    phase = (t + rng.uniform(0, period)) % period / period
    return np.where(phase < 0.75, phase / 0.75, 0.05)


FORMS: dict[str, tuple[Form, ...]] = {
    "still rising": (_late_start, _second_wave, _bends_down, lambda t, rng: np.sqrt(t) + 0 * rng.random(),
                     lambda t, rng: t / (t + rng.uniform(0.7, 1.5))),
    "levelled off": (_power_law, _two_steps, _overshoot, lambda t, rng: np.tanh(t / rng.uniform(0.08, 0.16))),
    "flat": (lambda t, rng: 0 * t,),
    "declining": (lambda t, rng: -np.log1p(rng.uniform(1, 4) * t),
                  lambda t, rng: -np.maximum(0, t - rng.uniform(0.1, 0.3)),
                  lambda t, rng: np.minimum(1, t / 0.1) - 0.8 * t),
    "collapsed": (_crash_late, lambda t, rng: np.where(t < rng.uniform(0.3, 0.6), 1.0, 0.1)),
    "unstable": (_telegraph, _forgets),
}  # fmt: skip


def noise(kind: str, count: int, rng: np.random.Generator) -> Floats:
    """Return noise with a standard deviation of about 1."""
    if kind == "heavy tails":
        return rng.standard_t(3, size=count) / np.sqrt(3.0)
    white = rng.normal(size=count + 60)
    if kind == "outliers":
        wild = rng.random(count) < 0.03
        return 0.7 * white[:count] + wild * rng.choice([-4.0, 4.0], count)
    if kind == "bursts":
        loud = np.repeat(rng.random(count // 5 + 1) < 0.3, 5)[:count]
        return white[:count] * np.where(loud, 1.6, 0.6)
    values = np.zeros(count + 60)
    for index in range(2, count + 60):
        values[index] = 0.5 * values[index - 1] + 0.2 * values[index - 2] + 0.8 * white[index]
    return values[60:]


def curve_cases(*, repeats: int, seed: int) -> list[tuple[str, str, RunCase]]:
    """Return (truth, name, run) of every form, noise, length and number of seeds."""
    rng = np.random.default_rng(seed)
    made = []
    for truth, forms in FORMS.items():
        for number, form in enumerate(forms):
            for kind in NOISES:
                for count in LENGTHS:
                    if truth == "unstable" and count < 60:
                        continue  # too few points per swing to tell them from noise
                    for seeds in SEEDS:
                        for _ in range(repeats):
                            name = f"{truth} {number}, {kind}, {count} points, {seeds} seeds"
                            made.append((truth, name, _run(form, kind, count, seeds, rng)))
    return made


def _run(form: Form, kind: str, count: int, seeds: int, rng: np.random.Generator) -> RunCase:
    steps = np.linspace(STEPS / count, STEPS, count)
    size = rng.uniform(0.02, 0.08)
    unit = float(10 ** rng.uniform(-2, 3))
    shift = unit * rng.uniform(-5, 5)
    made: list[SeedCase] = []
    for number in range(seeds):
        level: Any = np.asarray(form(steps / STEPS, rng), dtype=np.float64)
        level = level / max(float(np.ptp(level)), 1e-9)
        values = shift + unit * (level + size * noise(kind, count, rng))
        made.append(SeedCase(number, step=STEPS, series={RETURN: Series(steps, values)}))
    return RunCase("curve_001", "ppo", {}, STEPS, tuple(made))
