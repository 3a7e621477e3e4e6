"""Simulate whole studies under rlx's race and confirmation, and under two simple rules; under two minutes.

    python bench/campaign.py [--campaigns 10000]

A campaign tries 30 candidates one after the other. Each changes the head by some standard deviations of a seed's score.
rlx's rule is the code that studies use (`rlx.compare.race`): 3 seeds, perhaps 3 more, against 6 of the head. After each
move, the head is trained on 6 fresh seeds. If the head has moved, one claim follows at the end: 10 fresh seeds of the
head against 10 of the original baseline. All these seeds are counted. *Ratchets* keep a candidate if its mean on 1 or 3
seeds is higher, and claim the difference they saw. The script writes bench/campaign.md, ends with the promises, and
exits with 1 if one is broken.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlx.compare.permutation import permutation_tails
from rlx.compare.race import ERRORS, LEAST_SEEDS
from rlx.compare.race_thresholds import RULE, RaceRule

PAGE = Path(__file__).with_suffix(".md")
POOLS = Path(__file__).with_name("pools.json")
CANDIDATES = 30
ALPHA = 0.05
BUDGET = 165
BLOCK = 1000
RISKY_SIMULATIONS = 20_000
Floats = np.ndarray
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]


@dataclass(frozen=True)
class Cell:
    """A kind of campaign: which shares of the candidates change the head by how many sd, and the noise of a seed."""

    name: str
    shares: tuple[tuple[float, float], ...]
    noise: Noise = lambda generator, size: generator.normal(size=size)

    def effects(self, generator: np.random.Generator, count: int) -> Floats:
        """Draw the effect of one candidate in every campaign: (count,)."""
        shares, effects = zip(*self.shares, strict=True)
        return generator.choice(np.array(effects), p=np.array(shares), size=count)


@dataclass(frozen=True)
class Outcome:
    """The end of each campaign; `gain` is the true gain of the final head, `claimed` the stated one."""

    is_claimed: Floats
    gain: Floats
    claimed: Floats
    seeds: Floats
    moves: Floats

    @property
    def false_claims(self) -> float:
        """The share of campaigns that claim although they gained nothing."""
        return float(np.mean(self.is_claimed & (self.gain <= 0)))

    @property
    def true_gain(self) -> float:
        """The true gain of the claimed change; 0 without a claim."""
        return float(np.mean(np.where(self.is_claimed, self.gain, 0.0)))

    @property
    def said_and_true(self) -> tuple[float, float]:
        """The claimed gain and its true part, over the campaigns that claim."""
        if not self.is_claimed.any():
            return math.nan, math.nan
        return float(self.claimed[self.is_claimed].mean()), float(self.gain[self.is_claimed].mean())


def raced(
    cell: Cell, count: int, generator: np.random.Generator, *, rule: RaceRule = RULE, budget: float = math.inf
) -> Outcome:
    """Simulate campaigns by rlx's rules; with a budget, no candidate starts that leaves too little to confirm."""

    def scores(truth: Floats, size: int) -> Floats:
        return truth[:, None] + cell.noise(generator, (count, size))

    truth, spent, moves = np.zeros(count), np.full(count, float(rule.head)), np.zeros(count)
    head = scores(truth, rule.head)
    for _ in range(CANDIDATES):
        effect = cell.effects(generator, count)
        candidate = scores(truth + effect, rule.last)
        starts = spent + rule.last + rule.head + 2 * LEAST_SEEDS <= budget
        going, is_moved = race_all(head, candidate, rule)
        going, is_moved = going & starts, is_moved & starts
        spent += starts * rule.first + going * (rule.last - rule.first) + is_moved * rule.head
        moves += is_moved
        truth = np.where(is_moved, truth + effect, truth)
        head = np.where(is_moved[:, None], scores(truth, rule.head), head)
    baseline, fresh = scores(np.zeros(count), LEAST_SEEDS), scores(truth, LEAST_SEEDS)
    has_moved = moves > 0
    is_claimed = has_moved & confirm_all(baseline, fresh)
    spent += has_moved * 2 * LEAST_SEEDS
    return Outcome(is_claimed, truth, fresh.mean(1) - baseline.mean(1), spent, moves)


def race_all(head: Floats, candidate: Floats, rule: RaceRule) -> tuple[Floats, Floats]:
    """Race every candidate as `rlx.compare.race.race` does; return who gets more seeds and who becomes head."""
    going = rule.goes_on(permutation_tails(head, candidate[:, : rule.first])[0])
    is_moved = np.zeros(len(head), bool)
    if going.any():
        is_moved[going] = rule.moves(permutation_tails(head[going], candidate[going])[0])
    return going, is_moved


