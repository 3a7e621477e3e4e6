"""Some seeds learn, others do not."""

from __future__ import annotations

import numpy as np

from rlx.diagnose.case import Case
from rlx.diagnose.finding import Evidence
from rlx.diagnose.rule import Rule, Sight

FEWEST_SEEDS = 3
APART = 3.0  # the gap between two groups, per spread within them
LARGE = 0.7  # the gap, per height of the best seed above the floor


def look(case: Case) -> Sight | None:
    """Return the gap between two groups of seeds, where it is far larger than the spread inside them."""
    ends = {seed.seed: _end(seed.seed, case) for seed in case.seeds}
    told = sorted((value, number) for number, value in ends.items() if value is not None and np.isfinite(value))
    if len(told) < FEWEST_SEEDS or not any(map(case.is_above_floor, case.seeds)):
        return None
    values = np.array([value for value, _ in told])
    gaps = np.diff(values)
    cut = int(np.argmax(gaps)) + 1
    within = np.concatenate([values[:cut] - values[:cut].mean(), values[cut:] - values[cut:].mean()])
    spread = float(np.sqrt((within**2).sum() / max(1, len(values) - 2)))
    floors = [floor for floor in map(case.floor, case.seeds) if floor is not None]
    height = float(values[-1] - min([*floors, values[0]]))
    if not height > 0 or gaps[cut - 1] < APART * spread or gaps[cut - 1] < LARGE * height:
        return None
    low, high = (tuple(number for _, number in part) for part in (told[:cut], told[cut:]))
    found = (Evidence("mean final return of the lower seeds", float(values[:cut].mean()), None, None, low),
             Evidence("of the upper ones", float(values[cut:].mean()), None, None, high))  # fmt: skip
    return Sight(found, f"seeds disagree: {len(low)} end at {values[:cut].mean():.4g}, {len(high)} at "
                        f"{values[cut:].mean():.4g}")  # fmt: skip


def _end(number: int, case: Case) -> float | None:
    seed = next(one for one in case.seeds if one.seed == number)
    if seed.report:
        return seed.report.mean
    found = case.shapes[number]
    return None if found.answer == "unknown" else found.end


RULE = Rule(
    id="seeds_disagree",
    kind="symptom",
    severity="medium",
    says="some seeds learn, others do not",
    look=look,
    source="the largest gap of sorted seeds over 3 times the spread within groups, and most of what the best learned",
    cannot_see="two groups among fewer than three seeds",
    tries=(
        "report the share of seeds that succeed, not the mean",
        "train more seeds before changing anything: rlx train --more RUN --seeds 5",
        "explore more at the start",
    ),
)
