"""A run that a study launched: its code, its limits and sandbox, the intent it must have, and how its end is recorded.

Not covered: the disk space of all runs together, and the limits that `sandbox` names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import FileDamaged, Refused, RlxError
from rlx.launch.git.tree_diff import remove_bytecode
from rlx.launch.resources import job_environment
from rlx.launch.study_jobs import checkpoint_hashes
from rlx.runs import process, project, store
from rlx.runs.run import METADATA, SNAPSHOT, Run, Seed
from rlx.runs.status import COMPLETED, FAILED
from rlx.sandbox.popen import SandboxedCommand, SandboxedProcess, start
from rlx.sandbox.process_tree import adopt_orphans
from rlx.sandbox.spec import Enforcement, SandboxSpec, enter, make_private_home, system_reads
from rlx.study.budget import Amount
from rlx.study.ledger.ledger import Ledger
from rlx.study.ledger.lifecycle import NULL_LAUNCHES
from rlx.study.ledger.records import Outcome
from rlx.study.ledger.state import lawful, replay

ENV_SERVER = "rlx.train.env_server"
ENVIRONMENTS = "environments"  # the folder in a worker's scratch folder that its environments may write
SCRATCH = ".scratch"  # the folder in a run with the home and temporary files of its workers; it is removed at the end
PARTS = ".parts"  # the folder in a run with the end of each seed that had a supervisor of its own
SIZE_SECONDS = 1.0
LEAST_BYTES = 4096  # what a file or folder counts at least, so that a limit on bytes also limits their number
NO_POLICY = "it says that it completed, but left no policy"
SELF_ENDED = "it was cut off, although nothing stopped it"
MOST_SAID = 2000
# How programs and libraries say that they got no memory.
MEMORY_WORDS = ("out of memory", "MemoryError", "Cannot allocate memory", "Unable to allocate", "bad_alloc")


@dataclass(frozen=True)
class SeedLimits:
    """What one seed may use: wall-clock seconds, memory, one file, everything it writes, processes."""

    seed_seconds: float
    memory_bytes: int | None
    file_bytes: int
    disk_bytes: int
    processes: int


@dataclass(frozen=True)
class Breach:
    """A limit that a worker has passed: the job's outcome, and a message for people."""

    outcome: Outcome
    message: str


