"""The summary of a run: one dictionary that lists show and the index stores."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import FileDamaged
from rlx.number_format import deviation
from rlx.runs.job_folder import read_jobs, waiting_jobs
from rlx.runs.metrics import damage_at_end
from rlx.runs.run import HEARTBEAT, JOBS, METADATA, Run, Seed, read_evaluation
from rlx.runs.status import ENDED, FAILED, HEARTBEAT_STOPPED, INTERRUPTED, LOST, PREPARED, QUEUED, RUNNING, tally

BROKEN = "broken"
MAY_WAIT = (PREPARED, INTERRUPTED, LOST, FAILED)
"""A run in one of these states may wait in an executor's queue for its first or next attempt."""
LAST_MOMENT = 253_402_300_800.0
"""The first second of the year 10,000."""
UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What reading a run raises after half an rsync, on a torn disk or on another program's file."""
ROLLOUT_RETURN = "rollout/return_mean"
REPORT = "report evaluation"


def summarize(path: Path) -> dict[str, Any]:
    """Return a run's summary. A folder that cannot be read is `broken`, with the reason; it never raises."""
    try:
        path.name.encode()
        return summary(Run(path))
    except UNREADABLE as error:
        # half an rsync, a broken disk, an edited file, a name that is not text: the other runs must still be listed
        return broken(path, reason=str(error) or type(error).__name__)


def summary(run: Run) -> dict[str, Any]:
    """Describe a run.

    `steps` is the mean over seeds, `planned_steps` is per seed, `seconds` is the longest seed's training time.
    `is_settled` is true if only a change in the folder can change this summary: no process is alive here, and none
    can come back on another machine.
    """
    identity = run.metadata
    if not identity:
        raise ValueError(f"{METADATA} does not describe a run")
    scores = final_returns(run)
    jobs = read_jobs(run.path / JOBS)
    status = run.status
    if status in MAY_WAIT and waiting_jobs(run.path.parent.parent, jobs):
        status = QUEUED
    seeds = [seed_summary(seed, scores=scores) for seed in run.seeds]
    steps = sum(seed["step"] for seed in seeds)
    return {
        "name": run.name,
        "status": status,
        "reason": next((seed["reason"] for seed in seeds if seed["reason"]), ""),
        "env": str(identity.get("env") or ""),
        "algo": str(identity.get("algorithm") or ""),
        "backend": str(identity.get("backend") or ""),
        "seeds": len(seeds),
        "tally": tally([seed["status"] for seed in seeds]),
        "steps": round(steps / max(1, len(seeds))),
        "planned_steps": run.planned_steps,
        "return": spread([seed["return"] for seed in seeds], source=scores.source, metric=scores.metric),
        "tags": list(run.tags),
        "note": run.note,
        "created": created(run),
        "seconds": round(max((seed["seconds"] for seed in seeds), default=0.0), 1),
        "group_hash": str(identity.get("group_hash") or ""),
        "executor": executor_of(jobs),
        "is_settled": status not in (RUNNING, QUEUED) and all(seed["reason"] != HEARTBEAT_STOPPED for seed in seeds),
    }


def executor_of(jobs: Any) -> str:
    """Return the executor that a run's `jobs.json` names; empty for a run of this machine's supervisor."""
    if jobs is None:
        return ""
    if not isinstance(jobs, dict) or "executor" not in jobs:
        return "unknown"
    return str(jobs["executor"])


def created(run: Run) -> float:
    """Return when a run was created. Raises `ValueError` for a moment that no clock shows."""
    moment = float(run.metadata.get("created") or 0.0)
    if not 0.0 <= moment < LAST_MOMENT:
        raise FileDamaged(f"{run.name}/{METADATA}: `created` is not a time")
    return moment


def broken(path: Path, *, reason: str) -> dict[str, Any]:
    """Describe a run that cannot be read."""
    try:
        created = path.stat().st_mtime
    except OSError:
        created = 0.0
    name = path.name.encode("utf-8", "backslashreplace").decode()
    return {
        "name": name, "status": BROKEN, "reason": reason, "env": "", "algo": "", "backend": "", "seeds": 0,
        "tally": "", "steps": 0, "planned_steps": 0, "return": None, "tags": [], "note": "", "created": created,
        "seconds": 0.0, "group_hash": "", "executor": "", "is_settled": False,
    }  # fmt: skip


def seed_summary(seed: Seed, *, scores: FinalReturns) -> dict[str, Any]:
    """Describe one seed."""
    status = seed.status
    return {
        "seed": seed.number,
        "status": status.state,
        "reason": status.reason or damage_at_end(seed.metrics_path),
        "attempt": status.attempt,
        "step": seed.step,
        "return": scores.of(seed),
        "seconds": round(trained_seconds(seed), 1),
    }


def trained_seconds(seed: Seed) -> float:
    """Return the summed time of the seed's attempts, without the pauses between them.

    A killed attempt counts up to its last sign of life.
    """
    total = 0.0
    last = 0.0
    started: float | None = None
    for event in seed.events:
        kind = event.get("event")
        if kind == "started":
            if started is not None:  # the attempt before was killed: it left no end event
                total += last - started
            started = float(event["time"])
        last = float(event["time"])
        if kind in ENDED and started is not None:
            total += last - started
            started = None
    if started is None:
        return total
    age = seed.heartbeat_age
    if seed.status.state == RUNNING:
        last = time.time()
    elif seed.status.state == LOST and age is not None:
        last = max(last, time.time() - max(0.0, age))
    return total + last - started


