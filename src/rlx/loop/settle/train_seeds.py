"""Train and score the seeds of one or two runs: start them, follow them, report progress, stop cleanly.

All runs are scored under the baseline's protocol. A run whose code or versions have changed is not trained further.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlx.compare.arms import Arm, Training
from rlx.compare.code_version import CurrentCode
from rlx.compare.verdict import Verdict
from rlx.launch import launch
from rlx.launch.resources import Slots
from rlx.loop.settle.plan import Action, ArmProgress, Evaluate, Resume, Train
from rlx.number_format import counted
from rlx.runs.job_folder import LOCAL
from rlx.runs.run import Run, Seed
from rlx.runs.run_reference import Reference
from rlx.runs.status import COMPLETED, FAILED, RUNNING
from rlx.runs.summary import costs, position

POLL_SECONDS = 0.5
RESUMES = 2
"""How often rlx restarts a killed seed before it leaves it to a person."""

Role = Literal["baseline", "candidate"]


@dataclass(frozen=True)
class SettleProgress:
    """The present activity, its share done, its cost so far, and the present verdict."""

    doing: str
    share: float
    eta_seconds: float | None
    cpu_seconds: float
    wall_seconds: float
    verdict: Verdict | None


Report = Callable[[SettleProgress], None]


class SeedTrainer:
    """Trains one or two runs; `again` is the command that retrains them if their code has changed."""

    def __init__(
        self, runs: Mapping[Role, Run], *, ground: CurrentCode, report: Report, again: str, seconds: float = math.inf
    ) -> None:
        self.paths: dict[Role, Path] = {role: run.path for role, run in runs.items()}
        self.ground = ground
        self._report = report
        self._again = again
        self._seconds = seconds
        self._began = time.monotonic()
        self._started: Counter[tuple[Role, int]] = Counter()
        self._before = {role: _ended(run) for role, run in runs.items()}

    # State

    def run(self, role: Role) -> Run:
        """Return one side as it is now on disk."""
        return Run(self.paths[role])

    def is_time_up(self) -> bool:
        return self.wall_seconds() >= self._seconds

    def wall_seconds(self) -> float:
        return time.monotonic() - self._began

    def cpu_seconds(self) -> float:
        """Return the summed CPU time of all seeds, as far as it was measured."""
        return sum(cost.cpu_seconds or 0.0 for role in self.paths for cost in costs(self.run(role)).values())

    def trained(self) -> dict[Role, int]:
        """Return the number of seeds that have ended since the start, by role."""
        return {role: len(_ended(self.run(role)) - self._before[role]) for role in self.paths}

    def progress(self, role: Role, side: Arm) -> ArmProgress:
        """Return the seeds of a side that count, and those that are missing."""
        run = self.run(role)
        pending = side.having("pending")
        waiting = [training for training in pending if training.state not in (RUNNING, COMPLETED)]
        scores = side.as_candidate()
        crashed: list[Training] = []
        if role == "baseline":  # a candidate's crash counts as a score, so it is not repeated
            scores = side.as_baseline()
            crashed = list(side.having("crashed"))
        retried = [training for training in crashed if _may_retry(training, run)]
        unfinished = sorted(training.seed for training in (*waiting, *retried))
        return ArmProgress(
            counted=len(scores),
            is_running=launch.is_active(run),
            unfinished=tuple(unfinished),
            stuck=tuple(seed for seed in unfinished if self._started[role, seed] >= RESUMES),
            unscored=tuple(training.seed for training in pending if training.state == COMPLETED),
            crashed=len(crashed) - len(retried),
        )

    # Actions

    def act(self, action: Action, *, purpose: str, leaning: Callable[[], Verdict | None]) -> None:
        """Train, resume, evaluate or wait, and report progress."""
        if isinstance(action, Evaluate):
            self._evaluate("baseline", action.baseline, leaning())
            self._evaluate("candidate", action.candidate, leaning())
            return
        if isinstance(action, Train):
            added = {"baseline": action.baseline, "candidate": action.candidate}
            rounds = {role: _next_seeds(self.run(role), added[role]) for role in self.paths}
        elif isinstance(action, Resume):
            started = {"baseline": action.baseline, "candidate": action.candidate}
            rounds = {role: started[role] for role in self.paths}
        else:
            all_seeds = {role: tuple(seed.number for seed in self.run(role).seeds) for role in self.paths}
            self._follow(all_seeds, f"waiting for the seeds in training {purpose}", leaning)
            return
        self._train({role: seeds for role, seeds in rounds.items() if seeds}, purpose, leaning)

    def stop(self) -> None:
        """Stop the runs that are training; their seeds save `latest`."""
        for role in self.paths:
            if launch.is_active(self.run(role)):
                launch.stop(self.run(role))

    def _train(
        self, rounds: Mapping[Role, tuple[int, ...]], purpose: str, leaning: Callable[[], Verdict | None]
    ) -> None:
        """Train the seeds of both sides: together if the machine has room, else one side after the other."""
        groups = [rounds]
        is_local = launch.executor_for(self.run("baseline")) == LOCAL
        if is_local and sum(map(len, rounds.values())) > len(Slots.of(self.run("baseline").config).places):
            groups = [{role: seeds} for role, seeds in rounds.items()]
        for group in groups:
            if self.is_time_up():
                return
            for role, seeds in group.items():
                self._start(role, seeds)
            names = ", ".join(
                f"{counted(len(seeds), 'seed')} of {self.paths[role].name}" for role, seeds in group.items()
            )
            self._follow(group, f"training {names} {purpose}", leaning)

    def _start(self, role: Role, seeds: tuple[int, ...]) -> None:
        run = self.run(role)
        self.ground.refuse_changed(run, again=self._again)
        self._started.update((role, seed) for seed in seeds)
        known = {seed.number for seed in run.seeds}
        if known.issuperset(seeds):
            launch.resume(run, seeds)
        else:
            launch.add_seeds(run, seeds, is_anyway=self.ground.is_reuse)

    def _follow(
        self, rounds: Mapping[Role, tuple[int, ...]], doing: str, leaning: Callable[[], Verdict | None]
    ) -> None:
        """Report progress until these runs have ended; stop them when the time is up."""
        pace = _Pace()
        ended = -1
        verdict = None
        while True:
            runs = {role: self.run(role) for role in rounds}
            now = sum(seed.status.state == COMPLETED for run in runs.values() for seed in run.seeds)
            if now != ended:
                ended = now
                verdict = leaning()
            shares = [_share(run.seed(seed), run) for role, run in runs.items() for seed in rounds[role]]
            share = sum(shares) / max(1, len(shares))
            cost = (self.cpu_seconds(), self.wall_seconds())
            self._report(SettleProgress(doing, share, pace.eta(share), *cost, verdict))
            if not any(launch.is_active(run) for run in runs.values()):
                return
            if self.is_time_up():
                self.stop()
                return
            time.sleep(POLL_SECONDS)

    def _evaluate(self, role: Role, seeds: tuple[int, ...], verdict: Verdict | None) -> None:
        from rlx.evaluate.measure import measure, protocol_for

        if not seeds:
            return
        run = self.run(role)
        base = self.run("baseline")
        self.ground.refuse_changed(run, again=self._again)
        for number, seed in enumerate(seeds):
            doing = f"evaluating seed {seed} of {run.name} under the protocol of {base.name}"
            cost = (self.cpu_seconds(), self.wall_seconds())
            self._report(SettleProgress(doing, number / len(seeds), None, *cost, verdict))
            reference = Reference(run, seed=seed)
            for _ in measure(reference, protocol_for(reference, root=self.ground.root, like=base), seed=seed):
                pass


class _Pace:
    """The remaining time, from the growth of the finished share since the start."""

    def __init__(self) -> None:
        self._start: tuple[float, float] | None = None

    def eta(self, share: float) -> float | None:
        now = time.monotonic()
        if self._start is None:
            self._start = (now, share)
        then, first = self._start
        if share <= first:
            return None
        return (now - then) * (1 - share) / (share - first)


def _share(seed: Seed, run: Run) -> float:
    if seed.status.state in (COMPLETED, FAILED):
        return 1.0
    if not run.planned_steps:
        return 0.0
    return min(1.0, position(seed)[0] / run.planned_steps)


def _ended(run: Run) -> set[int]:
    return {seed.number for seed in run.seeds if seed.status.state in (COMPLETED, FAILED)}


def _may_retry(training: Training, run: Run) -> bool:
    """Return whether a crashed seed of the baseline may be retried; it may once."""
    if training.state != FAILED or run.is_script:
        return False
    failures = [event for event in run.seed(training.seed).events if event.get("event") == FAILED]
    return len(failures) < 2


def _next_seeds(run: Run, count: int) -> tuple[int, ...]:
    first = max((seed.number for seed in run.seeds), default=-1) + 1
    return tuple(range(first, first + count))