@dataclass(frozen=True)
class StudyJob:
    """What the launch of a study wrote into a run's identity."""

    run: Path
    root: Path
    ledger: Ledger
    job: str
    candidate: str
    phase: str
    worktree: Path
    limits: SeedLimits
    network: bool
    may_go_unenforced: bool
    reads: tuple[Path, ...]
    origin: Mapping[str, Any]
    local_sockets: bool = False
    _measured_at: list[float] = field(default_factory=lambda: [0.0])

    @classmethod
    def of(cls, run: Run) -> StudyJob | None:
        """Return the job of a run; None for a run that no study launched."""
        lineage = run.metadata.get("lineage") or {}
        if "job" not in lineage:
            return None
        root = project.root(run.path.parent.parent)
        try:
            folder = root / ".rlx" / "tasks" / lineage["task"] / "studies" / lineage["study"]
            return cls(
                run=run.path,
                root=root,
                ledger=lawful(folder / "ledger.jsonl"),
                job=str(lineage["job"]),
                candidate=str(lineage["candidate"]),
                phase=str(lineage["phase"]),
                worktree=root / lineage["worktree"],
                limits=SeedLimits(**lineage["limits"]),
                network=bool(lineage["network"]),
                may_go_unenforced=lineage["sandbox"] == "if available",
                reads=tuple(Path(path) for path in lineage["reads"]),
                origin={"commit": lineage["commit"], "diff_sha256": lineage["diff_sha256"]},
                local_sockets=bool(lineage.get("local_sockets")),
            )
        except (KeyError, TypeError) as error:
            raise FileDamaged(f"{run.name}/metadata.json names a study, but not {error}") from None

    @property
    def is_unchanged(self) -> bool:
        """Whether it trains the baseline's code: then a killed worker is not the fault of a candidate."""
        return self.candidate in NULL_LAUNCHES

    def refuse_without_intent(self, run: Run, seeds: Iterable[int]) -> None:
        """Raise unless the study's ledger has an open job for this run, these seeds, and the files as they are now.

        The intent names the run, its config and its identity (limits, worktree, readable folders).
        """
        from rlx.config.load import config_hash, parse

        events = self.ledger.events()
        job = replay(events).jobs.get(self.job)
        intents = [event for event in events if event.kind == "intent" and event["job"] == self.job]
        expected = {"run": run.name, "config": config_hash(parse(run.config)), "identity": identity_of(run)}
        is_intended = len(intents) == 1 and all(intents[0].get(key) == value for key, value in expected.items())
        if job is None or not job.is_open or not set(seeds) <= set(job.seeds) or not is_intended:
            raise Refused(
                f"no open job of the study asked for seeds {', '.join(map(str, seeds))} of {run.name}",
                hint="launch it through the study: rlx next",
            )

    def sandbox_spec(self, seeds: Sequence[int]) -> SandboxSpec:
        """Return what a worker of these seeds may reach: its code, the system, its seeds; nothing of the study.

        It reads the identity and config of its run, but no other seed. It writes only what belongs to its seeds.
        """
        scratch = self._scratch(seeds)
        return SandboxSpec(
            reads=(
                *system_reads(), self.worktree, self.run / METADATA, self.run / SNAPSHOT, *self.reads,
            ),
            writes=(*(self.run / f"seed_{seed}" for seed in seeds), scratch),
            lists=(self.run,),
            folders=((self.run / store.EVALUATIONS, scratch / store.EVALUATIONS),),
            hides=(self.run.parent, self.root / ".rlx"),
            shared_memory=True,
            network=self.network,
            local_sockets=self.local_sockets,
            memory_bytes=self.limits.memory_bytes,
            file_bytes=self.limits.file_bytes,
            processes=self.limits.processes,
        )  # fmt: skip

    def environment_spec(self, seeds: Sequence[int]) -> SandboxSpec:
        """Return what the process with a seed's environments may reach: its code and an own folder, not the seed's.

        So a candidate's code never sees weights, checkpoints or logs, and cannot write them.
        """
        return replace(self.sandbox_spec(seeds), reads=(*system_reads(), self.worktree, *self.reads),
                       writes=(self._scratch(seeds) / ENVIRONMENTS,), lists=(), folders=())  # fmt: skip

    def start_environments(self, seeds: Sequence[int]) -> tuple[socket.socket, SandboxedProcess]:
        """Start the process that runs the candidate's environments, in its own sandbox; return the connection, too."""
        folder = self._scratch(seeds) / ENVIRONMENTS
        environment = {**os.environ, **make_private_home(folder)}
        ours, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-P", "-m", ENV_SERVER, str(self.worktree)]
            command = SandboxedCommand(
                argv, self.environment_spec(seeds), environment, self.worktree, self.may_go_unenforced
            )
            process = start(command, stdin=theirs.fileno(), stdout=2, stderr=2)
        return ours, process

    def _scratch(self, seeds: Sequence[int]) -> Path:
        """Return the folder for a worker's home and temporary files."""
        return self.run / SCRATCH / f"seed_{seeds[0]}"

    def enter_sandbox(self, seeds: Sequence[int], *, has_own_pids: bool = False) -> Enforcement:
        """Put this process, a worker of these seeds, into its sandbox for good; remove bytecode from its worktree.

        `has_own_pids` says that it is the first process of a PID namespace.
        """
        remove_bytecode(self.worktree)
        return enter(
            self.sandbox_spec(seeds), may_go_unenforced=self.may_go_unenforced, shows_own_processes=has_own_pids
        )

    def environment(self, usual: Mapping[str, str], seeds: Sequence[int]) -> dict[str, str]:
        """Return a worker's variables: the usual ones that are in a list, and its own home folder."""
        scratch = self._scratch(seeds)
        for folder in (scratch / store.EVALUATIONS, self.run / store.EVALUATIONS):
            folder.mkdir(parents=True, exist_ok=True)
        return {**job_environment(usual), **make_private_home(scratch), "PYTHONDONTWRITEBYTECODE": "1"}

    def breach(self, seconds: float, *, is_too_large: bool) -> Breach | None:
        """Return the limit that a worker has passed after so many seconds, if any."""
        if seconds > self.limits.seed_seconds:
            minutes = self.limits.seed_seconds / 60
            return Breach("timeout", f"timeout: it took longer than the contract's {minutes:g} minutes per seed")
        if is_too_large:
            most = self.limits.disk_bytes
            return Breach("killed", f"too large: the run takes more than {most:,} bytes on disk")
        return None

    def is_too_large(self, *, at_once: bool = False) -> bool:
        """Say whether the run's folder exceeds its limit; rlx measures it once per second, or at once."""
        now = time.monotonic()
        if now < self._measured_at[0] + SIZE_SECONDS and not at_once:
            return False
        self._measured_at[0] = now
        return size_of(self.run) > self.limits.disk_bytes

    def clean_up(self, seeds: Sequence[Seed]) -> None:
        """Remove files of an ended worker that could mislead a reader, and move its evaluations into the run."""
        scratch = self._scratch([seed.number for seed in seeds])
        for folder in (*(seed.folder for seed in seeds), scratch):
            remove_traps(folder)
        prefixes = (*(f"seed_{seed.number}_" for seed in seeds), store.RANDOM)
        for path in (scratch / store.EVALUATIONS).glob("*/*.json"):
            if path.name.startswith(prefixes) and not path.is_symlink() and _is_evaluation(path):
                target = self.run / path.relative_to(scratch)
                target.parent.mkdir(exist_ok=True)
                os.replace(path, target)

    def record_checkpoints(self, run: Run, seeds: Iterable[Seed]) -> None:
        """Write the hashes of the final checkpoints of these seeds, whose process has ended."""
        if self.phase != "smoke":
            completed = [seed for seed in seeds if _state(seed, is_excused=True) == COMPLETED]
            checkpoint_hashes.record(self.ledger, self.candidate, run, completed)

    def record_start(self, run: Run) -> None:
        """Write once that the job runs; the supervisor is its process, and adopts its orphans."""
        adopt_orphans()
        with self.ledger.held() as held:
            job = replay(held.events).jobs.get(self.job)
            if job is not None and job.is_open and job.process is None:
                held.append("started", job=self.job, run=run.name, process=process.current().document())

    def record_part(self, run: Run, seeds: Sequence[int], end: JobEnd) -> None:
        """Write how one supervisor's seeds ended; the last supervisor of the job closes the job."""
        place = run.path / PARTS
        place.mkdir(exist_ok=True)
        with files.locked(place / "parts"):
            files.write_json(place / f"seed_{seeds[0]}.json", {"schema": 1, "seeds": list(seeds), **end.document()})
            parts = [files.read_json(path) for path in sorted(place.glob("seed_*.json"))]
            job = replay(self.ledger.events()).jobs.get(self.job)
            ended = {seed for part in parts for seed in part["seeds"]}
            if job is not None and ended.issuperset(job.seeds):
                self.record_end(run, JobEnd.merged(parts))

    def record_end(self, run: Run, end: JobEnd) -> None:
        """Write once how the job ended."""
        with contextlib.suppress(RecursionError):  # folders nested without end
            shutil.rmtree(run.path / SCRATCH, ignore_errors=True)
        close(self.ledger, self.job, run, end)


