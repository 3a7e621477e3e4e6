"""One run in one dictionary: what a list shows of it and the index keeps."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.figures import deviation
from rlx.runs.metrics import damage_at_end
from rlx.runs.run import METADATA, SNAPSHOT, Run, Seed
from rlx.runs.status import ENDED, HEARTBEAT_STOPPED, LOST, RUNNING, tally

BROKEN = "broken"
ROLLOUT_RETURN = "rollout/return_mean"
REPORT = "report evaluation"


def summarize(path: Path) -> dict[str, Any]:
    """Return a run's summary; a folder that cannot be read is `broken`, with the reason, and never an exception."""
    try:
        path.name.encode()
        return summary(Run(path))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # half an rsync, a torn disk, an edited file, a name that is no text: the list of the others must stand
        return _broken(path, reason=str(error) or type(error).__name__)


def is_run_folder(path: Path) -> bool:
    """Say whether a folder is, or was, a run: one that lost its metadata still counts."""
    return any((path / name).exists() for name in (METADATA, SNAPSHOT))


def summary(run: Run) -> dict[str, Any]:
    """Describe a run.

    `steps` and `planned_steps` are a seed's (mean over seeds), `seconds` the longest seed's; `is_settled` says that
    nothing but a change in the folder can change this: no process lives, none may come back to life elsewhere.
    """
    identity = run.metadata
    if not identity:
        raise ValueError(f"{METADATA} holds no run")
    scores = final_returns(run)
    seeds = [seed_summary(seed, scores=scores) for seed in run.seeds]
    return {
        "name": run.name,
        "status": run.status,
        "reason": next((seed["reason"] for seed in seeds if seed["reason"]), ""),
        "env": str(identity.get("env") or ""),
        "algo": str(identity.get("algorithm") or ""),
        "backend": str(identity.get("backend") or ""),
        "seeds": len(seeds),
        "tally": tally([seed["status"] for seed in seeds]),
        "steps": round(sum(seed["step"] for seed in seeds) / len(seeds)) if seeds else 0,
        "planned_steps": run.planned_steps,
        "return": spread([seed["return"] for seed in seeds], source=scores.source, metric=scores.metric),
        "tags": list(run.tags),
        "note": run.note,
        "created": float(identity.get("created") or 0.0),
        "seconds": round(max((seed["seconds"] for seed in seeds), default=0.0), 1),
        "group_hash": str(identity.get("group_hash") or ""),
        "is_settled": run.status != RUNNING and all(seed["reason"] != HEARTBEAT_STOPPED for seed in seeds),
    }