def confirm_all(baseline: Floats, head: Floats) -> Floats:
    """Return which claims `rlx.compare.race.confirm` confirms; use the exact test if random splits cannot decide."""
    near = np.concatenate([
        permutation_tails(
            baseline[start : start + BLOCK], head[start : start + BLOCK],
            exact_splits=300, resamples=9_999, seed=start,
        )[0]
        for start in range(0, len(baseline), BLOCK)
    ])  # fmt: skip
    for row in np.flatnonzero(np.abs(near - ALPHA) < 0.01):
        near[row] = permutation_tails(baseline[row], head[row])[0]
    return near <= ALPHA + 1e-12


def ratchet(cell: Cell, count: int, generator: np.random.Generator, *, seeds: int) -> Outcome:
    """Simulate campaigns that keep whatever scores higher; they claim the last score minus the first."""

    def mean(truth: Floats) -> Floats:
        return truth + cell.noise(generator, (count, seeds)).mean(1)

    truth, moves = np.zeros(count), np.zeros(count)
    first = best = mean(truth)
    for _ in range(CANDIDATES):
        effect = cell.effects(generator, count)
        score = mean(truth + effect)
        is_moved = score > best
        truth, best, moves = np.where(is_moved, truth + effect, truth), np.maximum(score, best), moves + is_moved
    spent = np.full(count, float(seeds * (CANDIDATES + 1)))
    return Outcome(moves > 0, truth, best - first, spent, moves)


RULES: dict[str, Callable[[Cell, int, np.random.Generator], Outcome]] = {
    "rlx: race, then one confirmation": raced,
    f"rlx, stopped by a budget of {BUDGET} seeds": lambda *given: raced(*given, budget=BUDGET),
    "1 seed, keep if better": lambda *given: ratchet(*given, seeds=1),
    "mean of 3, keep if better": lambda *given: ratchet(*given, seeds=3),
}
NULL = ((1.0, 0.0),)


def cells() -> tuple[Cell, ...]:
    """Return the kinds of campaigns; equal candidates also with noise of other shapes, all of one sd."""
    return (
        Cell("no candidate differs", NULL),
        Cell("no candidate differs, heavy left tail", NULL, heavy_left),
        Cell("no candidate differs, real trainings", NULL, real),
        Cell("mixed: 15 % gain 1, 35 % lose .5", ((0.15, 1.0), (0.35, -0.5), (0.5, 0.0))),
        Cell("mixed, real trainings", ((0.15, 1.0), (0.35, -0.5), (0.5, 0.0)), real),
        Cell("5 % gain 1, half lose .5", ((0.05, 1.0), (0.5, -0.5), (0.45, 0.0))),
        Cell("half lose .5, none gains", ((0.5, -0.5), (0.5, 0.0))),
        Cell("small: 30 % gain .4, 30 % lose .4", ((0.3, 0.4), (0.3, -0.4), (0.4, 0.0))),
    )


