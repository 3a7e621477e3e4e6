"""Settle a pair of runs: train and look by the declared plan until it is decided, futile, spent or out of time.

Everything is on disk: looks, seeds, scores. Whoever is stopped, in whatever way, goes on where it stopped.
What is not covered: two settles of the same pair at once; the second is refused by the first one's supervisor.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlx.compare.comparison import Candidate, look
from rlx.compare.ground import Ground
from rlx.compare.looks import PLAN
from rlx.compare.pair import Pair
from rlx.compare.reports import shared_fingerprints, stored_reports
from rlx.compare.verdict import Verdict
from rlx.errors import EvidenceInvalid, JobFailed, UsageError
from rlx.loop import entry, step
from rlx.loop.crew import Crew, Report, Role
from rlx.loop.step import Standing, State, Stop, Why, next_action, next_stage
from rlx.runs import looks
from rlx.runs.reference import Reference
from rlx.runs.run import Run

_EXIT_CODES: dict[Why, int] = {
    "invalid": EvidenceInvalid.exit_code, "stuck": JobFailed.exit_code, "crashing": JobFailed.exit_code,
}  # fmt: skip


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


def settle(
    baseline: str, candidate: str, *, root: Path, limits: Limits, report: Report, say: Callable[[str], None]
) -> Settlement:
    """Settle what two names stand for: runs are trained further, configs go on with their run or get a new one."""
    ground = Ground(root)
    entries = [entry.read(text, root=root, ground=ground) for text in (baseline, candidate)]
    for one in entries:
        if one.run and one.run.is_script:
            why = f"{one.run.name} is trained by a script of your own, which rlx cannot run"
            raise UsageError(why, hint="score its seeds in the script, run.evaluate(policy); then rlx compare A B")
    against = entry.against(entries[0], entries[1], ground=ground)
    if against:
        compared = shlex.join(["rlx", "config", "diff", baseline, candidate])
        raise UsageError("; ".join(one.reason for one in against), hint=compared)
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
        self, base: Run, new: Run, *, ground: Ground, limits: Limits, report: Report, is_replication: bool = False
    ) -> None:
        runs: dict[Role, Run] = {"baseline": base, "candidate": new}
        snapshots = [entry.snapshot(run) for run in runs.values()]
        again = f"rlx noise {snapshots[0]} --aa" if is_replication else f"rlx settle {' '.join(snapshots)}"
        self.crew = Crew(runs, ground=ground, report=report, again=again, seconds=limits.seconds)
        self.limits = limits
        self.is_replication = is_replication
        self._verdict: Verdict | None = None

    def settle(self) -> Settlement:
        """Do what is next until there is nothing; Ctrl-C stops what is training and passes on."""
        try:
            while True:
                pair, candidate = self.look()
                state = self._state(pair)
                action = next_action(state)
                if isinstance(action, step.Look):
                    self._record(pair, candidate)
                elif isinstance(action, Stop):
                    return self._settlement(action.why, state, candidate)
                else:
                    goal = next_stage(state)
                    purpose = f"for the look at {goal.seeds}" if goal else ""
                    self.crew.act(action, purpose=purpose, leaning=lambda: self.look()[1].verdict)
                    self._verdict = None
        except KeyboardInterrupt:
            self.crew.stop()
            raise

    def look(self) -> tuple[Pair, Candidate]:
        """Judge the pair on what there is, without recording it."""
        base, new = self.crew.run("baseline"), self.crew.run("candidate")
        return look(base, new, self.fingerprint, is_replication=self.is_replication)

    @cached_property
    def fingerprint(self) -> str:
        """The baseline's own protocol; where code changed since, what both were scored under then."""
        from rlx.evaluate.measure import protocol_for

        base, new = self.crew.run("baseline"), self.crew.run("candidate")
        if self.crew.ground.changes(base) or self.crew.ground.changes(new):
            own = [base.own_protocol, new.own_protocol]
            shared = shared_fingerprints([stored_reports(base), stored_reports(new)], own)
            if shared:
                return shared[0]
        return protocol_for(Reference(base), root=self.crew.ground.root).fingerprint()

    def _record(self, pair: Pair, candidate: Candidate) -> None:
        with contextlib.suppress(OSError):  # as in `compare`
            looks.record(self.crew.ground.root, [one.record for one in pair.taken])
        self._verdict = candidate.verdict

    def _state(self, pair: Pair) -> State:
        ours, theirs = self.crew.standing("baseline", pair.base), self.crew.standing("candidate", pair.new)
        return State(ours, theirs, self._verdict, self.limits.max_seeds, self.crew.is_time_up())

    def _settlement(self, why: Why, state: State, candidate: Candidate) -> Settlement:
        standings: dict[Role, Standing] = {"baseline": state.baseline, "candidate": state.candidate}
        return Settlement(
            why=why,
            base=self.crew.run("baseline"),
            candidate=candidate,
            seeds={role: standing.counted for role, standing in standings.items()},
            trained=self.crew.trained(),
            stuck={role: standing.stuck for role, standing in standings.items()},
            cpu_seconds=self.crew.cpu_seconds(),
            wall_seconds=self.crew.wall_seconds(),
            max_seeds=self.limits.max_seeds,
        )
