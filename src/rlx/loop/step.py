"""What to do next while a pair of runs is being settled: look, wait, resume, evaluate, train or stop; pure.

The plan of looks (`compare.looks`) is followed in order. Both sides first get what the next look needs, so no seed is
trained that leads to no look; of several things to do, the one that loses least comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlx.compare.looks import PLAN, Plan, Stage
from rlx.compare.verdict import Verdict

Why = Literal["decided", "futile", "spent", "deadline", "invalid", "stuck", "crashing"]


@dataclass(frozen=True)
class Standing:
    """One side so far: how many seeds count, and which are not there yet.

    `unfinished` seeds ended without their fault (stopped, killed, never begun) or crashed for the first time on the
    baseline's side; `stuck` ones were resumed and ended that way again; `unscored` ones are complete and have no
    score under the protocol; `crashed` is how many were left out for good.
    """

    counted: int = 0
    is_running: bool = False
    unfinished: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()
    unscored: tuple[int, ...] = ()
    crashed: int = 0


@dataclass(frozen=True)
class State:
    """A pair being settled; `verdict` is None while seeds have ended that nobody looked at."""

    baseline: Standing
    candidate: Standing
    verdict: Verdict | None = None
    max_seeds: int = PLAN.stages[-1].seeds
    is_time_up: bool = False


@dataclass(frozen=True)
class Look:
    """Judge the pair on what there is."""


@dataclass(frozen=True)
class Wait:
    """Somebody trains these runs already."""


@dataclass(frozen=True)
class Resume:
    """Go on with seeds that were begun, or are to begin."""

    baseline: tuple[int, ...] = ()
    candidate: tuple[int, ...] = ()


@dataclass(frozen=True)
class Evaluate:
    """Score final policies under the protocol of the pair."""

    baseline: tuple[int, ...] = ()
    candidate: tuple[int, ...] = ()


@dataclass(frozen=True)
class Train:
    """Train so many further seeds of either side."""

    baseline: int = 0
    candidate: int = 0


@dataclass(frozen=True)
class Stop:
    """Nothing more to do, and why."""

    why: Why


Action = Look | Wait | Resume | Evaluate | Train | Stop


def next_action(state: State, *, plan: Plan = PLAN) -> Action:
    """Return the one thing to do now."""
    if state.verdict is None:
        return Look()
    ours, theirs = state.baseline, state.candidate
    why = _reason_to_stop(state, state.verdict)
    if why:
        return Stop(why)
    open_end = _open_end(ours, theirs)
    if open_end:
        return open_end
    goal = next_stage(state, plan=plan)
    if goal is None:
        return Stop("spent")
    return Train(max(0, plan.baseline_seeds(goal) - ours.counted), max(0, goal.seeds - theirs.counted))


def next_for_pool(pool: Standing, wanted: int) -> Action:
    """Return the one thing to do for a pool of so many seeds of one config."""
    why: Why | None = "spent" if pool.counted >= wanted else "crashing" if _is_crashing(pool) else None
    if why:
        return Stop(why)
    return _open_end(pool, Standing()) or Train(wanted - pool.counted)


def _open_end(ours: Standing, theirs: Standing) -> Action | None:
    """Return what finishes seeds that were begun."""
    if ours.is_running or theirs.is_running:
        return Wait()
    if ours.stuck or theirs.stuck:
        return Stop("stuck")
    if ours.unfinished or theirs.unfinished:
        return Resume(ours.unfinished, theirs.unfinished)
    if ours.unscored or theirs.unscored:
        return Evaluate(ours.unscored, theirs.unscored)
    return None


def _is_crashing(baseline: Standing) -> bool:
    return baseline.crashed > max(2, baseline.counted)


def next_stage(state: State, *, plan: Plan = PLAN) -> Stage | None:
    """Return the first look that is still ahead within `max_seeds`."""
    return next(
        (stage for stage in plan.stages if stage.seeds <= state.max_seeds and _is_ahead(stage, state, plan)), None
    )


def _is_ahead(stage: Stage, state: State, plan: Plan) -> bool:
    return state.candidate.counted < stage.seeds or state.baseline.counted < plan.baseline_seeds(stage)


def _reason_to_stop(state: State, verdict: Verdict) -> Why | None:
    if verdict.verdict == "invalid":
        return "invalid"
    if verdict.verdict != "inconclusive":
        return "decided"
    if verdict.is_futile:
        return "futile"
    if state.is_time_up:
        return "deadline"
    return "crashing" if _is_crashing(state.baseline) else None


def cap(max_seeds: int, *, plan: Plan = PLAN) -> int:
    """Return the largest size within `max_seeds` at which a pair can be decided; 0 where there is none."""
    return max((stage.seeds for stage in plan.deciding if stage.seeds <= max_seeds), default=0)