def code_folder(run: Run) -> Path:
    """Return the folder with the code that a study's run ran."""
    return project.root(run.path.parent.parent) / str(run.metadata["lineage"]["worktree"])


def _is_evaluation(path: Path) -> bool:
    """Say whether a file can be read as an evaluation; a worker may have written anything there."""
    try:
        document = files.read_json(path)
        episodes = document.get("episodes") or []
        is_scored = files.is_number(document.get("score", document["mean"]))
        return is_scored and all(isinstance(episode, dict) for episode in episodes)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def identity_of(run: Run) -> str:
    """Return the hash of a run's identity: its limits, its code, what it may read."""
    return files.sha256((run.path / METADATA).read_bytes())


@dataclass(frozen=True)
class JobEnd:
    """What a supervisor knows when its workers have ended."""

    spent: Amount
    was_stopped: bool = False
    is_lost: bool = False
    never_started: frozenset[int] = frozenset()  # the seeds without a worker: no code of a candidate ran for them
    start_error: str = ""
    causes: Mapping[int, Outcome] = field(default_factory=dict)  # what ended a seed, if the supervisor knows

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "spent": self.spent.document(),
            "was_stopped": self.was_stopped,
            "never_started": sorted(self.never_started),
            "start_error": self.start_error,
            "causes": {str(seed): cause for seed, cause in self.causes.items()},
        }

    @classmethod
    def merged(cls, parts: Sequence[Mapping[str, Any]]) -> JobEnd:
        """Return the end of a job whose seeds had supervisors of their own."""
        return cls(
            Amount(
                sum(part["spent"]["seeds"] for part in parts), round(sum(part["spent"]["seconds"] for part in parts), 3)
            ),
            was_stopped=any(part["was_stopped"] for part in parts),
            never_started=frozenset(seed for part in parts for seed in part["never_started"]),
            start_error=next((part["start_error"] for part in parts if part["start_error"]), ""),
            causes={int(seed): cause for part in parts for seed, cause in part["causes"].items()},
        )


