"""The detached parent of a run's workers: starts them within the machine, forwards signals, writes every outcome.

It holds the run's lease; workers die with it, it dies with nobody.
What is not covered: the machine's power, and workers on other machines.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlx import files, sandbox
from rlx.errors import FileDamaged, RlxError
from rlx.launch import workers
from rlx.launch.executor import LOCAL
from rlx.launch.forked import hold_only
from rlx.launch.resources import Slots, oom_kills, worker_environment
from rlx.launch.worker import STOP_SIGNALS
from rlx.runs import process, project, store, written
from rlx.runs.outcry import outcry
from rlx.runs.run import SUPERVISOR, Run, Seed
from rlx.runs.status import ENDED, FAILED, INTERRUPTED, LOST

if TYPE_CHECKING:
    from rlx.launch.governed import Ending, Governed

POLL_SECONDS = 0.02
GRACE_SECONDS = 30.0
REFUSED_EXIT = 4
LOG_TAIL_BYTES = 2**16


def main(argv: list[str]) -> int:
    """Supervise the seeds `argv[1:]` of the run at `argv[0]`; exit 4 where another supervisor holds it.

    Without arguments, import first and read them from stdin; a caller that closes it has no run after all.
    """
    argv = argv or _awaited()
    if not argv:
        return 0
    run = Run(Path(argv[0]))
    _settle_in(run)
    with contextlib.ExitStack() as lease:
        try:
            lease.enter_context(files.locked(run.path / SUPERVISOR, wait=False))
        except BlockingIOError:
            return REFUSED_EXIT
        seeds = [run.seed(int(number)) for number in argv[1:]]
        slots = _slots(run)
        files.write_json(run.path / SUPERVISOR, {"schema": 1, **process.current().document(), "seeds": argv[1:]})
        together = groups(seeds, len(slots.places) if run.metadata.get("together") else len(seeds))
        try:
            _supervise(run, slots, together)
        finally:
            (run.path / SUPERVISOR).unlink(missing_ok=True)
    return 0


def _slots(run: Run) -> Slots:
    """Return the places of a run's seeds: the machine's, and of a study's run those that its door gave it.

    That door names GPUs where it stands on this machine; at an engine it only says how many places there are.
    """
    lineage = run.metadata.get("lineage") or {}
    machine, given = Slots.of(run.config), tuple(lineage.get("slots") or ())
    if given and lineage.get("executor") == LOCAL:
        return Slots(given)
    return Slots(machine.places[: len(given) or None])


def _supervise(run: Run, slots: Slots, waiting: list[tuple[Seed, ...]]) -> None:
    if "job" not in (run.metadata.get("lineage") or {}):
        Supervisor(run, slots, waiting).work()
        return
    from rlx.launch.governed import Governed

    governed = Governed.of(run)
    assert governed is not None
    governed.began(run)
    supervisor = Supervisor(run, slots, waiting, governed=governed)
    try:
        supervisor.work()
    finally:  # whatever happened: a job has an end
        with contextlib.suppress(OSError):  # a full disk: `reconcile` finds a job without an end
            governed.ended(Run(run.path), supervisor.ending)


def wait_for_run(source: int) -> int:
    """Supervise, in a process that was forked for it, the run that is named on this descriptor."""
    hold_only(source, os.open(os.devnull, os.O_WRONLY))
    sys.stdin = os.fdopen(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return main([])


def _awaited() -> list[str]:
    """Import what workers need while the caller checks its config, then return what it hands us."""
    workers.warm()
    line = sys.stdin.buffer.readline()
    argv: list[str] = files.decode(line) if line else []
    return argv


def _settle_in(run: Run) -> None:
    """Work in the run's folder and print into its log."""
    os.chdir(run.path)
    logs = run.path / "logs"
    logs.mkdir(exist_ok=True)
    with (logs / "supervisor.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def groups(seeds: Sequence[Seed], most: int) -> list[tuple[Seed, ...]]:
    """Share seeds out to at most so many workers, as evenly as can be."""
    count = min(most, len(seeds))
    return [tuple(seeds[index::count]) for index in range(count)]


@dataclass
class _Worker:
    seeds: tuple[Seed, ...]
    process: workers.Worker
    gpu: str | None
    began: float
    oom_kills: int | None
    breach: str = ""
    """The limit it passed, for which it was killed."""
    is_too_large: bool = False
    """Whether it left more than it may, however quickly it ended."""


@dataclass
class Supervisor:
    """One run's workers, as many side by side as cores and GPUs allow; each trains one seed, or several together."""

    run: Run
    slots: Slots
    waiting: list[tuple[Seed, ...]]
    governed: Governed | None = None
    workers: list[_Worker] = field(default_factory=list)
    ended: list[tuple[_Worker, float]] = field(default_factory=list)
    """The workers that are no more, and how many seconds each took."""
    stop_signal: str = ""
    trouble: OSError | None = None
    """Why this machine could not start a worker."""
    kill_at: float = float("inf")

    def work(self) -> None:
        """Train every waiting seed, until all have ended or a signal asks to stop."""
        self._catch_signals()
        if workers.can_fork(self.run.config):
            workers.warm()
        while self.workers or self._may_begin:
            while self._may_begin and (free := self._free):
                self._begin(gpu=free[0])
            self._collect()
            self._enforce()
            if time.monotonic() >= self.kill_at:
                self._signal_workers(signal.SIGKILL)
                self.kill_at = time.monotonic() + GRACE_SECONDS
            time.sleep(POLL_SECONDS)
        if self.trouble is not None:
            raise self.trouble

    @property
    def _may_begin(self) -> bool:
        return bool(self.waiting) and not self.stop_signal and self.trouble is None

    def _begin(self, *, gpu: str | None) -> None:
        """Start the next worker; where this machine cannot, those that run go on to their end and no other begins."""
        try:
            self._start(self.waiting[0], gpu=gpu)
        except OSError as error:
            self.trouble = error
        else:
            self.waiting.pop(0)

    @property
    def _free(self) -> tuple[str | None, ...]:
        return self.slots.without([worker.gpu for worker in self.workers]).places

    @property
    def ending(self) -> Ending:
        """What a study's ledger is told when all is over: how many seeds were begun, and what they took."""
        from rlx.launch.governed import Ending
        from rlx.study.budget import Amount

        seeds = sum(len(worker.seeds) for worker, _ in self.ended)
        return Ending(
            Amount(seeds, round(sum(took for _, took in self.ended), 3)),
            was_stopped=bool(self.stop_signal),
            idle=frozenset(seed.number for together in self.waiting for seed in together),
            trouble=f"no worker could be started: {self.trouble}" if self.trouble else "",
        )

    def _catch_signals(self) -> None:
        if self.run.is_opaque:  # a program moves to sessions of its own
            sandbox.adopt()
        for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(caught) is not signal.SIG_IGN:
                signal.signal(caught, self._stop)

    def _stop(self, number: int, _frame: object) -> None:
        self.stop_signal = signal.Signals(number).name
        self.kill_at = min(self.kill_at, time.monotonic() + GRACE_SECONDS)
        self._signal_workers(signal.SIGTERM)

    def _start(self, seeds: tuple[Seed, ...], *, gpu: str | None) -> None:
        root = self.governed.worktree if self.governed else project_of(self.run)
        environment = worker_environment(self.run.config, root=root, gpu=gpu)
        if self.governed:
            environment = self.governed.environment(environment, [seed.number for seed in seeds])
        place = workers.Place(environment, root, _log_of(self.run, seeds))
        argv = [str(self.run.path), *(str(seed.number) for seed in seeds)]
        process = workers.start(argv, place, is_forked=workers.can_fork(self.run.config))
        self.workers.append(_Worker(seeds, process, gpu, time.monotonic(), oom_kills()))
        if self.stop_signal:  # it came while the worker was being born
            self._signal_workers(signal.SIGTERM)

    def _collect(self) -> None:
        for worker in list(self.workers):
            if worker.process.poll() is not None:
                self.workers.remove(worker)
                self.ended.append((worker, time.monotonic() - worker.began))
                _kill_group(worker.process.pid, signal.SIGKILL)  # whatever the worker left behind
                if self.governed or self.run.is_opaque:
                    _reap(spare=[other.process.pid for other in self.workers])
                if self.governed:
                    self.governed.tidy(worker.seeds)
                    worker.is_too_large = self.governed.is_too_large(at_once=True)
                for seed in worker.seeds:
                    self._settle(worker, seed)
                if self.governed:
                    self._weigh(self.governed, worker)

    def _enforce(self) -> None:
        """Kill the workers of a governed run that have passed a limit."""
        if self.governed is None:
            return
        is_too_large = self.governed.is_too_large()
        for worker in self.workers:
            breach = self.governed.breach(time.monotonic() - worker.began, is_too_large=is_too_large)
            if breach and not worker.breach:
                worker.breach = breach
                _kill_group(worker.process.pid, signal.SIGKILL)

    def _settle(self, worker: _Worker, seed: Seed) -> None:
        """Write the outcome of a seed whose worker ended without a word about it, or left files that do not read."""
        with contextlib.suppress(OSError):  # a full disk or a moved project: the seed then counts as lost, or failed
            damage = store.set_damage_aside(seed)
            if damage or worker.is_too_large or not _has_said(Seed(seed.number, seed.folder), worker.process.pid):
                state, reason = self._silent_end(worker, damage)
                row = {"event": state, "time": time.time(), "reason": reason, "exit": worker.process.returncode}
                files.append_line(seed.folder / written.EVENTS, files.encode(row))

    def _weigh(self, governed: Governed, worker: _Worker) -> None:
        with contextlib.suppress(OSError, RlxError):  # a full disk: it is recorded when it is measured
            governed.weigh(self.run, [Seed(seed.number, seed.folder) for seed in worker.seeds])

    def _silent_end(self, worker: _Worker, damage: str) -> tuple[str, str]:
        code = worker.process.returncode
        assert code is not None  # it was collected
        breach = worker.breach
        if self.governed and not breach:
            breach = self.governed.breach(0.0, is_too_large=worker.is_too_large)
        if breach or damage:
            return FAILED, breach or damage
        if self.stop_signal:
            was_killed = f": killed, it did not end within {GRACE_SECONDS:.0f} s"
            return INTERRUPTED, self.stop_signal + (was_killed if code == -signal.SIGKILL else " before training began")
        if code < 0:
            is_own_doing = self.governed is not None and not self.governed.is_null
            told = f"worker killed by {signal.Signals(-code).name}{_why(worker, code)}"
            return FAILED if is_own_doing else LOST, told
        return FAILED, _log_tail(_log_of(self.run, worker.seeds)) or f"worker exited {code}"

    def _signal_workers(self, number: signal.Signals) -> None:
        for worker in self.workers:
            if number == signal.SIGKILL:
                _kill_group(worker.process.pid, number)
            else:
                with contextlib.suppress(ProcessLookupError):
                    worker.process.send_signal(number)


def _has_said(seed: Seed, pid: int) -> bool:
    """Say whether a worker wrote down how its seed ended."""
    is_over = bool(seed.events) and seed.events[-1]["event"] in ENDED
    began = [event.get("process") for event in seed.events if event["event"] == "started"]
    worker = process.from_document(began[-1]) if began else None
    return is_over and worker is not None and worker.pid == pid


def project_of(run: Run) -> Path:
    """Return the root of the project that holds a run: the folder above `runs/`."""
    return project.root(run.path.parent.parent)


def _why(worker: _Worker, code: int) -> str:
    """Say whether it was the kernel that killed a worker for want of memory, where that can be told."""
    now = oom_kills()
    if code != -signal.SIGKILL or (now is not None and now == worker.oom_kills):
        return ""
    return " (out of memory)" if now is not None else " (out of memory?)"


def _kill_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _reap(spare: Sequence[int]) -> None:
    """Kill what an ended worker left behind, wherever it moved to."""
    with contextlib.suppress(TimeoutError):  # it cannot be killed: it waits for a disk
        sandbox.reap(os.getpid(), spare=tuple(spare))


def _log_of(run: Run, seeds: tuple[Seed, ...]) -> Path:
    """Return the log of a worker: named by its seed, by the first of several."""
    return run.path / "logs" / f"seed_{seeds[0].number}.log"


def _log_tail(path: Path) -> str:
    """Return the line in which a worker wrote why it failed."""
    try:
        with files.reading(path) as stream:
            stream.seek(-min(LOG_TAIL_BYTES, stream.seek(0, os.SEEK_END)), os.SEEK_END)
            return outcry(stream.read().decode("utf-8", "replace"))[:500]
    except (OSError, FileDamaged):
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
