"""The noise of a config: a pool of its seeds, what comparing with it costs, and whether the whole path can be fooled.

A pool is a run: a config goes on with the run it has (see `entry`), so nothing is trained twice. A replication (A/A)
trains the same config on seeds that nobody used and sends them through the candidate's path, looks and all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rlx.compare.comparison import look
from rlx.compare.evidence import side_of
from rlx.compare.ground import Ground
from rlx.compare.looks import PLAN
from rlx.compare.noise import Noise, noise
from rlx.compare.objections import side_objections
from rlx.compare.reports import explain_nothing, shared_fingerprints, stored_reports
from rlx.compare.side import Side
from rlx.errors import EvidenceInvalid, JobFailed
from rlx.launch import launch
from rlx.launch.resources import Slots
from rlx.loop import entry
from rlx.loop.crew import Crew, Report
from rlx.loop.settle import Contest, Limits, Settlement
from rlx.loop.step import Stop, next_for_pool
from rlx.runs import looks
from rlx.runs.reference import Reference
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.runs.summary import costs

FRESH_SEEDS = 500
"""Replications train seeds from here on, far from those that pools and candidates use."""


@dataclass(frozen=True)
class Price:
    """What seeds would cost: CPU seconds where they were measured, and wall seconds on this machine."""

    seeds: int
    cpu_seconds: float | None
    wall_seconds: float


@dataclass(frozen=True)
class Pool:
    """The seeds of one config as a baseline: their scores in the order trained, their noise, and what a seed costs."""

    run: Run
    side: Side
    noise: Noise
    fingerprint: str
    trained: int
    slots: int

    def cost(self, seeds: int) -> Price:
        """Return what a comparison of so many seeds a side costs beyond this pool."""
        count = seeds + max(0, seeds - self.noise.n)
        spent = costs(self.run)
        done = [spent[seed.number] for seed in self.run.seeds if seed.status.state == COMPLETED]
        cpu = [one.cpu_seconds for one in done if one.cpu_seconds is not None]
        wall = fmean(one.seconds for one in done) * math.ceil(count / self.slots)
        return Price(count, fmean(cpu) * count if cpu else None, wall)

    def document(self) -> dict[str, Any]:
        """Return the pool as JSON-able data."""
        found = self.noise.document()
        for one in found["detects"]:
            one["cost"] = vars(self.cost(one["seeds"])) if one["seeds"] else None
        return {
            "run": self.run.name,
            "fingerprint": self.fingerprint,
            "metric": self.side.metric,
            "trained": self.trained,
            **found,
            "seeds": {str(seed): score for seed, score in self.side.as_baseline().items()},
            "crashed": [one.seed for one in self.side.having("crashed")],
            "costs": {seeds: vars(self.cost(int(seeds))) for seeds in found["finds"]},
        }


def pool(named: entry.Entry, *, ground: Ground, seeds: int, report: Report) -> Pool:
    """Return a pool of at least so many seeds, trained as far as it is not there."""
    run = named.open(root=ground.root, seeds=seeds)
    again = f"rlx noise {entry.snapshot(run)}"
    crew = Crew({"baseline": run}, ground=ground, report=report, again=again)
    fingerprint = _fingerprint(run, ground)
    try:
        while True:
            side = _side(crew.run("baseline"), fingerprint, ground)
            standing = crew.standing("baseline", side)
            wanted = min(seeds, standing.counted) if run.is_script else seeds
            action = next_for_pool(standing, max(2, wanted))
            if isinstance(action, Stop):
                break
            crew.act(action, purpose="for the pool", leaning=lambda: None)
    except KeyboardInterrupt:
        crew.stop()
        raise
    if action.why != "spent":
        bad = f"{run.name}: {'seeds end again and again' if action.why == 'stuck' else 'too many seeds crash'}"
        raise JobFailed(bad, hint=f"rlx info {run.name} --traceback")
    return _pool(crew, side, fingerprint)


def _pool(crew: Crew, side: Side, fingerprint: str) -> Pool:
    run = crew.run("baseline")
    against = side_objections(side)
    if against:
        raise EvidenceInvalid("; ".join(one.reason for one in against), hint=against[0].command or None)
    crashed = len(side.having("crashed"))
    measured = noise(list(side.as_baseline().values()), random=side.floor, crashed=crashed)
    return Pool(run, side, measured, fingerprint, crew.trained()["baseline"], len(Slots.of(run.config).places))


def _fingerprint(run: Run, ground: Ground) -> str:
    """Return the run's own protocol as it is now; where code changed since, as it was, so that scores are there."""
    from rlx.evaluate.measure import protocol_for

    stored = stored_reports(run)
    if run.is_script and not stored:
        explain_nothing(run)
    if stored and (run.is_script or ground.changes(run)):
        return shared_fingerprints([stored], [run.own_protocol])[0]
    return protocol_for(Reference(run), root=ground.root).fingerprint()


def _side(run: Run, fingerprint: str, ground: Ground) -> Side:
    return side_of(run, stored_reports(run).get(fingerprint, {}), like=run, codes=ground.codes)


# A/A


@dataclass(frozen=True)
class Replication:
    """The same config once more, as a candidate; `asked` and `alarms` are all replications of it so far."""

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


def replicate(base: Run, *, ground: Ground, report: Report) -> Replication:
    """Train the config of a pool on seeds nobody used, judge them against it, and count the false alarms so far."""
    contest = _contest(base, _unsettled(base, ground) or _replica(base, ground.root), ground, report)
    ended = contest.settle()
    others = [run for run in _replicas(base, ground.root) if _is_settled(base, run, ground)]
    verdicts = [look(base, run, contest.fingerprint, is_replication=True)[1].verdict.verdict for run in others]
    return Replication(ended, len(verdicts), sum(verdict in ("better", "worse") for verdict in verdicts))


def _contest(base: Run, new: Run, ground: Ground, report: Report) -> Contest:
    return Contest(base, new, ground=ground, limits=Limits(), report=report, is_replication=True)


def _replicas(base: Run, root: Path) -> list[Run]:
    found = entry.readable_runs(root)
    return [run for run in found if (run.metadata.get("lineage") or {}).get("replicates") == base.name]


def _unsettled(base: Run, ground: Ground) -> Run | None:
    """Return a replication that was stopped before its end: its seeds have not been used up."""
    return next((run for run in _replicas(base, ground.root) if not _is_settled(base, run, ground)), None)


def _is_settled(base: Run, new: Run, ground: Ground) -> bool:
    verdict = look(base, new, _fingerprint(base, ground), is_replication=True)[1].verdict
    return verdict.verdict != "inconclusive" or verdict.is_futile or min(verdict.n) >= PLAN.stages[-1].seeds


def _replica(base: Run, root: Path) -> Run:
    """Make the run of a replication, on seeds that no run of this config has used."""
    from rlx.config.load import parse

    group = base.metadata.get("group_hash")
    alike = [run for run in entry.readable_runs(root) if run.metadata.get("group_hash") == group]
    used = {seed.number for run in alike for seed in run.seeds}
    looked = [one for row in looks.read(root) for one in (row.baseline, row.candidate) if one.group == group]
    used |= {seed for one in looked for seed in one.scores}
    first = max([FRESH_SEEDS, *(seed + 1 for seed in used)])
    seeds = tuple(range(first, first + PLAN.stages[0].seeds))
    experiment = parse(base.config, source=base.name)
    changes = {"run_name": f"{experiment.run_name}_aa", "seeds": seeds}
    return launch.create(experiment.model_copy(update=changes), root=root, lineage={"replicates": base.name})