def position(seed: Seed) -> tuple[int, float | None]:
    """Return the step and recent return of a seed, from its heartbeat if that is ahead of its metrics."""
    step = seed.step
    episode_return = seed.last(ROLLOUT_RETURN)
    try:
        beat = files.decode(files.read_bytes(seed.folder / HEARTBEAT))
        if 2**63 > beat["step"] > step:
            step = int(beat["step"])
            if beat.get("episode_return") is not None:
                episode_return = files.number(beat["episode_return"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return step, episode_return


def cpu_seconds(seed: Seed) -> float | None:
    """Return the summed CPU time of the seed's attempts up to their last rows; None if it was not measured."""
    spent = [files.number(row["time/cpu_seconds"]) for row in seed.rows if "time/cpu_seconds" in row]
    if not spent:
        return None
    # Every new process starts counting at zero: a drop marks the end of an attempt.
    ends = [before for before, after in itertools.pairwise(spent) if after < before]
    return sum(ends) + spent[-1]


@dataclass(frozen=True)
class SeedCost:
    """The cost of one seed: its share of the time of the process that trained it, alone or with other seeds."""

    seconds: float
    cpu_seconds: float | None


def costs(run: Run) -> dict[int, SeedCost]:
    """Return the cost of every seed of a run."""
    processes = {seed.number: _last_process(seed) for seed in run.seeds}
    seeds_per_process = Counter(processes.values())
    costs_by_seed = {}
    for seed in run.seeds:
        sharing = seeds_per_process[processes[seed.number]]
        spent = cpu_seconds(seed)
        if spent is not None:
            spent /= sharing
        costs_by_seed[seed.number] = SeedCost(trained_seconds(seed) / sharing, spent)
    return costs_by_seed


def _last_process(seed: Seed) -> str:
    """Return the process that trained a seed last; a seed that was never started gets a name of its own."""
    starts = [event for event in seed.events if event.get("event") == "started"]
    if not starts:
        return f"seed {seed.number}"
    return repr(starts[-1].get("process"))


def spread(values: Iterable[float | None], *, source: str, metric: str = "return") -> dict[str, Any] | None:
    """Return mean, standard deviation over seeds (None for one seed), count and best of the known values.

    `metric` names the values: returns, or the rate that the protocol uses.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    sd = None
    if len(known) > 1:
        sd = deviation(known)
    return {
        "mean": sum(known) / len(known),
        "sd": sd,
        "n": len(known),
        "best": max(known),
        "source": source,
        "metric": metric,
        "values": known,
    }


class FinalReturns:
    """The final return of each seed: from the run's report evaluation if there is one, else from training.

    `metric` is the metric of the report's protocol: the return, or a rate.
    """

    def __init__(self, report: dict[int, float], fingerprint: str, metric: str = "return") -> None:
        self._report = report
        self.fingerprint = fingerprint
        self.metric = metric
        self.source = ROLLOUT_RETURN
        if report:
            self.source = REPORT

    def of(self, seed: Seed) -> float | None:
        if self._report:
            return self._report.get(seed.number)
        return seed.last(ROLLOUT_RETURN)


def final_returns(run: Run) -> FinalReturns:
    """Return the scores under the run's own report protocol; if that is unknown, under the one with most seeds.

    A tie goes to the protocol with more episodes, then to the newer one.
    """
    best_rank: tuple[bool, int, int, float] = (False, 0, 0, 0.0)
    best = FinalReturns({}, "")
    for folder, names, changed in _evaluation_folders(run.path / "eval"):
        first = read_evaluation(folder / names[0])
        if first.get("purpose") != "report":
            continue  # a folder holds one protocol, so its first file gives the purpose of all
        reports = {name: read_evaluation(folder / name) for name in names[1:] if _seed_and_checkpoint(name)}
        reports[names[0]] = first
        scores = _report_scores(reports)
        if not scores:
            continue
        rank = (folder.name == run.own_protocol, len(scores), len(first.get("episodes") or []), changed)
        if rank > best_rank:
            best_rank = rank
            best = FinalReturns(scores, folder.name, _metric(reports, scores))
    return best


def _metric(reports: Mapping[str, dict[str, Any]], scores: dict[int, float]) -> str:
    """Return the metric of the scores under one protocol."""
    for seed, checkpoint in itertools.product(scores, ("latest", "best")):
        document = reports.get(f"seed_{seed}_{checkpoint}.json")
        if document is not None:
            return str(document.get("metric") or "return")
    return "return"


def _evaluation_folders(place: Path) -> Iterable[tuple[Path, list[str], float]]:
    try:
        entries = [entry for entry in os.scandir(place) if entry.is_dir()]
    except FileNotFoundError:
        return
    for entry in sorted(entries, key=lambda entry: entry.name):
        names = sorted(name for name in os.listdir(entry.path) if name.endswith(".json"))  # noqa: PTH208  names are enough
        if names:
            yield Path(entry.path), names, entry.stat().st_mtime


def _report_scores(reports: Mapping[str, dict[str, Any]]) -> dict[int, float]:
    """Return each seed's mean in report evaluations: of `latest` if it was evaluated, else of `best`."""
    scores = {}
    for checkpoint in ("best", "latest"):
        for name, document in sorted(reports.items()):
            found = _seed_and_checkpoint(name)
            if found and found[1] == checkpoint:
                scores[found[0]] = files.number(document.get("score", document["mean"]))
    return scores


def _seed_and_checkpoint(name: str) -> tuple[int, str] | None:
    """Return the seed and the checkpoint that a file's name tells: `seed_3_latest.json`; None for other names."""
    seed, _, checkpoint = name.removeprefix("seed_").removesuffix(".json").partition("_")
    if not seed.isdigit() or checkpoint not in ("best", "latest"):
        return None
    return int(seed), checkpoint
