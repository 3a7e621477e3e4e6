"""The noise of a config: a pool of its seeds, the cost of comparing with it, and an A/A test of the whole path.

A pool is a run: a config continues its existing run (see `run_or_config`), so nothing is trained twice. A replication
(A/A) trains the same config on unused seeds and judges them like a candidate, with all looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rlx.compare.arms import Arm, arm_of
from rlx.compare.code_version import CurrentCode
from rlx.compare.comparability import arm_objections
from rlx.compare.comparison import look
from rlx.compare.interim_plan import PLAN
from rlx.compare.question import STANDARD, ComparisonQuestion, Evidence
from rlx.compare.seed_noise import SeedNoise, noise
from rlx.compare.stored_scores import raise_without_scores, scores_for, shared_fingerprints, stored_scores
from rlx.errors import EvidenceInvalid, JobFailed
from rlx.launch import launch
from rlx.launch.resources import Slots
from rlx.loop.settle import run_or_config
from rlx.loop.settle.plan import Finish, next_for_pool
from rlx.loop.settle.settle import Contest, Limits, Settlement, refuse_unlogged, refuse_unscorable
from rlx.loop.settle.train_seeds import Report, SeedTrainer
from rlx.runs import interim_looks
from rlx.runs.run import Run
from rlx.runs.run_reference import Reference
from rlx.runs.status import COMPLETED
from rlx.runs.summary import costs

FRESH_SEEDS = 500
"""The first seed of replications, far from the seeds of pools and candidates."""


@dataclass(frozen=True)
class SeedPrice:
    """The expected cost of seeds: CPU seconds if they were measured, and wall seconds on this machine."""

    seeds: int
    cpu_seconds: float | None
    wall_seconds: float


@dataclass(frozen=True)
class Pool:
    """The seeds of one config as a baseline: their scores in training order, their noise, and their cost."""

    run: Run
    side: Arm
    noise: SeedNoise
    fingerprint: str
    trained: int
    slots: int
    evidence: Evidence

    def cost(self, seeds: int) -> SeedPrice:
        """Return the cost of a comparison with this many seeds per side, beyond this pool."""
        count = seeds + max(0, seeds - self.noise.n)
        spent = costs(self.run)
        done = [spent[seed.number] for seed in self.run.seeds if seed.status.state == COMPLETED]
        cpu = [cost.cpu_seconds for cost in done if cost.cpu_seconds is not None]
        cpu_seconds = None
        if cpu:
            cpu_seconds = fmean(cpu) * count
        wall = fmean(cost.seconds for cost in done) * math.ceil(count / self.slots)
        return SeedPrice(count, cpu_seconds, wall)

    def document(self) -> dict[str, Any]:
        """Return the pool as JSON-able data."""
        noise = self.noise.document()
        for effect in noise["detects"]:
            effect["cost"] = None
            if effect["seeds"]:
                effect["cost"] = vars(self.cost(effect["seeds"]))
        return {
            "run": self.run.name,
            "fingerprint": self.fingerprint,
            "metric": self.side.metric,
            "evidence": self.evidence,
            "can_train": not self.run.is_script,
            "trained": self.trained,
            **noise,
            "seeds": {str(seed): score for seed, score in self.side.as_baseline().items()},
            "has_mixed_code": len(self.side.codes) > 1,
            "crashed": [training.seed for training in self.side.having("crashed")],
            "costs": {seeds: vars(self.cost(int(seeds))) for seeds in noise["finds"]},
        }


def pool(
    named: run_or_config.RunOrConfig,
    *,
    ground: CurrentCode,
    seeds: int,
    report: Report,
    question: ComparisonQuestion = STANDARD,
) -> Pool:
    """Return a pool of at least this many seeds, scored as the question asks; missing seeds are trained."""
    is_script = named.run is not None and named.run.is_script
    if not is_script or question.metric is not None:  # without a metric, a script scores its own policies
        refuse_unscorable(named, question)
    run = named.open(root=ground.root, seeds=seeds)
    again = f"rlx noise {run_or_config.snapshot(run)}{question.options}"
    trainer = SeedTrainer({"baseline": run}, ground=ground, report=report, again=again)
    fingerprint = _fingerprint(run, ground, question)
    try:
        while True:
            side = _side(trainer.run("baseline"), fingerprint, ground, question)
            progress = trainer.progress("baseline", side)
            pool_size = seeds
            if run.is_script:  # rlx cannot train its seeds
                pool_size = min(seeds, progress.counted)
            action = next_for_pool(progress, max(2, pool_size))
            if isinstance(action, Finish):
                break
            refuse_unlogged(trainer, action, question)
            trainer.act(action, purpose="for the pool", leaning=lambda: None)
    except KeyboardInterrupt:
        trainer.stop()
        raise
    if action.why != "spent":
        problem = {"stuck": "seeds are killed repeatedly"}.get(action.why, "too many seeds crash")
        raise JobFailed(f"{run.name}: {problem}", hint=f"rlx info {run.name} --traceback")
    evidence: Evidence = "measured" if question.metric is None else "reported"
    return _pool(trainer, side, fingerprint, evidence, question)


def _pool(trainer: SeedTrainer, side: Arm, fingerprint: str, evidence: Evidence, question: ComparisonQuestion) -> Pool:
    run = trainer.run("baseline")
    objections = arm_objections(side, question=question)
    if objections:
        reasons = "; ".join(objection.reason for objection in objections)
        raise EvidenceInvalid(reasons, hint=objections[0].command or None)
    crashed = len(side.having("crashed"))
    measured = noise(list(side.as_baseline().values()), random=side.floor, crashed=crashed)
    slots = len(Slots.of(run.config).places)
    return Pool(run, side, measured, fingerprint, trainer.trained()["baseline"], slots, evidence)


def _fingerprint(run: Run, ground: CurrentCode, question: ComparisonQuestion = STANDARD) -> str:
    """Return the run's protocol as it is now; if the code has changed, as it was when the run was scored."""
    from rlx.evaluate.measure import protocol_for

    if question.metric is not None:
        return question.fingerprint
    stored = stored_scores(run)
    if run.is_script and not stored:
        raise_without_scores(run)
    if stored and (run.is_script or ground.changes(run)):
        return shared_fingerprints([stored], [run.own_protocol])[0]
    return protocol_for(Reference(run), root=ground.root).fingerprint()