def close(ledger: Ledger, job_id: str, run: Run, end: JobEnd) -> None:
    """Write into a ledger how a job's run ended, unless it is written."""
    with ledger.held() as held:
        job = replay(held.events).jobs.get(job_id)
        if job is None or not job.is_open:
            return
        seeds = [Seed(number, run.path / f"seed_{number}") for number in sorted(job.seeds)]
        is_excused = end.was_stopped or end.is_lost or job.candidate in NULL_LAUNCHES
        states = {
            seed.number: _state(seed, is_excused=is_excused or seed.number in end.never_started) for seed in seeds
        }
        reasons = {seed.number: _reason(seed, states[seed.number]) for seed in seeds}
        reasons |= dict.fromkeys(end.never_started, end.start_error)
        held.append(
            "ended", job=job_id, outcome=_outcome(states, reasons, end), spent=end.spent.document(),
            seeds={str(seed): state for seed, state in states.items()}, says=_message(states, reasons)[:MOST_SAID],
        )  # fmt: skip


def _outcome(states: Mapping[int, str], reasons: Mapping[int, str], end: JobEnd) -> Outcome:
    """Return how a job ended: completed if any seed completed, otherwise the cause that ended its seeds."""
    if end.was_stopped:
        return "cancelled"
    if COMPLETED in states.values():
        return "completed"
    if end.is_lost or states.keys() <= end.never_started:
        return "lost"
    causes = set(end.causes.values())
    if any(word in reason for reason in reasons.values() for word in MEMORY_WORDS):
        causes.add("oom")  # by the program's own words
    for cause in ("timeout", "killed", "oom"):
        if cause in causes:
            return cause
    return "failed"


def _message(states: Mapping[int, str], reasons: Mapping[int, str]) -> str:
    """Say why seeds did not complete; seeds with the same reason are named together."""
    by_reason: dict[str, list[str]] = {}
    for seed, reason in reasons.items():
        if reason:
            by_reason.setdefault(f"{states[seed]}: {reason}", []).append(str(seed))
    parts = []
    for reason, seeds in by_reason.items():
        noun = "seed" if len(seeds) == 1 else "seeds"
        parts.append(f"{noun} {', '.join(seeds)} {reason}")
    return "; ".join(parts)


def _state(seed: Seed, *, is_excused: bool) -> str:
    """Return how a seed ended; rlx believes a seed only as far as it can check.

    A seed that says that it completed, but has no policy, failed. So did a seed that was cut off although nothing
    stopped it and its supervisor lived: a candidate's code can do that to a seed that looks bad.
    """
    state = seed.status.state
    if state == COMPLETED and _has_policy(seed):
        return COMPLETED
    if is_excused and state != COMPLETED:
        return state
    return FAILED


def _reason(seed: Seed, state: str) -> str:
    """Say why a seed ended like this; the seed itself may say something else."""
    status = seed.status
    if state == status.state:
        return status.reason
    if status.state == COMPLETED:
        return NO_POLICY
    return f"{SELF_ENDED} ({status.reason or status.state})"


def _has_policy(seed: Seed) -> bool:
    try:
        return checkpoint_hashes.checkpoint_hash(seed) is not None
    except (RlxError, OSError):
        return False


def remove_traps(folder: Path) -> None:
    """Remove pipes, devices, links that lead outside, and extended attributes.

    A reader would wait for them or be misled, and a later seed could read what they say.
    """
    top = folder.resolve()
    waiting = [folder]
    while waiting:
        with contextlib.suppress(OSError):
            for path in list(waiting.pop().iterdir()):
                mode = path.lstat().st_mode
                leads_inside = stat.S_ISLNK(mode) and Path(os.path.realpath(path)).is_relative_to(top)
                if stat.S_ISDIR(mode):
                    waiting.append(path)
                elif not stat.S_ISREG(mode) and not leads_inside:
                    path.unlink()
                    continue
                _remove_attributes(path)


def _remove_attributes(path: Path) -> None:
    with contextlib.suppress(OSError):  # a file system without them
        for name in os.listxattr(path, follow_symlinks=False):
            os.removexattr(path, name, follow_symlinks=False)


def size_of(folder: Path) -> int:
    """Return the bytes that all files and folders below take on disk, each at least `LEAST_BYTES`.

    Files that vanish meanwhile do not count.
    """
    total = 0
    waiting = [os.fspath(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as listing:
            for entry in listing:
                with contextlib.suppress(OSError):
                    total += max(LEAST_BYTES, entry.stat(follow_symlinks=False).st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total
