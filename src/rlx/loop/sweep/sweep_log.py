"""The log of a sweep: `.rlx/sweeps/NAME/ledger.jsonl`, append-only and hash-chained like the ledger of a study.

It is the truth. A row is written before what it announces is started, and a score is written once. Everything else
(the winner's config, pictures, tables) can be made again from the log and the runs.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files
from rlx.command import is_plain_word
from rlx.errors import NotFound, Refused, UsageError, hint_for
from rlx.loop.sweep.sweep_plan import SweepPlan, plan_of
from rlx.runs import process, project
from rlx.search.auto import TrialJob
from rlx.search.space import Values
from rlx.study.ledger.ledger import Event, Ledger

FOLDER = Path(".rlx") / "sweeps"
LEDGER = "ledger.jsonl"
HOLDER = "process.json"
BEST = "best.yaml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class TrialScore:
    """The end of one training of a sweep; no score means that it failed, and `reason` says how."""

    score: float | None
    reason: str = ""
    cpu_seconds: float | None = None
    steps: int = 0


@dataclass
class SweepState:
    """A sweep as its log tells it."""

    plan: SweepPlan
    trials: dict[int, Values] = field(default_factory=dict)
    proposers: dict[int, str] = field(default_factory=dict)
    runs: dict[int, str] = field(default_factory=dict)
    scores: dict[TrialJob, TrialScore] = field(default_factory=dict)
    confirm_runs: dict[str, str] = field(default_factory=dict)
    votes: list[Mapping[str, Any]] = field(default_factory=list)
    warm: Mapping[str, Any] | None = None
    race_budget: float | None = None
    winner: Mapping[str, Any] | None = None
    confirmation: Mapping[str, Any] | None = None
    seconds: float = 0.0
    executor: str | None = None
    """The executor of the last session; None in a log of before executors could train trials."""

    @property
    def is_over(self) -> bool:
        return self.confirmation is not None


class SweepLog:
    """One sweep on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger(folder / LEDGER, keeps_rows=True)

    @property
    def name(self) -> str:
        return self.folder.name

    def append(self, kind: str, /, *, key: str | None = None, **fields: Any) -> Event:
        """Append one event durably; the same kind and key is written once."""
        return self.ledger.append(kind, key=key, **fields)

    def add_trial(self, number: int, values: Values, *, by: str) -> None:
        self.append("trial", key=str(number), number=number, values=values, by=by)

    def add_run(self, number: int, run: str) -> None:
        self.append("run", key=str(number), number=number, run=run)

    def add_score(self, job: TrialJob, score: TrialScore) -> None:
        key = f"{job.trial}/{job.seed}/{job.share:g}"
        self.append("scored", key=key, trial=job.trial, seed=job.seed, share=job.share, **vars(score))

    def state(self) -> SweepState:
        """Return the sweep as its rows tell it."""
        events = self.ledger.events()
        if not events or events[0].kind != "planned":
            raise NotFound(f"the sweep {self.name} has not begun", hint="rlx sweep ls")
        state = SweepState(plan_of(events[0]["plan"]))
        began = events[0].time
        for before, event in zip([events[0], *events], events, strict=False):
            if event.kind == "session":  # the time between two sessions does not count
                state.seconds += before.time - began
                began = event.time
                state.executor = event.get("executor")
            _apply(state, event)
        state.seconds += events[-1].time - began
        return state

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the sweep's lock; a second process is refused."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(files.locked(self.folder / LEDGER, wait=False))
            except BlockingIOError:
                message = f"another process is running the sweep {self.name}"
                raise Refused(message, hint=f"rlx sweep show {self.name}") from None
            files.write_json(self.folder / HOLDER, {"schema": 1, **process.current().document()})
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    (self.folder / HOLDER).unlink(missing_ok=True)

    @property
    def is_running(self) -> bool:
        """Whether a process holds the sweep's lock."""
        return files.is_locked(self.folder / LEDGER)

    @property
    def holder(self) -> process.Process | None:
        """The process that runs the sweep, as it registered itself."""
        try:
            return process.from_document(files.read_json(self.folder / HOLDER))
        except (OSError, ValueError):
            return None


def _apply(state: SweepState, event: Event) -> None:
    kind = event.kind
    if kind == "trial":
        state.trials[event["number"]] = event["values"]
        state.proposers[event["number"]] = event.get("by", "")
    elif kind == "run":
        state.runs[event["number"]] = event["run"]
    elif kind == "scored":
        score = event["score"]
        if score is not None:
            score = files.number(score)
        ended = TrialScore(score, event.get("reason", ""), event.get("cpu_seconds"), event.get("steps", 0))
        state.scores[TrialJob(event["trial"], event["seed"], event["share"])] = ended
    elif kind == "confirm_run":
        state.confirm_runs[event["role"]] = event["run"]
    elif kind == "votes":
        state.votes.append(event.fields)
    elif kind == "race":
        state.race_budget = event["budget"]
    elif kind == "warm":
        state.warm = event.fields
    elif kind == "winner":
        state.winner = event.fields
    elif kind == "confirmed":
        state.confirmation = event.fields


def create(plan: SweepPlan, *, root: Path) -> SweepLog:
    """Create the folder of a sweep and write its plan."""
    if not NAME.fullmatch(plan.name):
        raise UsageError(f"`{plan.name}` is not a name for a sweep", hint="letters, digits, `_`, `-` and `.`")
    folder = root / FOLDER / plan.name
    log = SweepLog(folder)
    if log.ledger.events():  # a folder without rows is left of a sweep that was killed as it began
        raise UsageError(f"there is a sweep {plan.name} already", hint=f"rlx sweep resume {plan.name}, or --name NEW")
    folder.mkdir(parents=True, exist_ok=True)
    project.mark_made_here(folder)
    log.append("planned", key="1", plan=plan.document(), began=time.time())
    return log


def free_name(stem: str, *, folder: Path) -> str:
    """Return the first name that is not in use in a folder: STEM_001 …"""
    clean = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_") or "sweep"
    number = 1
    while (folder / f"{clean}_{number:03d}").exists():
        number += 1
    return f"{clean}_{number:03d}"


def find(name: str, *, root: Path) -> SweepLog:
    """Return a sweep of the project by its name."""
    known = names(root)
    if name not in known:
        otherwise = "rlx sweep ls"
        raise NotFound(f"there is no sweep `{name}`", hint=hint_for(name, known, otherwise=otherwise))
    return SweepLog(root / FOLDER / name)


def names(root: Path) -> list[str]:
    """Return the names of all sweeps of a project."""
    found = [path.parent.name for path in (root / FOLDER).glob(f"*/{LEDGER}")]
    return sorted(name for name in found if is_plain_word(name))


def all_sweeps(root: Path) -> Sequence[SweepLog]:
    """Return all sweeps of a project."""
    return [SweepLog(root / FOLDER / name) for name in names(root)]
