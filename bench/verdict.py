"""Measure how often rlx's verdict errs, finds and is fooled, next to common rules; under two minutes.

    python bench/verdict.py [--simulations 20000]

Every rule sees the same draws. Equal learners (A/A) come in five shapes; the fifth is drawn from real pools that rlx
trained (bench/pools.json, made by bench/pools.py). It ends with the promises and exits with 1 if one is broken.
Peers: *1 seed* and *mean of 3* take the higher one. *Welch* is the one-sided t-test at .05, looked at after every
seed. *Disjoint IQM* accepts if the 95 % bootstrap intervals of the interquartile means of 5 v 5 do not overlap
(Agarwal et al. 2021; all 126 resamples of five, not a sample of them). *AdaStop-like* is a permutation test at 5 v 5
and 10 v 10 with half of .05 each (after Mathieu et al. 2023, whose own program errs more).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from rlx.compare.interim_plan import PLAN, available
from rlx.compare.permutation import permutation_tails

POOLS = Path(__file__).with_name("pools.json")
MOST = 30
"""Seeds a side that the user who adds them until better may train."""
BLOCK = 1000
Floats = np.ndarray


@dataclass(frozen=True)
class Outcome:
    """A rule's answer for each simulated pair, and the candidate seeds it used."""

    better: Floats
    worse: Floats
    seeds: Floats


class Draws:
    """Simulated pairs, (simulations, 30) scores per side, with the p-values that several rules need."""

    def __init__(self, baseline: Floats, candidate: Floats) -> None:
        self.baseline, self.candidate = baseline, candidate
        self._tails: dict[tuple[int, int], tuple[Floats, Floats]] = {}

    def tails(self, n: int, m: int) -> tuple[Floats, Floats]:
        """Return both one-sided p-values of the first n v m seeds; each block has its own random splits."""
        if (n, m) not in self._tails:
            blocks = [
                permutation_tails(
                    self.baseline[start : start + BLOCK, :n],
                    self.candidate[start : start + BLOCK, :m],
                    exact_splits=300,
                    resamples=1999,
                    seed=start,
                )
                for start in range(0, len(self.baseline), BLOCK)
            ]
            above, below = zip(*blocks, strict=True)
            self._tails[n, m] = np.concatenate(above), np.concatenate(below)
        return self._tails[n, m]


# Rules


def rlx_rule(draws: Draws, *, stops: bool, most: int = MOST) -> Outcome:
    """Add seeds one by one on both sides and look after each; `stops` obeys futility."""
    count = len(draws.baseline)
    better, worse, going = np.zeros(count, bool), np.zeros(count, bool), np.ones(count, bool)
    seeds, taken = np.zeros(count), set()
    for size in range(1, most + 1):
        seeds += going
        pool = max(size, PLAN.pool)
        for stage in available(PLAN, pool, size):
            if stage in taken:
                continue
            taken.add(stage)
            above, below = draws.tails(PLAN.baseline_seeds(stage), stage.seeds)
            gain, harm = going & (above <= stage.better + 1e-12), going & (below <= stage.worse + 1e-12)
            better |= gain
            worse |= harm & ~gain
            going &= ~gain & ~harm
            going &= (above <= stage.futile) | (not stops)
        if PLAN.next_deciding(size) is None:
            break
    return Outcome(better, worse, seeds)


def mean_rule(seeds: int) -> Callable[[Draws], Outcome]:
    """The higher mean wins."""

    def rule(draws: Draws) -> Outcome:
        gap = draws.candidate[:, :seeds].mean(1) - draws.baseline[:, :seeds].mean(1)
        return Outcome(gap > 0, gap < 0, np.full(len(gap), float(seeds)))

    return rule


def welch_rule(last: int) -> Callable[[Draws], Outcome]:
    """Welch's t-test at .05, after every seed from 3 on, until better."""

    def rule(draws: Draws) -> Outcome:
        count = len(draws.baseline)
        better, worse, seeds = np.zeros(count, bool), np.zeros(count, bool), np.full(count, float(last))
        for n in range(3, last + 1):
            a, b = draws.baseline[:, :n], draws.candidate[:, :n]
            ours, theirs = a.var(1, ddof=1) / n, b.var(1, ddof=1) / n
            error = np.sqrt(ours + theirs)
            with np.errstate(invalid="ignore", divide="ignore"):
                t = (b.mean(1) - a.mean(1)) / error
                freedom = (ours + theirs) ** 2 / ((ours**2 + theirs**2) / (n - 1))
            limit = np.interp(np.nan_to_num(freedom, nan=1.0), *T_LIMITS)
            gain = ~better & (np.nan_to_num(t) >= limit)
            seeds[gain] = n
            better |= gain
            worse |= np.nan_to_num(t) <= -limit
        return Outcome(better, worse & ~better, seeds)

    return rule


