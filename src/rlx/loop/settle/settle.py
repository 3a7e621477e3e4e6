"""Settle a pair of runs: train and look by the declared plan until it is decided, futile, spent or out of time.

Looks, seeds and scores are all on disk. A settle that was stopped or killed continues at the same point.
Not covered: two settles of the same pair at once; the supervisor of the first refuses the second.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlx.command import rlx
from rlx.compare.code_version import CurrentCode
from rlx.compare.comparison import CandidateVerdict, look
from rlx.compare.interim_plan import PLAN
from rlx.compare.pair import Pair
from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.compare.stored_scores import required_scores, shared_fingerprints, stored_scores
from rlx.compare.verdict import Verdict
from rlx.errors import EvidenceInvalid, JobFailed, UsageError
from rlx.loop.settle import plan, run_or_config
from rlx.loop.settle.plan import ArmProgress, Finish, PairState, Why, next_action, next_stage
from rlx.loop.settle.train_seeds import Report, Role, SeedTrainer
from rlx.runs import interim_looks
from rlx.runs.run import Run
from rlx.runs.run_reference import Reference

_EXIT_CODES: dict[Why, int] = {
    "invalid": EvidenceInvalid.exit_code,
    "stuck": JobFailed.exit_code,
    "crashing": JobFailed.exit_code,
}


@dataclass(frozen=True)
class Limits:
    """The question of a settle and its limits: seeds per side, and seconds of wall time.

    `overrides` are settings (`KEY=VALUE`) of the candidate's config.
    """

    max_seeds: int = 24
    seconds: float = float("inf")
    question: ComparisonQuestion = STANDARD
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settlement:
    """The result: `seeds` counts the seeds that count, `trained` those that this call trained, by role."""

    why: Why
    base: Run
    candidate: CandidateVerdict
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
    """Settle two runs or configs: runs are trained further, configs continue their run or get a new one."""
    ground = CurrentCode(root, is_reuse=limits.question.is_reuse)
    entries = [
        run_or_config.read(baseline, root=root, ground=ground),
        run_or_config.read(candidate, root=root, ground=ground, overrides=limits.overrides),
    ]
    for entry in entries:
        if entry.run and entry.run.is_script:
            why = f"your own script trains {entry.run.name}, and rlx cannot run it"
            raise UsageError(why, hint="score its seeds in the script, run.evaluate(policy); then rlx compare A B")
        refuse_unscorable(entry, limits.question)
    objections = run_or_config.objections_before_training(
        entries[0], entries[1], ground=ground, question=limits.question
    )
    if objections:
        hint = str(rlx("config", "diff", baseline, candidate))
        if all(objection.is_budget for objection in objections):
            settings = [word for override in limits.overrides for word in ("-s", override)]
            hint = str(rlx("settle", baseline, candidate, *settings, "--budget-question"))
        raise UsageError("; ".join(objection.reason for objection in objections), hint=hint)
    runs = [entries[0].open(root=root, seeds=PLAN.pool), entries[1].open(root=root, seeds=PLAN.stages[0].seeds)]
    if runs[0].path == runs[1].path:
        raise UsageError("nothing to settle", hint="name a baseline and a candidate: rlx settle A B")
    for entry, run in zip(entries, runs, strict=True):
        if entry.run is not None and entry.experiment is not None:
            say(f"{entry.text}: continues {run.name}")
        elif entry.experiment is not None:
            say(f"{entry.text}: a new run, {run.name}")
            for why in run_or_config.reasons_not_reused(entry.experiment, root=root, ground=ground):
                say(f"note: {why}")
    return Contest(runs[0], runs[1], ground=ground, limits=limits, report=report).settle()


def refuse_unscorable(entry: run_or_config.RunOrConfig, question: ComparisonQuestion) -> None:
    """Raise if the seeds of a run or config cannot get a score that answers the question."""
    if entry.is_opaque and question.metric is None:
        why = f"your own command trains {entry.name}, and rlx cannot open its checkpoints"
        raise UsageError(why, hint="judge a metric that it logs: --metric TAG")
    if question.metric is not None and entry.run and any(seed.rows for seed in entry.run.seeds):
        required_scores(entry.run, question)


def refuse_unlogged(trainer: SeedTrainer, action: plan.Action, question: ComparisonQuestion) -> None:
    """Raise if a seed has ended without a value of the metric in question: rlx cannot evaluate it."""
    if question.metric is None or not isinstance(action, plan.Evaluate):
        return
    seeds: dict[Role, tuple[int, ...]] = {"baseline": action.baseline, "candidate": action.candidate}
    for role, numbers in seeds.items():
        for number in numbers:
            run = trainer.run(role)
            known = ", ".join(run.metric_names()) or "nothing"
            why = f"seed {number} of {run.name} is complete and has not logged `{question.metric}`"
            raise EvidenceInvalid(why, hint=f"it logged {known}")


class Contest:
    """Two runs that are being settled under one protocol."""

    def __init__(
        self, base: Run, new: Run, *, ground: CurrentCode, limits: Limits, report: Report, is_replication: bool = False
    ) -> None:
        runs: dict[Role, Run] = {"baseline": base, "candidate": new}
        snapshots = [run_or_config.snapshot(run) for run in runs.values()]
        again = f"rlx settle {' '.join(snapshots)}"
        if is_replication:
            again = f"rlx noise {snapshots[0]} --aa"
        self.trainer = SeedTrainer(runs, ground=ground, report=report, again=again, seconds=limits.seconds)
        self.limits = limits
        self.is_replication = is_replication
        self._verdict: Verdict | None = None

    def settle(self) -> Settlement:
        """Take the next action until there is none; Ctrl-C stops the training and is raised again."""
        try:
            while True:
                pair, candidate = self.look()
                state = self._state(pair)
                action = next_action(state)
                if isinstance(action, plan.Look):
                    self._record(pair, candidate)
                elif isinstance(action, Finish):
                    return self._settlement(action.why, state, candidate)
                else:
                    refuse_unlogged(self.trainer, action, self.limits.question)
                    purpose = ""
                    goal = next_stage(state)
                    if goal:
                        purpose = f"for the look at {goal.seeds}"
                    self.trainer.act(action, purpose=purpose, leaning=lambda: self.look()[1].verdict)
                    self._verdict = None
        except (KeyboardInterrupt, EvidenceInvalid):
            self.trainer.stop()
            raise

    def look(self) -> tuple[Pair, CandidateVerdict]:
        """Judge the pair on the present scores, without recording it."""
        base = self.trainer.run("baseline")
        new = self.trainer.run("candidate")
        return look(base, new, self.fingerprint, is_replication=self.is_replication, question=self.limits.question)

    @cached_property
    def fingerprint(self) -> str:
        """The baseline's protocol; if the code has changed, the protocol under which both were scored before."""
        from rlx.evaluate.measure import protocol_for

        if self.limits.question.metric is not None:
            return self.limits.question.fingerprint
        base = self.trainer.run("baseline")
        new = self.trainer.run("candidate")
        if self.trainer.ground.changes(base) or self.trainer.ground.changes(new):
            own = [base.own_protocol, new.own_protocol]
            shared = shared_fingerprints([stored_scores(base), stored_scores(new)], own)
            if shared:
                return shared[0]
        return protocol_for(Reference(base), root=self.trainer.ground.root).fingerprint()

    def _record(self, pair: Pair, candidate: CandidateVerdict) -> None:
        with contextlib.suppress(OSError):  # a read-only project can still be compared
            interim_looks.record(self.trainer.ground.root, [taken.record for taken in pair.taken])
        self._verdict = candidate.verdict

    def _state(self, pair: Pair) -> PairState:
        baseline = self.trainer.progress("baseline", pair.base)
        candidate = self.trainer.progress("candidate", pair.new)
        return PairState(baseline, candidate, self._verdict, self.limits.max_seeds, self.trainer.is_time_up())

    def _settlement(self, why: Why, state: PairState, candidate: CandidateVerdict) -> Settlement:
        arms: dict[Role, ArmProgress] = {"baseline": state.baseline, "candidate": state.candidate}
        return Settlement(
            why=why,
            base=self.trainer.run("baseline"),
            candidate=candidate,
            seeds={role: arm.counted for role, arm in arms.items()},
            trained=self.trainer.trained(),
            stuck={role: arm.stuck for role, arm in arms.items()},
            cpu_seconds=self.trainer.cpu_seconds(),
            wall_seconds=self.trainer.wall_seconds(),
            max_seeds=self.limits.max_seeds,
        )
