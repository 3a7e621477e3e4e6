"""Those who train and score runs for a use case: starts seeds, stays with them, tells how it goes, stops cleanly.

The baseline's protocol is everybody's. A run whose code or versions changed since is not trained any further.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlx.compare.ground import Ground
from rlx.compare.side import Side, Training
from rlx.compare.verdict import Verdict
from rlx.figures import counted
from rlx.launch import launch
from rlx.launch.resources import Slots
from rlx.loop.step import Action, Evaluate, Resume, Standing, Train
from rlx.runs.reference import Reference
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED, FAILED, RUNNING
from rlx.runs.summary import costs, position

POLL_SECONDS = 0.5
RESUMES = 2
"""How often a seed that the machine keeps killing is started before it is left to a person."""

Role = Literal["baseline", "candidate"]


@dataclass(frozen=True)
class Progress:
    """What is being done, how far it is, what it has cost, and where the pair leans meanwhile."""

    doing: str
    share: float
    eta_seconds: float | None
    cpu_seconds: float
    wall_seconds: float
    verdict: Verdict | None


Report = Callable[[Progress], None]


class Crew:
    """Trains one or two runs; `again` is the command that trains them anew where their code has changed."""

    def __init__(
        self, runs: Mapping[Role, Run], *, ground: Ground, report: Report, again: str, seconds: float = float("inf")
    ) -> None:
        self.paths: dict[Role, Path] = {role: run.path for role, run in runs.items()}
        self.ground = ground
        self._report = report
        self._again = again
        self._seconds = seconds
        self._began = time.monotonic()
        self._started: Counter[tuple[Role, int]] = Counter()
        self._before = {role: _ended(run) for role, run in runs.items()}

    # What is known

    def run(self, role: Role) -> Run:
        """Return one side as it is on disk now."""
        return Run(self.paths[role])

    def is_time_up(self) -> bool:
        return self.wall_seconds() >= self._seconds

    def wall_seconds(self) -> float:
        return time.monotonic() - self._began

    def cpu_seconds(self) -> float:
        """Return the CPU time of every seed of these runs, as far as it was measured."""
        return sum(cost.cpu_seconds or 0.0 for role in self.paths for cost in costs(self.run(role)).values())

    def trained(self) -> dict[Role, int]:
        """Return how many seeds have ended since the start."""
        return {role: len(_ended(self.run(role)) - self._before[role]) for role in self.paths}

    def standing(self, role: Role, side: Side) -> Standing:
        """Return what there is of a side and what is missing."""
        run = self.run(role)
        waiting = [one for one in side.having("pending") if one.state not in (RUNNING, COMPLETED)]
        crashed = side.having("crashed") if role == "baseline" else []
        again = [one for one in crashed if _may_retry(one, run)]
        unfinished = sorted(one.seed for one in (*waiting, *again))
        return Standing(
            counted=len(side.as_baseline() if role == "baseline" else side.as_candidate()),
            is_running=run.status == RUNNING,
            unfinished=tuple(unfinished),
            stuck=tuple(seed for seed in unfinished if self._started[role, seed] >= RESUMES),
            unscored=tuple(one.seed for one in side.having("pending") if one.state == COMPLETED),
            crashed=len(crashed) - len(again),
        )

    # What is done

    def act(self, action: Action, *, purpose: str, leaning: Callable[[], Verdict | None]) -> None:
        """Train, resume, evaluate or wait, as the action says, and report meanwhile."""
        if isinstance(action, Evaluate):
            self._evaluate("baseline", action.baseline, leaning())
            self._evaluate("candidate", action.candidate, leaning())
            return
        if isinstance(action, Train):
            added = {"baseline": action.baseline, "candidate": action.candidate}
            rounds = {role: _next_seeds(self.run(role), added[role]) for role in self.paths}
        elif isinstance(action, Resume):
            begun = {"baseline": action.baseline, "candidate": action.candidate}
            rounds = {role: begun[role] for role in self.paths}
        else:
            everything = {role: tuple(seed.number for seed in self.run(role).seeds) for role in self.paths}
            self._follow(everything, f"waiting for what is training {purpose}", leaning)
            return
        self._train({role: seeds for role, seeds in rounds.items() if seeds}, purpose, leaning)

    def stop(self) -> None:
        """Stop whatever trains; its seeds save `latest`."""
        for role in self.paths:
            if self.run(role).status == RUNNING:
                launch.stop(self.run(role))

    def _train(
        self, rounds: Mapping[Role, tuple[int, ...]], purpose: str, leaning: Callable[[], Verdict | None]
    ) -> None:
        """Train seeds of either side: together where the machine has room for all of them, else one after the other."""
        together = sum(map(len, rounds.values())) <= len(Slots.of(self.run("baseline").config).places)
        for group in [rounds] if together else [{role: seeds} for role, seeds in rounds.items()]:
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
            launch.more(run, seeds)

    def _follow(
        self, rounds: Mapping[Role, tuple[int, ...]], doing: str, leaning: Callable[[], Verdict | None]
    ) -> None:
        """Stay until these runs have ended, or stop them when the time is up; tell how it goes."""
        pace, ended, verdict = _Pace(), -1, None
        while True:
            runs = {role: self.run(role) for role in rounds}
            now = sum(seed.status.state == COMPLETED for run in runs.values() for seed in run.seeds)
            if now != ended:
                ended, verdict = now, leaning()
            done = [_share(run.seed(seed), run) for role, run in runs.items() for seed in rounds[role]]
            share = sum(done) / len(done) if done else 1.0
            self._report(Progress(doing, share, pace.eta(share), self.cpu_seconds(), self.wall_seconds(), verdict))
            if all(run.status != RUNNING for run in runs.values()):
                return
            if self.is_time_up():
                self.stop()
                return
            time.sleep(POLL_SECONDS)

    def _evaluate(self, role: Role, seeds: tuple[int, ...], verdict: Verdict | None) -> None:
        from rlx.evaluate.measure import measure, protocol_for

        if not seeds:
            return
        run, base = self.run(role), self.run("baseline")
        self.ground.refuse_changed(run, again=self._again)
        for number, seed in enumerate(seeds):
            doing = f"evaluating seed {seed} of {run.name} under the protocol of {base.name}"
            cost = self.cpu_seconds(), self.wall_seconds()
            self._report(Progress(doing, number / len(seeds), None, *cost, verdict))
            reference = Reference(run, seed=seed)
            for _ in measure(reference, protocol_for(reference, root=self.ground.root, like=base), seed=seed):
                pass


class _Pace:
    """The time left, from how fast the share done has grown since the start."""

    def __init__(self) -> None:
        self._start: tuple[float, float] | None = None

    def eta(self, share: float) -> float | None:
        now = time.monotonic()
        if self._start is None:
            self._start = now, share
        then, first = self._start
        return (now - then) * (1 - share) / (share - first) if share > first else None


def _share(seed: Seed, run: Run) -> float:
    if seed.status.state in (COMPLETED, FAILED):
        return 1.0
    return min(1.0, position(seed)[0] / run.planned_steps) if run.planned_steps else 0.0


def _ended(run: Run) -> set[int]:
    return {seed.number for seed in run.seeds if seed.status.state in (COMPLETED, FAILED)}


def _may_retry(training: Training, run: Run) -> bool:
    """Say whether a crashed seed of the baseline gets its one second chance."""
    if training.state != FAILED or run.is_script:
        return False
    failures = [event for event in run.seed(training.seed).events if event.get("event") == FAILED]
    return len(failures) < 2


def _next_seeds(run: Run, count: int) -> tuple[int, ...]:
    first = max((seed.number for seed in run.seeds), default=-1) + 1
    return tuple(range(first, first + count))