def _side(run: Run, fingerprint: str, ground: CurrentCode, question: ComparisonQuestion) -> Arm:
    return arm_of(run, scores_for(run, question).get(fingerprint, {}), like=run, codes=ground.codes)


# A/A


@dataclass(frozen=True)
class Replication:
    """The same config as a candidate; `asked` counts its replications so far, `alarms` the false alarms among them."""

    settlement: Settlement
    asked: int
    alarms: int

    @property
    def is_alarm(self) -> bool:
        return self.settlement.candidate.verdict.verdict in ("better", "worse")

    def document(self) -> dict[str, Any]:
        """Return the replication as JSON-able data."""
        error = {"is_alarm": self.is_alarm, "asked": self.asked, "alarms": self.alarms, "error": PLAN.error}
        return {**self.settlement.document(), **error}


def replicate(base: Run, *, ground: CurrentCode, report: Report) -> Replication:
    """Train the config of a pool on unused seeds, judge them against the pool, and count the false alarms so far."""
    new = _unsettled(base, ground) or _replica(base, ground.root)
    contest = Contest(base, new, ground=ground, limits=Limits(), report=report, is_replication=True)
    settlement = contest.settle()
    others = [run for run in _replicas(base, ground.root) if _is_settled(base, run, ground)]
    verdicts = [look(base, run, contest.fingerprint, is_replication=True)[1].verdict.verdict for run in others]
    return Replication(settlement, len(verdicts), sum(verdict in ("better", "worse") for verdict in verdicts))


def _replicas(base: Run, root: Path) -> list[Run]:
    runs = run_or_config.readable_runs(root)
    return [run for run in runs if (run.metadata.get("lineage") or {}).get("replicates") == base.name]


def _unsettled(base: Run, ground: CurrentCode) -> Run | None:
    """Return a replication that was stopped before its end, so that its seeds are used."""
    return next((run for run in _replicas(base, ground.root) if not _is_settled(base, run, ground)), None)


def _is_settled(base: Run, new: Run, ground: CurrentCode) -> bool:
    verdict = look(base, new, _fingerprint(base, ground), is_replication=True)[1].verdict
    return verdict.verdict != "inconclusive" or verdict.is_futile or min(verdict.n) >= PLAN.stages[-1].seeds


def _replica(base: Run, root: Path) -> Run:
    """Create the run of a replication, on seeds that no run of this config has used."""
    from rlx.evaluate.stored_code import stored_experiment

    group = base.metadata.get("group_hash")
    alike = [run for run in run_or_config.readable_runs(root) if run.metadata.get("group_hash") == group]
    used = {seed.number for run in alike for seed in run.seeds}
    for record in interim_looks.read(root):
        for party in (record.baseline, record.candidate):
            if party.group == group:
                used |= set(party.scores)
    first = max([FRESH_SEEDS, *(seed + 1 for seed in used)])
    seeds = tuple(range(first, first + PLAN.stages[0].seeds))
    experiment = stored_experiment(base, root=root)
    changes = {"run_name": f"{experiment.run_name}_aa", "seeds": seeds}
    return launch.create(experiment.model_copy(update=changes), root=root, lineage={"replicates": base.name})
