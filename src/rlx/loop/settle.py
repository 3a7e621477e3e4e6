"""Settle a pair of runs: train and look by the declared plan until it is decided, futile, spent or out of time.

Everything is on disk: looks, seeds, scores. Whoever is stopped, in whatever way, goes on where it stopped.
What is not covered: two settles of the same pair at once; the second is refused by the first one's supervisor.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from rlx.compare.comparison import Candidate, look
from rlx.compare.looks import PLAN
from rlx.compare.pair import Pair
from rlx.compare.reports import common_fingerprint, stored_reports
from rlx.compare.side import Side, Training
from rlx.compare.verdict import Verdict
from rlx.errors import EvidenceInvalid, JobFailed, UsageError
from rlx.launch import launch
from rlx.launch.resources import Slots
from rlx.loop import entry, step
from rlx.loop.step import Evaluate, Resume, Standing, State, Stop, Train, Why, next_action, next_stage
from rlx.runs import looks
from rlx.runs.reference import Reference
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED, FAILED, RUNNING
from rlx.runs.summary import cpu_seconds, position
from rlx.train.start import SCRIPT_BACKEND

POLL_SECONDS = 0.5
RESUMES = 2
"""How often a seed that the machine keeps killing is resumed before it is left to a person."""
_EXIT_CODES: dict[Why, int] = {
    "invalid": EvidenceInvalid.exit_code, "stuck": JobFailed.exit_code, "crashing": JobFailed.exit_code,
}  # fmt: skip

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


@dataclass(frozen=True)
class Limits:
    """How far to go: seeds a side, and seconds of wall time."""

    max_seeds: int = 24
    seconds: float = float("inf")


@dataclass(frozen=True)
class Settlement:
    """How it ended; `seeds` and `trained` are those that count and those this call trained, by role."""

    why: Why
    base: Run
    candidate: Candidate
    seeds: Mapping[Role, int]
    trained: Mapping[Role, int]
    stuck: Mapping[Role, Sequence[int]]
    cpu_seconds: float
    wall_seconds: float
    max_seeds: int

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES.get(self.why, 0)

    def document(self) -> dict[str, Any]:
        """Return the settlement as JSON-able data."""
        return {
            "baseline": self.base.name,
            **self.candidate.document(),
            "stopped": self.why,
            "max_seeds": self.max_seeds,
            "seeds": dict(self.seeds),
            "trained": dict(self.trained),
            "stuck": {role: list(seeds) for role, seeds in self.stuck.items()},
            "cpu_seconds": round(self.cpu_seconds, 1),
            "wall_seconds": round(self.wall_seconds, 1),
        }


Report = Callable[[Progress], None]


def settle(
    baseline: str, candidate: str, *, root: Path, limits: Limits, report: Report, say: Callable[[str], None]
) -> Settlement:
    """Settle what two names stand for: runs are trained further, configs go on with their run or get a new one."""
    ground = entry.Ground(root)
    entries = [entry.read(text, root=root, ground=ground) for text in (baseline, candidate)]
    against = entry.against(entries[0], entries[1], ground=ground)
    if against:
        raise UsageError("; ".join(one.reason for one in against), hint="rlx config diff shows what differs")
    wanted = PLAN.pool, PLAN.stages[0].seeds
    runs = [one.open(root=root, seeds=seeds) for one, seeds in zip(entries, wanted, strict=True)]
    if runs[0].path == runs[1].path:
        raise UsageError("nothing to settle", hint="name a baseline and a candidate: rlx settle A B")
    for one, run in zip(entries, runs, strict=True):
        if one.experiment is not None:
            say(f"{one.text}: {'goes on with' if one.run else 'a new run,'} {run.name}")
    return Contest(runs[0], runs[1], ground=ground, limits=limits, report=report).settle()


class Contest:
    """Two runs and the protocol they are judged under, while they are being settled."""

    def __init__(
        self, base: Run, new: Run, *, ground: entry.Ground, limits: Limits, report: Report, is_replication: bool = False
    ) -> None:
        self.paths: dict[Role, Path] = {"baseline": base.path, "candidate": new.path}
        self.ground = ground
        self.limits = limits
        self.is_replication = is_replication
        self._report = report
        self._began = time.monotonic()
        self._verdict: Verdict | None = None
        self._resumed: Counter[tuple[Role, int]] = Counter()
        self._before = {role: _ended(self.run(role)) for role in self.paths}

    def run(self, role: Role) -> Run:
        """Return one side as it is on disk now."""
        return Run(self.paths[role])

    def settle(self) -> Settlement:
        """Do what is next until there is nothing; Ctrl-C stops what is training and passes on."""
        try:
            while True:
                pair, candidate = self._look()
                state = self._state(pair)
                action = next_action(state)
                if isinstance(action, step.Look):
                    self._record(pair, candidate)
                elif isinstance(action, Stop):
                    return self._settlement(action.why, state, candidate)
                else:
                    self._act(action, state)
                    self._verdict = None
        except KeyboardInterrupt:
            self._stop()
            raise

    def _look(self) -> tuple[Pair, Candidate]:
        base, new = self.run("baseline"), self.run("candidate")
        return look(base, new, self.fingerprint, is_replication=self.is_replication)

    def _record(self, pair: Pair, candidate: Candidate) -> None:
        with contextlib.suppress(OSError):  # as in `compare`
            looks.record(self.ground.root, [one.record for one in pair.taken])
        self._verdict = candidate.verdict

    def _state(self, pair: Pair) -> State:
        ours, theirs = self._standing("baseline", pair.base), self._standing("candidate", pair.new)
        return State(ours, theirs, self._verdict, self.limits.max_seeds, self._is_time_up())

    def _standing(self, role: Role, side: Side) -> Standing:
        run = self.run(role)
        waiting = [one for one in side.having("pending") if one.state not in (RUNNING, COMPLETED)]
        crashed = side.having("crashed")
        again = [one for one in crashed if role == "baseline" and _may_retry(one, run)]
        unfinished = [one.seed for one in (*waiting, *again)]
        stuck = tuple(seed for seed in unfinished if self._resumed[role, seed] >= RESUMES)
        counts = side.as_baseline() if role == "baseline" else side.as_candidate()
        return Standing(
            counted=len(counts),
            is_running=run.status == RUNNING,
            unfinished=tuple(sorted(unfinished)),
            stuck=stuck,
            unscored=tuple(one.seed for one in side.having("pending") if one.state == COMPLETED),
            crashed=len(crashed) - len(again) if role == "baseline" else 0,
        )

    # What is done

    def _act(self, action: step.Action, state: State) -> None:
        if isinstance(action, Evaluate):
            self._evaluate("baseline", action.baseline)
            self._evaluate("candidate", action.candidate)
        elif isinstance(action, Train):
            added = {"baseline": action.baseline, "candidate": action.candidate}
            self._train({role: _next_seeds(self.run(role), added[role]) for role in self.paths}, state)
        elif isinstance(action, Resume):
            rounds = {"baseline": action.baseline, "candidate": action.candidate}
            self._resumed.update((role, seed) for role in self.paths for seed in rounds[role])
            self._train({role: rounds[role] for role in self.paths}, state)
        else:
            self._follow({role: tuple(seed.number for seed in self.run(role).seeds) for role in self.paths}, "", state)

    def _train(self, rounds: Mapping[Role, tuple[int, ...]], state: State) -> None:
        """Train seeds of either side: together where the machine has room for all of them, else one after the other."""
        wanted = {role: seeds for role, seeds in rounds.items() if seeds}
        together = sum(map(len, wanted.values())) <= Slots.of(self.run("baseline").config).seeds
        for group in [wanted] if together else [{role: seeds} for role, seeds in wanted.items()]:
            if self._is_time_up():
                return
            for role, seeds in group.items():
                self._start(role, seeds)
            names = ", ".join(f"{len(seeds)} seeds of {self.paths[role].name}" for role, seeds in group.items())
            self._follow(group, f"training {names}", state)

    def _start(self, role: Role, seeds: tuple[int, ...]) -> None:
        run = self.run(role)
        self._refuse_changed(run)
        known = {seed.number for seed in run.seeds}
        if known.issuperset(seeds):
            launch.resume(run, seeds)
        else:
            launch.more(run, seeds)

    def _follow(self, rounds: Mapping[Role, tuple[int, ...]], doing: str, state: State) -> None:
        """Stay until these runs have ended, or stop them when the time is up; tell how it goes."""
        goal = next_stage(state)
        words = " ".join(
            filter(None, [doing or "waiting for what is training", f"for the look at {goal.seeds}" if goal else ""])
        )
        pace = _Pace()
        scored, leaning = -1, state.verdict
        while True:
            runs = {role: self.run(role) for role in rounds}
            ended = sum(seed.status.state == COMPLETED for run in runs.values() for seed in run.seeds)
            if ended != scored:
                scored, leaning = ended, self._look()[1].verdict
            done = [_share(run.seed(seed), run) for role, run in runs.items() for seed in rounds[role]]
            share = sum(done) / len(done) if done else 1.0
            self._report(Progress(words, share, pace.eta(share), self._cpu(), time.monotonic() - self._began, leaning))
            if all(run.status != RUNNING for run in runs.values()):
                return
            if self._is_time_up():
                self._stop()
                return
            time.sleep(POLL_SECONDS)

    def _evaluate(self, role: Role, seeds: tuple[int, ...]) -> None:
        from rlx.evaluate.measure import measure, protocol_for

        run, base = self.run(role), self.run("baseline")
        if seeds:
            self._refuse_changed(run)
        for number, seed in enumerate(seeds):
            doing = f"evaluating seed {seed} of {run.name} under the protocol of {base.name}"
            wall = time.monotonic() - self._began
            self._report(Progress(doing, number / len(seeds), None, self._cpu(), wall, self._verdict))
            reference = Reference(run, seed=seed)
            for _ in measure(reference, protocol_for(reference, root=self.ground.root, like=base), seed=seed):
                pass

    def _stop(self) -> None:
        for role in self.paths:
            if self.run(role).status == RUNNING:
                launch.stop(self.run(role))

    def _refuse_changed(self, run: Run) -> None:
        again = " ".join(entry.snapshot(self.run(role)) for role in self.paths)
        self.ground.refuse_changed(run, again=f"rlx settle {again}")

    # What is known

    @cached_property
    def fingerprint(self) -> str:
        """The baseline's own protocol; where code changed since, what both were scored under then."""
        from rlx.evaluate.measure import protocol_for

        base, new = self.run("baseline"), self.run("candidate")
        if self.ground.changes(base) or self.ground.changes(new):
            shared = common_fingerprint([stored_reports(base), stored_reports(new)])
            if shared is not None:
                return shared
        return protocol_for(Reference(base), root=self.ground.root).fingerprint()

    def _is_time_up(self) -> bool:
        return time.monotonic() - self._began >= self.limits.seconds

    def _cpu(self) -> float:
        return sum(cpu_seconds(seed) or 0.0 for role in self.paths for seed in self.run(role).seeds)

    def _settlement(self, why: Why, state: State, candidate: Candidate) -> Settlement:
        standings: dict[Role, Standing] = {"baseline": state.baseline, "candidate": state.candidate}
        return Settlement(
            why=why,
            base=self.run("baseline"),
            candidate=candidate,
            seeds={role: standing.counted for role, standing in standings.items()},
            trained={role: len(_ended(self.run(role)) - self._before[role]) for role in self.paths},
            stuck={role: standing.stuck for role, standing in standings.items()},
            cpu_seconds=self._cpu(),
            wall_seconds=time.monotonic() - self._began,
            max_seeds=self.limits.max_seeds,
        )


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
    if training.state != FAILED or run.metadata.get("backend") == SCRIPT_BACKEND:
        return False
    failures = [event for event in run.seed(training.seed).events if event.get("event") == FAILED]
    return len(failures) < 2


def _next_seeds(run: Run, count: int) -> tuple[int, ...]:
    first = max((seed.number for seed in run.seeds), default=-1) + 1
    return tuple(range(first, first + count))
