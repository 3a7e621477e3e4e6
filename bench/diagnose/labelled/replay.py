"""Replay a stored training as it looked while it ran: what `stop` rules would have seen at every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rlx.config.schema import Plateau, Stop
from rlx.diagnose.early_stop import reason_to_stop
from rlx.diagnose.rules import NAMES
from rlx.diagnose.run_case import RunCase
from rlx.runs.summary import SeedCost

PLATEAU = 0.4  # of the planned steps without a gain
FREE = SeedCost(seconds=0.0, cpu_seconds=0.0)
RULES = ("plateau (stop.plateau)", *NAMES)


def looks(case: RunCase) -> Iterator[RunCase]:
    """Yield the case at every row but the last one, as during training: without its end and the final measurements."""
    (seed,) = case.seeds
    steps = np.unique(np.concatenate([series.steps for series in seed.series.values()] or [np.empty(0)]))
    for step in steps[:-1]:
        yield case.until(float(step))


def stopped_by(case: RunCase, rules: Sequence[str] = RULES) -> set[str]:
    """Return the rules that, alone in a config's `stop` section, would have ended this training."""
    stops = {name: _stop(name, case) for name in rules}
    return {name for look in looks(case) for name, stop in stops.items() if reason_to_stop(stop, look, FREE)}


def _stop(name: str, case: RunCase) -> Stop:
    if name in NAMES:
        return Stop(findings=(name,))
    return Stop(plateau=Plateau(steps=max(1, int(PLATEAU * case.planned_steps))))
