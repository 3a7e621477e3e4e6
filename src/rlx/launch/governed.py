"""A run that a study launched: its code, its limits and sandbox, the intent it must have, and how its end is written.

What is not covered: the space that all runs take together, and what `sandbox` says is not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx import files, sandbox
from rlx.errors import FileDamaged, Refused, RlxError
from rlx.launch import weights
from rlx.launch.difference import sweep
from rlx.runs import process, project, store
from rlx.runs.run import METADATA, SNAPSHOT, Run, Seed
from rlx.runs.status import COMPLETED, FAILED
from rlx.sandbox import Box, Enforced
from rlx.study.budget import Amount
from rlx.study.ledger import Ledger
from rlx.study.lifecycle import NULL_LAUNCHES
from rlx.study.standing import Outcome
from rlx.study.state import lawful, replay

SCRATCH = ".scratch"
"""The folder in a run where its workers have their homes and temporary files; it goes when they have ended."""
SIZE_SECONDS = 1.0
LEAST_BYTES = 4096
"""What a file or folder counts at least, a block of most disks: a limit on bytes is one on their number, too."""
TIMEOUT, TOO_LARGE = "timeout", "too large"
WEIGHTLESS = "it says that it completed, and left no policy"
SELF_ENDED = "it was cut off, and nobody stopped it"
MOST_SAID = 2000
MEMORY_WORDS = ("out of memory", "MemoryError", "Cannot allocate memory", "Unable to allocate", "bad_alloc")
"""How programs and libraries say that memory was refused to them."""
KEPT = frozenset({"PATH", "LANG", "TERM", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "RLX_ROOT", "MUJOCO_GL"})
KEPT_FAMILIES = ("LC_", "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "SDL_", "PYGAME_",
                 "PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYOPENGL_", "XLA_", "JAX_")  # fmt: skip
"""The variables a governed worker keeps of ours: no secrets, nothing that changes where Python imports from."""


@dataclass(frozen=True)
class Limits:
    """What one seed may use: wall-clock seconds, memory, one file, everything it writes, processes."""

    seed_seconds: float
    memory_bytes: int | None
    file_bytes: int
    disk_bytes: int
    processes: int


@dataclass(frozen=True)
class Governed:
    """What the door wrote into a run's identity."""

    run: Path
    root: Path
    ledger: Ledger
    job: str
    candidate: str
    phase: str
    worktree: Path
    limits: Limits
    network: bool
    may_go_unenforced: bool
    reads: tuple[Path, ...]
    origin: Mapping[str, Any]
    _looked: list[float] = field(default_factory=lambda: [0.0])

    @classmethod
    def of(cls, run: Run) -> Governed | None:
        """Return how a run is governed; None for one that no study launched."""
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
                limits=Limits(**lineage["limits"]),
                network=bool(lineage["network"]),
                may_go_unenforced=lineage["sandbox"] == "if available",
                reads=tuple(Path(path) for path in lineage["reads"]),
                origin={"commit": lineage["commit"], "diff_sha256": lineage["diff_sha256"]},
            )
        except (KeyError, TypeError) as error:
            raise FileDamaged(f"{run.name}/metadata.json names a study, but not {error}") from None

    @property
    def is_null(self) -> bool:
        """Say whether nobody's change is trained: then what ends a worker is not its own doing."""
        return self.candidate in NULL_LAUNCHES

    def refuse_without_intent(self, run: Run, seeds: Iterable[int]) -> None:
        """Raise unless the study's ledger has an open job for this run, these seeds, and the files as they are now."""
        from rlx.config.load import config_hash, parse

        job = replay(self.ledger.events()).jobs.get(self.job)
        wanted = {"run": run.name, "config": config_hash(parse(run.config)), "identity": identity_of(run)}
        if job is None or not job.is_open or not set(seeds) <= set(job.seeds) or not self._is_meant(wanted):
            raise Refused(
                f"no open job of the study asked for seeds {', '.join(map(str, seeds))} of {run.name}",
                hint="launch it through the study: rlx next",
            )

    def _is_meant(self, wanted: Mapping[str, Any]) -> bool:
        """Say whether the intent names this run, its config and its identity (limits, worktree, what it may read)."""
        intents = [event for event in self.ledger.events() if event.kind == "intent" and event["job"] == self.job]
        return len(intents) == 1 and all(intents[0].get(key) == value for key, value in wanted.items())

    def box(self, seeds: Sequence[int]) -> Box:
        """Return what a worker of these seeds may reach: its code, the system, its seeds; nothing of the study.

        Of the run it reads identity and config, never what another seed has learned; it writes what is its seeds' own.
        """
        own = [self.run / f"seed_{seed}" for seed in seeds]
        told = [self.run / name for name in (METADATA, SNAPSHOT)]
        return Box(
            reads=(*sandbox.system_reads(), self.worktree, *told, *self.reads),
            writes=(*own, self._scratch(seeds)),
            lists=(self.run,),
            folders=((self.run / store.EVALUATIONS, self._scratch(seeds) / store.EVALUATIONS),),
            shared_memory=True,
            network=self.network,
            memory_bytes=self.limits.memory_bytes,
            file_bytes=self.limits.file_bytes,
            processes=self.limits.processes,
        )

    def _scratch(self, seeds: Sequence[int]) -> Path:
        """Return a worker's own folder for its home and temporary files."""
        return self.run / SCRATCH / f"seed_{seeds[0]}"

    def enter(self, seeds: Sequence[int]) -> Enforced:
        """Put this process, a worker of these seeds, into its box for good; its worktree holds no compiled code."""
        sweep(self.worktree)
        return sandbox.enter(self.box(seeds), may_go_unenforced=self.may_go_unenforced)

    def environment(self, usual: Mapping[str, str], seeds: Sequence[int]) -> dict[str, str]:
        """Return a worker's variables: of the usual ones those that are known to be harmless, and a home of its own."""
        scratch = self._scratch(seeds)
        for folder in (scratch / store.EVALUATIONS, self.run / store.EVALUATIONS):
            folder.mkdir(parents=True, exist_ok=True)
        return {**harmless(usual), **sandbox.private(scratch), "PYTHONDONTWRITEBYTECODE": "1"}

    def breach(self, seconds: float, *, is_too_large: bool) -> str:
        """Return the limit that a worker has passed after so many seconds; empty where none."""
        if seconds > self.limits.seed_seconds:
            return f"{TIMEOUT}: it took longer than the contract's {self.limits.seed_seconds / 60:g} minutes a seed"
        return f"{TOO_LARGE}: the run takes more than {self.limits.disk_bytes:,} bytes on disk" if is_too_large else ""

    def is_too_large(self, *, at_once: bool = False) -> bool:
        """Say whether the run's folder has outgrown its limit; it is measured once a second, or when asked."""
        now = time.monotonic()
        if now < self._looked[0] + SIZE_SECONDS and not at_once:
            return False
        self._looked[0] = now
        return size_of(self.run) > self.limits.disk_bytes

    def tidy(self, seeds: Sequence[Seed]) -> None:
        """Remove what an ended worker left in its seeds to mislead those who read them; take over its evaluations."""
        scratch = self._scratch([seed.number for seed in seeds])
        for folder in (*(seed.folder for seed in seeds), scratch):
            remove_traps(folder)
        own = tuple(f"seed_{seed.number}_" for seed in seeds)
        for path in (scratch / store.EVALUATIONS).glob("*/*.json"):
            if path.name.startswith((*own, store.RANDOM)) and not path.is_symlink() and _is_evaluation(path):
                to = self.run / path.relative_to(scratch)
                to.parent.mkdir(exist_ok=True)
                os.replace(path, to)

    def weigh(self, run: Run, seeds: Iterable[Seed]) -> None:
        """Write the hashes of what these seeds have learned, now that their process is no more."""
        if self.phase != "smoke":
            completed = [seed for seed in seeds if _state(seed, is_excused=True) == COMPLETED]
            weights.record(self.ledger, self.candidate, run, completed)

    def began(self, run: Run) -> None:
        """Write that the job runs, unless it is written; the supervisor is its process, and adopts its orphans."""
        sandbox.adopt()
        with self.ledger.held() as held:
            job = replay(held.events).jobs.get(self.job)
            if job is not None and job.is_open and job.process is None:
                held.append("started", job=self.job, run=run.name, process=process.current().document())

    def ended(self, run: Run, ending: Ending) -> None:
        """Write how the job ended, once."""
        with contextlib.suppress(RecursionError):  # folders in folders without end
            shutil.rmtree(run.path / SCRATCH, ignore_errors=True)
        close(self.ledger, self.job, run, ending)


