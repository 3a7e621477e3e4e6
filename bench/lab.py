"""Simulate whole labs: 30 attempts, a ladder with climbs, one claim; next to keep-if-better, in under a minute.

    python bench/lab.py [--labs 200]

A lab tries 30 candidates. It races them by rlx's rule (`rlx.compare.race`), as a study does. After four attempts
without a new head, a lab with a head climbs: baseline and head run again at the next rung, and the head must win its
race there, or the search goes on from the baseline. The noise of a seed shrinks from rung to rung. One claim follows at
the last rung reached: 10 fresh seeds of the head against 10 of the baseline. *Keep if better* is autoresearch's rule:
one run per candidate, and a higher score is kept. The script writes bench/lab.md and exits with 1 if a promise is
broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from campaign import CANDIDATES, LEAST_SEEDS, NULL, RULE, Cell, Floats, Outcome, confirm_all, race_all, raced, ratchet

PAGE = Path(__file__).with_suffix(".md")
MIXED = ((0.15, 1.0), (0.35, -0.5), (0.5, 0.0))
RUNG_NOISE = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5)
"""The sd of a seed's score at every rung, against the first; the promises are kept with equal noise, too."""
EQUAL_NOISE = (1.0,) * len(RUNG_NOISE)
CLIMB_AFTER = 4
MOST_FALSE = 0.05
LEAST_GAIN_SHARE = 0.9


def lab(cell: Cell, count: int, generator: np.random.Generator, *, noise: Sequence[float] = EQUAL_NOISE) -> Outcome:
    """Simulate labs one by one, because each climbs at its own time."""
    ends = [_one_lab(cell, generator, noise) for _ in range(count)]
    claimed, gain, said, seeds, moves = (np.array(column) for column in zip(*ends, strict=True))
    return Outcome(claimed.astype(bool), gain, said, seeds, moves)


def _one_lab(
    cell: Cell, generator: np.random.Generator, noise: Sequence[float]
) -> tuple[bool, float, float, float, float]:
    truth, spent, moves, rung, idle = 0.0, 0.0, 0.0, 0, 0

    def scores(value: float, size: int) -> Floats:
        return value + noise[rung] * cell.noise(generator, (1, size))[0]

    head = scores(0.0, LEAST_SEEDS)
    spent += LEAST_SEEDS
    for _ in range(CANDIDATES):
        if idle >= CLIMB_AFTER and moves > 0 and rung + 1 < len(noise):
            rung, idle = rung + 1, 0
            baseline = scores(0.0, LEAST_SEEDS)
            carried = scores(truth, RULE.last)
            spent += LEAST_SEEDS + RULE.last
            if won(baseline, carried):
                head = scores(truth, RULE.head)
                spent += RULE.head
            else:
                truth, moves, head = 0.0, 0.0, baseline
        effect = float(cell.effects(generator, 1)[0])
        candidate = scores(truth + effect, RULE.last)
        going, is_moved = race_all(head[None, :], candidate[None, :], RULE)
        spent += RULE.first + float(going[0]) * (RULE.last - RULE.first)
        idle += 1
        if is_moved[0]:
            truth, moves, idle = truth + effect, moves + 1, 0
            head = scores(truth, RULE.head)
            spent += RULE.head
    if not moves:
        return False, 0.0, 0.0, spent, moves
    baseline, fresh = scores(0.0, LEAST_SEEDS), scores(truth, LEAST_SEEDS)
    spent += 2 * LEAST_SEEDS
    is_claimed = bool(confirm_all(baseline[None, :], fresh[None, :])[0])
    return is_claimed, truth, float(fresh.mean() - baseline.mean()), spent, moves


def won(head: Floats, candidate: Floats) -> bool:
    """Race a carried candidate against the baseline of its new rung."""
    return bool(race_all(head[None, :], candidate[None, :], RULE)[1][0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labs", type=int, default=200)
    count = parser.parse_args().labs
    generator = np.random.default_rng(23)
    null, mixed = Cell("30 null candidates", NULL), Cell("mixed: 15 % gain 1, 35 % lose .5", MIXED)
    rows = []
    outcomes: dict[tuple[str, str], Outcome] = {}
    rules = {"rlx lab": lab, "rlx lab, less noise on higher rungs": partial(lab, noise=RUNG_NOISE),
             "rlx study (bench/campaign.py)": raced,
             "keep if better (autoresearch)": lambda *given: ratchet(*given, seeds=1)}  # fmt: skip
    for cell in (null, mixed):
        for name, rule in rules.items():
            outcome = rule(cell, count, generator)
            outcomes[cell.name, name] = outcome
            said, true = outcome.said_and_true
            claimed = f"{said:+.2f} ({true:+.2f})" if outcome.is_claimed.any() else "–"
            rows.append(
                f"| {cell.name} | {name} | {outcome.is_claimed.mean():.3f} | {outcome.false_claims:.3f} "
                f"| {outcome.true_gain:+.2f} | {claimed} | {outcome.seeds.mean():.0f} |"
            )
    page = [
        "# How whole labs end", "",
        "For anyone who asks whether a night's claim is true. Written by `python bench/lab.py`, "
        f"which explains the simulation. There are {count} labs of {CANDIDATES} attempts per row. Gains are in sd of a "
        "seed's score at the first rung.", "",
        "| labs | rule | claims | false claims | true gain | claimed (true part) | seeds |",
        "|---|---|---|---|---|---|---|",
        *rows, "",
    ]  # fmt: skip
    PAGE.write_text("\n".join(page))
    print("\n".join(page))
    false = outcomes[null.name, "rlx lab"].false_claims
    gain = outcomes[mixed.name, "rlx lab"].true_gain
    study_gain = outcomes[mixed.name, "rlx study (bench/campaign.py)"].true_gain
    kept = {
        f"false claims of null labs {false:.3f} ≤ {MOST_FALSE}": false <= MOST_FALSE,
        f"gain of mixed labs {gain:+.2f} ≥ {LEAST_GAIN_SHARE:.0%} of the study's {study_gain:+.2f}":
            gain >= LEAST_GAIN_SHARE * study_gain,
    }  # fmt: skip
    for promise, is_kept in kept.items():
        print(f"{'kept' if is_kept else 'BROKEN'}: {promise}")
    return int(not all(kept.values()))


if __name__ == "__main__":
    sys.exit(main())
