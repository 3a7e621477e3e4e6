"""The next action while a pair of runs is being settled: look, wait, resume, evaluate, train or stop; pure.

The looks of `compare.interim_plan` are taken in order. Both sides first get what the next look needs, so every trained
seed leads to a look. If there are several things to do, the one that loses least comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlx.compare.interim_plan import PLAN, InterimPlan, LookStage
from rlx.compare.verdict import Verdict

Why = Literal["decided", "futile", "spent", "deadline", "invalid", "stuck", "crashing"]


@dataclass(frozen=True)
class ArmProgress:
    """One side so far: how many seeds count, and which are still missing.

    `unfinished` seeds were stopped, killed or never started, or crashed for the first time on the baseline's side.
    `stuck` seeds were resumed and ended that way again. `unscored` seeds are complete and have no score under the
    protocol. `crashed` counts the seeds that are left out for good.
    """

    counted: int = 0
    is_running: bool = False
    unfinished: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()
    unscored: tuple[int, ...] = ()
    crashed: int = 0


@dataclass(frozen=True)
class PairState:
    """A pair being settled; `verdict` is None if seeds have ended since the last look."""

    baseline: ArmProgress
    candidate: ArmProgress
    verdict: Verdict | None = None
    max_seeds: int = PLAN.stages[-1].seeds
    is_time_up: bool = False


@dataclass(frozen=True)
class Look:
    """Judge the pair on the present scores."""


@dataclass(frozen=True)
class Wait:
    """Another process is training these runs."""


@dataclass(frozen=True)
class Resume:
    """Continue seeds that were started, or start prepared ones."""

    baseline: tuple[int, ...] = ()
    candidate: tuple[int, ...] = ()


@dataclass(frozen=True)
class Evaluate:
    """Score final policies under the protocol of the pair."""

    baseline: tuple[int, ...] = ()
    candidate: tuple[int, ...] = ()


@dataclass(frozen=True)
class Train:
    """Train this many further seeds of each side."""

    baseline: int = 0
    candidate: int = 0


@dataclass(frozen=True)
class Finish:
    """Stop: there is nothing more to do, and why."""

    why: Why


Action = Look | Wait | Resume | Evaluate | Train | Finish


def next_action(state: PairState, *, plan: InterimPlan = PLAN) -> Action:
    """Return the next action for a pair."""
    if state.verdict is None:
        return Look()
    why = _reason_to_stop(state, state.verdict)
    if why:
        return Finish(why)
    unfinished = _finish_started_seeds(state.baseline, state.candidate)
    if unfinished:
        return unfinished
    goal = next_stage(state, plan=plan)
    if goal is None:
        return Finish("spent")
    baseline_seeds = plan.baseline_seeds(goal) - state.baseline.counted
    return Train(max(0, baseline_seeds), max(0, goal.seeds - state.candidate.counted))


def next_for_pool(pool: ArmProgress, seeds: int) -> Action:
    """Return the next action for a pool of `seeds` seeds of one config."""
    if pool.counted >= seeds:
        return Finish("spent")
    if _is_crashing(pool):
        return Finish("crashing")
    return _finish_started_seeds(pool, ArmProgress()) or Train(seeds - pool.counted)


def _finish_started_seeds(baseline: ArmProgress, candidate: ArmProgress) -> Action | None:
    if baseline.is_running or candidate.is_running:
        return Wait()
    if baseline.stuck or candidate.stuck:
        return Finish("stuck")
    if baseline.unfinished or candidate.unfinished:
        return Resume(baseline.unfinished, candidate.unfinished)
    if baseline.unscored or candidate.unscored:
        return Evaluate(baseline.unscored, candidate.unscored)
    return None


def _is_crashing(baseline: ArmProgress) -> bool:
    return baseline.crashed > max(2, baseline.counted)


def next_stage(state: PairState, *, plan: InterimPlan = PLAN) -> LookStage | None:
    """Return the next look within `max_seeds`, if there is one."""
    for stage in plan.stages:
        has_seeds = state.candidate.counted >= stage.seeds and state.baseline.counted >= plan.baseline_seeds(stage)
        if stage.seeds <= state.max_seeds and not has_seeds:
            return stage
    return None


def _reason_to_stop(state: PairState, verdict: Verdict) -> Why | None:
    if verdict.verdict == "invalid":
        return "invalid"
    if verdict.verdict != "inconclusive":
        return "decided"
    if verdict.is_futile:
        return "futile"
    if state.is_time_up:
        return "deadline"
    if _is_crashing(state.baseline):
        return "crashing"
    return None


def cap(max_seeds: int, *, plan: InterimPlan = PLAN) -> int:
    """Return the largest number of seeds within `max_seeds` at which a pair can be decided; 0 if there is none."""
    return max((stage.seeds for stage in plan.deciding if stage.seeds <= max_seeds), default=0)