def _broken(path: Path, *, reason: str) -> dict[str, Any]:
    try:
        created = path.stat().st_mtime
    except OSError:
        created = 0.0
    name = path.name.encode("utf-8", "backslashreplace").decode()
    return {
        "name": name, "status": BROKEN, "reason": reason, "env": "", "algo": "", "backend": "", "seeds": 0,
        "tally": "", "steps": 0, "planned_steps": 0, "return": None, "tags": [], "note": "", "created": created,
        "seconds": 0.0, "group_hash": "", "is_settled": False,
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
    """Add up the seed's attempts, without the pauses between them; one that was killed counts to its last sign."""
    total, last = 0.0, 0.0
    started: float | None = None
    for event in seed.events:
        if event.get("event") == "started":
            total += last - started if started is not None else 0.0
            started = float(event["time"])
        last = float(event["time"])
        if event.get("event") in ENDED:
            total, started = total + (last - started if started is not None else 0.0), None
    if started is None:
        return total
    age = seed.heartbeat_age
    if seed.status.state == RUNNING:
        last = time.time()
    elif seed.status.state == LOST and age is not None:
        last = max(last, time.time() - age)
    return total + last - started


def position(seed: Seed) -> tuple[int, float | None]:
    """Return step and recent return of a seed, from its heartbeat where that is ahead of its metrics."""
    step, episode_return = seed.step, seed.last("rollout/return_mean")
    try:
        beat = files.decode(files.read_bytes(seed.folder / "heartbeat"))
        if 2**63 > beat["step"] > step:
            step = int(beat["step"])
            if beat.get("episode_return") is not None:
                episode_return = files.number(beat["episode_return"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return step, episode_return


def cpu_seconds(seed: Seed) -> float | None:
    """Add up the CPU time of the seed's attempts to their last rows; None where its trainer measured none."""
    total, last = 0.0, None
    for row in seed.rows:
        if "time/cpu_seconds" in row:
            spent = files.number(row["time/cpu_seconds"])
            total += last if last is not None and spent < last else 0.0  # a new process begins at zero
            last = spent
    return None if last is None else total + last


@dataclass(frozen=True)
class Cost:
    """What a seed cost: its part of what the process spent that trained it, alone or together with others."""

    seconds: float
    cpu_seconds: float | None


def costs(run: Run) -> dict[int, Cost]:
    """Return what every seed of a run cost."""
    processes = {seed.number: _last_process(seed) for seed in run.seeds}
    together = Counter(processes.values())
    found = {}
    for seed in run.seeds:
        share, spent = together[processes[seed.number]], cpu_seconds(seed)
        found[seed.number] = Cost(trained_seconds(seed) / share, None if spent is None else spent / share)
    return found


def _last_process(seed: Seed) -> str:
    """Return which process trained a seed last; a word of its own for one that nobody has begun."""
    started = [event for event in seed.events if event.get("event") == "started"]
    return repr(started[-1].get("process")) if started else f"seed {seed.number}"


def spread(values: Iterable[float | None], *, source: str, metric: str = "return") -> dict[str, Any] | None:
    """Return mean, standard deviation over seeds (none for one seed), count and best of the values there are.

    `metric` says what the values are: returns, or the rate that the protocol goes by.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    return {
        "mean": mean,
        "sd": deviation(known) if len(known) > 1 else None,
        "n": len(known),
        "best": max(known),
        "source": source,
        "metric": metric,
        "values": known,
    }


class FinalReturns:
    """What each seed's final policy returns: from one report evaluation where there is one, else from its training.

    `metric` is what the report's protocol goes by: the return, or a rate.
    """

    def __init__(self, report: dict[int, float], fingerprint: str, metric: str = "return") -> None:
        self._report = report
        self.fingerprint = fingerprint
        self.metric = metric
        self.source = REPORT if report else ROLLOUT_RETURN

    def of(self, seed: Seed) -> float | None:
        return self._report.get(seed.number) if self._report else seed.last(ROLLOUT_RETURN)


def final_returns(run: Run) -> FinalReturns:
    """Take the run's own report protocol; where it is not known, the one that covers most seeds.

    Of equals the one with most episodes counts, then the newest.
    """
    best: tuple[bool, int, int, float, dict[int, float], str] = (False, 0, 0, 0.0, {}, "")
    for folder, names, changed in _evaluation_folders(run.path / "eval"):
        scores = _report_scores(folder, names)
        episodes = len(files.read_json(folder / names[0]).get("episodes") or []) if scores else 0
        is_own = bool(scores) and folder.name == run.own_protocol
        best = max(best, (is_own, len(scores), episodes, changed, scores, folder.name), key=lambda entry: entry[:4])
    return FinalReturns(best[4], best[5], _metric(run.path / "eval" / best[5], best[4]))


def _metric(folder: Path, scores: dict[int, float]) -> str:
    """Return what the scores of one protocol are."""
    for seed, checkpoint in ((seed, name) for seed in scores for name in ("latest", "best")):
        path = folder / f"seed_{seed}_{checkpoint}.json"
        if path.exists():
            return str(files.read_json(path).get("metric") or "return")
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


def _report_scores(folder: Path, names: Sequence[str]) -> dict[int, float]:
    """Return each seed's mean in a folder of report evaluations, of `latest` where it was evaluated, else of `best`."""
    if files.read_json(folder / names[0]).get("purpose") != "report":
        return {}  # a folder is one protocol: its first file tells what all are for
    scores = {}
    for checkpoint in ("best", "latest"):
        for name in names:
            seed, _, of = name.removeprefix("seed_").removesuffix(".json").partition("_")
            if of == checkpoint and seed.isdigit():
                document = files.read_json(folder / name)
                scores[int(seed)] = files.number(document.get("score", document["mean"]))
    return scores