def t_limits() -> tuple[list[float], list[float]]:
    """Return the one-sided 5 % limits of Student's t for 1 to 60 degrees of freedom, by integration."""
    x = np.linspace(0, 60, 240_001)
    limits = []
    for freedom in range(1, 61):
        constant = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
        density = constant * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
        area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))])
        limits.append(float(np.interp(0.45, area, x)))
    return [float(freedom) for freedom in range(1, 61)], limits


T_LIMITS = t_limits()


def iqm_rule(draws: Draws) -> Outcome:
    """The 95 % bootstrap intervals of the interquartile means of 5 v 5 are disjoint."""
    (low_a, high_a), (low_b, high_b) = iqm_bounds(draws.baseline[:, :5]), iqm_bounds(draws.candidate[:, :5])
    return Outcome(low_b > high_a, high_b < low_a, np.full(len(low_a), 5.0))


def iqm_bounds(scores: Floats) -> tuple[Floats, Floats]:
    """Return the percentile interval over all 126 multisets of five scores, weighted by how often each is drawn."""
    chosen = np.array(list(combinations_with_replacement(range(5), 5)))
    ways = np.array([120 / math.prod(math.factorial(int(k)) for k in np.bincount(one)) for one in chosen])
    middle = np.stack([np.bincount(one[1:4], minlength=5) for one in chosen]) / 3
    values = np.sort(scores, axis=1) @ middle.T
    order = np.argsort(values, axis=1)
    share = np.cumsum((ways / ways.sum())[order], axis=1)
    found = [np.argmax(share >= level, axis=1) for level in (0.025, 0.975)]
    low, high = (np.take_along_axis(values, np.take_along_axis(order, at[:, None], 1), 1)[:, 0] for at in found)
    return low, high


def adastop_rule(draws: Draws) -> Outcome:
    """Permutation tests at 5 v 5 and 10 v 10, half of the level each."""
    (above_5, below_5), (above_10, below_10) = draws.tails(5, 5), draws.tails(10, 10)
    early = (above_5 <= 0.025) | (below_5 <= 0.025)
    better = (above_5 <= 0.025) | (~early & (above_10 <= 0.025))
    worse = (below_5 <= 0.025) | (~early & (below_10 <= 0.025))
    return Outcome(better, worse & ~better, np.where(early, 5.0, 10.0))


RULES: dict[str, Callable[[Draws], Outcome]] = {
    "rlx, futility stops": lambda draws: rlx_rule(draws, stops=True),
    "rlx, to the look at 10": lambda draws: rlx_rule(draws, stops=True, most=10),
    "rlx, adds seeds until better, to 30": lambda draws: rlx_rule(draws, stops=False),
    "1 seed, higher wins": mean_rule(1),
    "mean of 3, higher wins": mean_rule(3),
    "Welch .05, after each seed 3–10": welch_rule(10),
    "Welch .05, adds seeds until better, to 30": welch_rule(MOST),
    "disjoint 95 % IQM intervals, 5 v 5": iqm_rule,
    "AdaStop-like, 5 then 10": adastop_rule,
}


# Draws


def shapes(generator: np.random.Generator, count: int) -> Iterator[tuple[str, Draws]]:
    """Yield equal learners of five shapes; the fifth is real, from two pools."""
    size = (2, count, MOST)
    yield "normal", Draws(*generator.normal(size=size))
    yield "bimodal", Draws(*(generator.normal(size=size) + 6 * (generator.random(size) < 0.3)))
    yield "heavy-left", Draws(*-generator.lognormal(0, 1.2, size))
    yield "ceiling", Draws(*np.minimum(500, generator.normal(480, 60, size)))
    for name, pool in real_pools().items():
        yield f"real {name}", Draws(*generator.choice(pool, size))