def heavy_left(generator: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Draw scores with a long tail of bad seeds, of mean 0 and sd 1."""
    sigma = 0.8
    mean, sd = math.exp(sigma**2 / 2), math.sqrt((math.exp(sigma**2) - 1) * math.exp(sigma**2))
    return (mean - generator.lognormal(0, sigma, size)) / sd


def real(generator: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Draw from the trainings that rlx made (bench/pools.json), of mean 0 and sd 1."""
    pool = np.array(list(json.loads(POOLS.read_text(encoding="utf-8"))["pools"]["base"]["scores"].values()))
    return generator.choice((pool - pool.mean()) / pool.std(), size)


def risky_errors(generator: np.random.Generator) -> dict[int, float]:
    """Measure how often p ≤ .05 passes a change with equal mean that fails on a quarter of its seeds, per size."""
    size = (RISKY_SIMULATIONS, LEAST_SEEDS)
    failing = generator.random(size) < 0.25
    risky = np.where(failing, generator.normal(0, 0.1, size), generator.normal(1, 0.1, size))
    base, found = generator.normal(0.75, 0.1, size), {}
    for n in ERRORS:
        p = np.concatenate([
            permutation_tails(
                base[start : start + BLOCK, :n], risky[start : start + BLOCK, :n],
                exact_splits=1_000, resamples=4_999, seed=start,
            )[0]
            for start in range(0, RISKY_SIMULATIONS, BLOCK)
        ])  # fmt: skip
        found[n] = float(np.mean(p <= ALPHA + 1e-12))
    return found


# Report

Results = dict[str, dict[str, Outcome]]
HEADER = ("rule", "claims", "false claims", "true gain", "claimed (true part)", "seeds", "moves")


def row(name: str, of: Outcome) -> list[str]:
    said, true = of.said_and_true
    claimed = "–" if math.isnan(said) else f"{said:+.2f} ({true:+.2f})"
    return [
        name, f"{of.is_claimed.mean():.3f}", f"{of.false_claims:.3f}", f"{of.true_gain:+.2f}", claimed,
        f"{of.seeds.mean():.0f}", f"{of.moves.mean():.1f}",
    ]  # fmt: skip


def page(results: Results, errors: dict[int, float], kept: list[str], *, campaigns: int) -> str:
    """Return everything as Markdown."""
    lines = [
        "# How whole studies end",
        "",
        "For anyone who asks whether a study's rule is worth its seeds. Written by `python bench/campaign.py`, which "
        "explains the simulation.",
        "",
        f"There are {campaigns:,} campaigns of {CANDIDATES} candidates per cell. Gains are in sd of a seed's score. "
        "*True gain* is the real gain of the claimed change, or 0 without a claim. A *false* claim gained nothing. "
        "The rules that keep whatever looks better always claim their last change.",
        "",
    ]
    for cell, of in results.items():
        lines += [f"## {cell}", "", f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|"]
        lines += [f"| {' | '.join(row(name, outcome))} |" for name, outcome in of.items()]
        lines.append("")
    lines += [
        "## A claim on fewer seeds",
        "",
        "How often p ≤ .05 passes a change with an equal mean that fails on 25 % of its seeds:",
        "",
        f"| seeds per side | {' | '.join(str(n) for n in errors)} |",
        "|---" * (len(errors) + 1) + "|",
        f"| passed | {' | '.join(f'{error:.3f}' for error in errors.values())} |",
        "",
        "## Promises",
        "",
    ]
    return "\n".join([*lines, *(f"- {line}" for line in kept), ""])


def promises(results: Results, errors: dict[int, float]) -> list[tuple[bool, str]]:
    """Return each promise: whether it is kept, and the measured value."""
    ours = next(iter(RULES))
    nulls = [of[ours].false_claims for name, of in results.items() if name.startswith("no candidate")]
    mixed = next(of[ours] for name, of in results.items() if name.startswith("mixed: "))
    said, true = mixed.said_and_true
    stale = max(abs(errors[n] - ERRORS[n]) for n in ERRORS)
    return [
        _promise("false claims if no candidate differs, worst noise", max(nulls), at_most=0.05),
        _promise("true gain of the mixed campaign, sd", mixed.true_gain, at_least=2.5),
        _promise("seeds of the mixed campaign", float(mixed.seeds.mean()), at_most=BUDGET),
        _promise("|claimed − true| of the mixed campaign, sd", abs(said - true), at_most=0.1),
        _promise("false claim in any campaign", max(of[ours].false_claims for of in results.values()), at_most=0.05),
        _promise("`race.ERRORS` against the errors measured here", stale, at_most=0.015),
    ]


def _promise(what: str, value: float, *, at_most: float = math.inf, at_least: float = -math.inf) -> tuple[bool, str]:
    is_kept = at_least <= value <= at_most
    limit = f"≤ {at_most:g}" if at_most < math.inf else f"≥ {at_least:g}"
    return is_kept, f"{'ok' if is_kept else 'FAIL'}: {what}: {value:.4g} ({limit})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=10_000)
    campaigns = parser.parse_args().campaigns
    started = time.monotonic()
    results: Results = {}
    for number, cell in enumerate(cells()):
        results[cell.name] = {
            name: rule(cell, campaigns, np.random.default_rng([2026, number])) for name, rule in RULES.items()
        }
    errors = risky_errors(np.random.default_rng(6))
    found = promises(results, errors)
    text = page(results, errors, [line for _, line in found], campaigns=campaigns)
    print(text, f"\n{time.monotonic() - started:.0f} s", sep="")
    if campaigns >= parser.get_default("campaigns"):
        PAGE.write_text(text, encoding="utf-8")
    sys.exit(0 if all(is_kept for is_kept, _ in found) else 1)


if __name__ == "__main__":
    main()
