"""A stored training as it looked while it ran: what `stop` rules would have seen at every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rlx.config.schema import Plateau, Stop
from rlx.diagnose.case import Case
from rlx.diagnose.rules import NAMES
from rlx.diagnose.stopping import reason_to_stop
from rlx.runs.summary import Cost

PLATEAU = 0.4  # of the planned steps without a gain
FREE = Cost(seconds=0.0, cpu_seconds=0.0)
RULES = ("plateau (stop.plateau)", *NAMES)


def looks(case: Case) -> Iterator[Case]:
    """Yield the case at every row but the last one, as training: without its end, and what is measured there."""
    (seed,) = case.seeds
    steps = np.unique(np.concatenate([series.steps for series in seed.series.values()] or [np.empty(0)]))
    for step in steps[:-1]:
        yield case.until(float(step))


def stopped_by(case: Case, rules: Sequence[str] = RULES) -> set[str]:
    """Return the rules of which each, alone in a config's `stop` section, would have ended this training."""
    stops = {name: _stop(name, case) for name in rules}
    return {name for look in looks(case) for name, stop in stops.items() if reason_to_stop(stop, look, FREE)}


def _stop(name: str, case: Case) -> Stop:
    if name in NAMES:
        return Stop(findings=(name,))
    return Stop(plateau=Plateau(steps=max(1, int(PLATEAU * case.planned_steps))))
