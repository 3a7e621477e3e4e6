"""Find the levels and futility limits in src/rlx/compare/interim_plan.py; about two minutes.

    python bench/plan.py

Levels must add up to at most .05. Then `better` and `worse` together cannot err more often, for any shape of returns
and any dependence between looks. They must find 1.5 sd at ten seeds nine times in ten. They must accept a candidate
that fails on a quarter of its seeds at most one time in ten, even without futility stops. Of those, the script takes
the levels that find most by 24 seeds. Futility: of the limits that spend at most 6.4 candidate seeds on equal
learners, it takes the one that loses least.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from rlx.compare.interim_plan import PLAN
from rlx.compare.permutation import permutation_tails

SIMULATIONS = 40_000
RISKY_SIMULATIONS = 160_000
SIZES = (3, 6, 10, 16, 24)
Levels = tuple[float, float, float]
Limits = tuple[float, float, float, float]
NEVER: Limits = (1.0, 1.0, 1.0, 1.0)


def tails(baseline: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both one-sided p-values of every pair; blocks of pairs have their own random splits."""
    blocks = [
        permutation_tails(ours, theirs, exact_splits=300, resamples=1999, seed=seed)
        for seed, (ours, theirs) in enumerate(
            zip(np.array_split(baseline, 40), np.array_split(candidate, 40), strict=True)
        )
    ]
    above, below = zip(*blocks, strict=True)
    return np.concatenate(above), np.concatenate(below)


class Cell:
    """The p-values of many simulated pairs at every size, for both directions."""

    def __init__(self, baseline: np.ndarray, candidate: np.ndarray) -> None:
        self.tails = {size: tails(baseline[:, : max(10, size)], candidate[:, :size]) for size in SIZES}

    def play(self, better: Levels, worse: Levels, futile: Limits = NEVER) -> dict[str, float]:
        """Return how often it ends as better (by 10, by 24) and worse, and the candidate seeds it uses."""
        count = len(self.tails[3][0])
        going, gains, harms, spent, last = np.ones(count, bool), np.zeros(count), np.zeros(count), np.zeros(count), 0
        at_ten = 0.0
        levels = {
            **dict.fromkeys((3, 6), (0.0, 0.0)),
            **dict(zip((10, 16, 24), zip(better, worse, strict=True), strict=True)),
        }
        for size, limit in zip(SIZES, (*futile, 1.0), strict=True):
            above, below = self.tails[size]
            spent += going * (size - last)
            last = size
            gain, harm = going & (above <= levels[size][0]), going & (below <= levels[size][1])
            gains, harms = gains + gain, harms + harm
            going &= ~gain & ~harm & (above <= limit)
            at_ten = float(gains.mean()) if size == 10 else at_ten
        return {
            "ten": at_ten,
            "better": float(gains.mean()),
            "worse": float(harms.mean()),
            "seeds": float(spent.mean()),
        }


def cells() -> dict[str, Cell]:
    """Simulate normal returns shifted by some standard deviations, and the risky candidate."""
    generator = np.random.default_rng(1)
    size = (SIMULATIONS, 24)
    found = {
        f"{shift:g}": Cell(generator.normal(size=size), generator.normal(shift, 1, size))
        for shift in (0.0, 0.7, 1.0, 1.5, -1.5)
    }
    size = (RISKY_SIMULATIONS, 24)
    failing = generator.random(size) < 0.25
    risky = np.where(failing, generator.normal(0, 0.1, size), generator.normal(1, 0.1, size))
    return {**found, "risky": Cell(generator.normal(0.75, 0.1, size), risky)}


def levels() -> Iterator[tuple[Levels, Levels]]:
    """Yield the levels that add up to at most .05."""
    firsts, seconds = (0.032, 0.033, 0.034), (0.001, 0.002, 0.003, 0.004)
    thirds = (0.003, 0.004, 0.005, 0.006, 0.008)
    for better in product(firsts, seconds, thirds):
        for worse in ((0.004, 0.0015, 0.0015), (0.006, 0.002, 0.002), (0.008, 0.003, 0.003)):
            if sum(better) + sum(worse) <= 0.05 + 1e-9:
                yield better, worse


def search_levels(of: dict[str, Cell]) -> tuple[Levels, Levels]:
    """Return the levels that find most by 24 seeds among those that keep the promises."""
    found = []
    for better, worse in levels():
        if of["1.5"].play(better, worse)["ten"] < 0.91 or of["risky"].play(better, worse)["better"] > 0.096:
            continue
        power = sum(of[shift].play(better, worse)["better"] for shift in ("0.7", "1", "1.5"))
        found.append((power + of["-1.5"].play(better, worse)["worse"], better, worse))
    _, better, worse = max(found)
    return better, worse


def search_limits(of: dict[str, Cell], better: Levels, worse: Levels) -> Limits:
    """Return the futility limits that lose least power among those that are cheap on equal learners."""
    found = []
    for futile in product((0.5, 0.55, 0.6), (0.25, 0.3, 0.35, 0.4), (0.1, 0.12, 0.15, 0.2), (0.04, 0.06, 0.08)):
        if of["0"].play(better, worse, futile)["seeds"] <= 6.4:
            power = sum(of[shift].play(better, worse, futile)["better"] for shift in ("0.7", "1", "1.5"))
            found.append((power + of["1.5"].play(better, worse, futile)["ten"], futile))
    return max(found)[1]


def main() -> None:
    of = cells()
    better, worse = search_levels(of)
    futile = search_limits(of, better, worse)
    print(f"found:    better {better}, worse {worse}, futile {futile}")
    deciding = PLAN.deciding
    used = tuple(stage.better for stage in deciding), tuple(stage.worse for stage in deciding)
    limits = tuple(stage.futile for stage in PLAN.stages[:-1])
    print(f"declared: better {used[0]}, worse {used[1]}, futile {limits}, sum {PLAN.error:.4f}\n")
    print("shift   better by 10   by 24   worse   with futility: better   seeds")
    for name, cell in of.items():
        whole, stopped = cell.play(*used), cell.play(*used, limits)  # type: ignore[arg-type]
        print(
            f"{name:6s}  {whole['ten']:12.3f}  {whole['better']:6.3f}  {whole['worse']:6.3f}"
            f"  {stopped['better']:22.3f}  {stopped['seeds']:6.1f}"
        )


if __name__ == "__main__":
    main()