def tree_of(run: Run) -> Path:
    """Return the folder whose code a study's run ran."""
    return project.root(run.path.parent.parent) / str(run.metadata["lineage"]["worktree"])


def _is_evaluation(path: Path) -> bool:
    """Say whether a file reads as an evaluation; what else a worker wrote there is none."""
    try:
        document = files.read_json(path)
        episodes = document.get("episodes") or []
        return files.is_number(document.get("score", document["mean"])) and all(
            isinstance(one, dict) for one in episodes
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def identity_of(run: Run) -> str:
    """Return the hash of what a run was made with: its limits, its code, what it may read."""
    return files.sha256((run.path / METADATA).read_bytes())


@dataclass(frozen=True)
class Ending:
    """What a supervisor knows when its workers are no more."""

    spent: Amount
    was_stopped: bool = False
    is_lost: bool = False
    idle: frozenset[int] = frozenset()
    """The seeds that no worker was begun for: nothing of a candidate's ran."""
    trouble: str = ""
    """Why none was."""


def close(ledger: Ledger, identity: str, run: Run, ending: Ending) -> None:
    """Write into a ledger how a job's run ended, unless that is there."""
    with ledger.held() as held:
        job = replay(held.events).jobs.get(identity)
        if job is None or not job.is_open:
            return
        seeds = [Seed(number, run.path / f"seed_{number}") for number in sorted(job.seeds)]
        is_excused = ending.was_stopped or ending.is_lost or job.candidate in NULL_LAUNCHES
        states = {seed.number: _state(seed, is_excused=is_excused or seed.number in ending.idle) for seed in seeds}
        outcome, says = outcome_of(seeds, states, ending)
        held.append(
            "ended", job=identity, outcome=outcome, seeds={str(seed): how for seed, how in states.items()},
            spent=ending.spent.document(), says=says[:MOST_SAID],
        )  # fmt: skip


def outcome_of(seeds: Sequence[Seed], states: Mapping[int, str], ending: Ending) -> tuple[Outcome, str]:
    """Return how a job ended: completed where any seed did, else by what ended its seeds."""
    reasons = {seed.number: _reason(seed, states[seed.number]) for seed in seeds}
    reasons |= dict.fromkeys(ending.idle, ending.trouble)
    alike: dict[str, list[str]] = {}
    for seed, reason in reasons.items():
        alike.setdefault(f"{states[seed]}: {reason}" if reason else "", []).append(str(seed))
    says = "; ".join(f"seed{'s'[: len(which) > 1]} {', '.join(which)} {how}" for how, which in alike.items() if how)
    found: dict[Outcome, bool] = {
        "cancelled": ending.was_stopped,
        "completed": COMPLETED in states.values(),
        "lost": ending.is_lost or states.keys() <= ending.idle,
        "timeout": any(reason.startswith(TIMEOUT) for reason in reasons.values()),
        "killed": any(reason.startswith(TOO_LARGE) for reason in reasons.values()),
        "oom": any(word in reason for reason in reasons.values() for word in MEMORY_WORDS),
    }
    return next((outcome for outcome, is_so in found.items() if is_so), "failed"), says


def _state(seed: Seed, *, is_excused: bool) -> str:
    """Return how a seed ended; what it says of itself counts as far as we saw it.

    One that says that it completed, and has no policy to measure, failed. So did one that was cut off while nobody
    stopped it and its supervisor lived: a candidate's code can do that to a seed that looks bad.
    """
    state = seed.status.state
    if state == COMPLETED:
        return COMPLETED if _has_policy(seed) else FAILED
    return state if is_excused else FAILED


def _reason(seed: Seed, state: str) -> str:
    """Say why a seed ended so, where what it says itself is another thing."""
    said = seed.status
    if state == said.state:
        return said.reason
    return WEIGHTLESS if said.state == COMPLETED else f"{SELF_ENDED} ({said.reason or said.state})"


def _has_policy(seed: Seed) -> bool:
    try:
        return weights.weights_of(seed) is not None
    except (RlxError, OSError):
        return False


def remove_traps(folder: Path) -> None:
    """Remove what is neither file nor folder, and links that lead out: a reader would wait, or be misled."""
    top, waiting = folder.resolve(), [folder]
    while waiting:
        with contextlib.suppress(OSError):
            for path in list(waiting.pop().iterdir()):
                mode = path.lstat().st_mode
                if stat.S_ISDIR(mode):
                    waiting.append(path)
                elif not stat.S_ISREG(mode) and not (stat.S_ISLNK(mode) and _leads_into(path, top)):
                    path.unlink()


def _leads_into(link: Path, top: Path) -> bool:
    return Path(os.path.realpath(link)).is_relative_to(top)


def harmless(usual: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell a candidate's code nothing, and change nothing about what it imports."""
    return {name: value for name, value in usual.items() if name in KEPT or name.startswith(KEPT_FAMILIES)}


def size_of(folder: Path) -> int:
    """Return the bytes that a folder's files and folders take on disk, each at least `LEAST_BYTES`, however deep.

    What vanishes meanwhile does not count.
    """
    total, waiting = 0, [os.fspath(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as listing:
            for entry in listing:
                with contextlib.suppress(OSError):
                    total += max(LEAST_BYTES, entry.stat(follow_symlinks=False).st_blocks * 512)
                    waiting += [entry.path] if entry.is_dir(follow_symlinks=False) else []
    return total