def changes(generator: np.random.Generator, count: int) -> Iterator[tuple[str, Draws]]:
    """Yield candidates that differ: by a shift, by real trainings, and by failing on a quarter of their seeds."""
    size = (count, MOST)
    for shift in (1.0, 1.5, 2.0):
        yield f"d = {shift:g}", Draws(generator.normal(size=size), generator.normal(shift, 1, size))
    pools = real_pools()
    yield "real, d = 1.4", Draws(generator.choice(pools["base"], size), generator.choice(pools["epochs"], size))
    yield "d = −1", Draws(generator.normal(size=size), generator.normal(-1, 1, size))
    failing = generator.random(size) < 0.25
    risky = np.where(failing, generator.normal(0, 0.1, size), generator.normal(1, 0.1, size))
    yield "risky", Draws(generator.normal(0.75, 0.1, size), risky)


def real_pools() -> dict[str, Floats]:
    """Return the scores of the committed trainings."""
    pools = json.loads(POOLS.read_text(encoding="utf-8"))["pools"]
    return {name: np.array(list(pool["scores"].values())) for name, pool in pools.items()}


# Report


def table(title: str, columns: list[str], rows: dict[str, list[str]]) -> None:
    width = max(map(len, rows))
    print(f"\n{title}\n{'':{width}s}  " + "  ".join(f"{column:>13s}" for column in columns))
    for name, cells in rows.items():
        print(f"{name:{width}s}  " + "  ".join(f"{cell:>13s}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=20_000)
    args = parser.parse_args()
    started = time.monotonic()
    generator = np.random.default_rng(20_260)
    equal: dict[str, dict[str, Outcome]] = {}
    for shape, draws in shapes(generator, args.simulations):
        equal[shape] = {name: rule(draws) for name, rule in RULES.items()}
    other: dict[str, dict[str, Outcome]] = {}
    for change, draws in changes(generator, args.simulations):
        other[change] = {name: rule(draws) for name, rule in RULES.items()}
    table(
        "equal learners (A/A): called better / better or worse",
        list(equal),
        {
            name: [
                f"{of[name].better.mean():.3f} / {np.mean(of[name].better | of[name].worse):.3f}"
                for of in equal.values()
            ]
            for name in RULES
        },
    )
    table(
        "equal learners: candidate seeds spent",
        list(equal),
        {name: [f"{of[name].seeds.mean():.1f}" for of in equal.values()] for name in RULES},
    )
    table(
        "candidates that differ: called better / seeds spent",
        list(other),
        {
            name: [f"{of[name].better.mean():.3f} / {of[name].seeds.mean():.1f}" for of in other.values()]
            for name in RULES
        },
    )
    seconds = time.monotonic() - started
    print(
        f"\n{args.simulations:,} simulations a cell, {seconds:.0f} s; no shape makes rlx err beyond {PLAN.error:.3f}\n"
    )
    sys.exit(0 if promises(equal, other, seconds) else 1)


def promises(equal: dict[str, dict[str, Outcome]], other: dict[str, dict[str, Outcome]], seconds: float) -> bool:
    """Print each promise with the measured value."""
    stops, ten, adds, *_ = RULES

    def any_error(name: str) -> float:
        return max(float(np.mean(of[name].better | of[name].worse)) for of in equal.values())

    kept = [
        _promise("A/A error, better or worse, worst shape, futility stops", any_error(stops), at_most=0.055),
        _promise("A/A error of a user who adds seeds until better, to 30", any_error(adds), at_most=0.055),
        _promise("power at d = 1.5 by the deciding look", float(other["d = 1.5"][ten].better.mean()), at_least=0.90),
        _promise(
            "seeds spent on nulls, worst shape",
            max(float(of[stops].seeds.mean()) for of in equal.values()),
            at_most=6.5,
        ),
        _promise("risky candidate accepted", float(other["risky"][stops].better.mean()), at_most=0.10),
        _promise(
            "risky candidate accepted, adds seeds until better", float(other["risky"][adds].better.mean()), at_most=0.10
        ),
        _promise("seconds", seconds, at_most=120.0),
    ]
    return all(kept)


def _promise(what: str, value: float, *, at_most: float = math.inf, at_least: float = -math.inf) -> bool:
    is_kept = at_least <= value <= at_most
    limit = f"≤ {at_most:g}" if at_most < math.inf else f"≥ {at_least:g}"
    print(f"{'ok  ' if is_kept else 'FAIL'}  {what}: {value:.4g} ({limit})")
    return is_kept


if __name__ == "__main__":
    main()
