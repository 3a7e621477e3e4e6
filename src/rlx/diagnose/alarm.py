"""Open alarms: what the rules find in a run that may still be training."""

from __future__ import annotations

from dataclasses import replace

from rlx.diagnose.case import RUNNING, Case, SeedCase
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.finding import Finding

EARLIEST = 0.2  # of the planned steps: a seed that trains has shown too little before


def alarms(case: Case) -> tuple[Finding, ...]:
    """Return what is found in the seeds that have shown enough; nothing where none has."""
    judged = tuple(seed for seed in case.seeds if has_shown_enough(seed, case))
    return diagnose(replace(case, seeds=judged)).findings if judged else ()


def has_shown_enough(seed: SeedCase, case: Case) -> bool:
    """Say whether a seed can be judged: it ended, or is past the first part of its run; one not begun cannot."""
    has_ended = seed.state != RUNNING
    return bool(seed.series or seed.reason) and (has_ended or case.done(seed) >= EARLIEST)
