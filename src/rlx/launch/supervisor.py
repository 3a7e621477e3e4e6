"""The detached parent of a run's workers: starts them within the machine's limits, forwards signals, records outcomes.

It holds the run's lock. If it dies, its workers die; it survives the process that started it.
Not covered: a power failure, and workers on other machines.
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

from rlx import files
from rlx.errors import FileDamaged, RlxError
from rlx.launch.executors.executor import PART, PAUSED_EXIT, is_job_cancelled
from rlx.launch.gpu_lease import GpuLease, take
from rlx.launch.processes import spawn
from rlx.launch.processes.forked_process import keep_only
from rlx.launch.resources import Slots, oom_kills, pause_step, supervisor_environment, worker_environment
from rlx.launch.worker import STOP_SIGNALS
from rlx.runs import process, project, store, untrusted_rows
from rlx.runs.failure_line import failure_line
from rlx.runs.job_folder import LOCAL
from rlx.runs.run import SUPERVISOR, Run, Seed, part_supervisor
from rlx.runs.status import ENDED, FAILED, INTERRUPTED, LOST
from rlx.sandbox.process_tree import adopt_orphans, kill_descendants, kill_group

if TYPE_CHECKING:
    from rlx.launch.study_jobs.study_job import Breach, JobEnd, StudyJob
    from rlx.study.ledger.records import Outcome

POLL_SECONDS = 0.02
GRACE_SECONDS = 30.0
REFUSED_EXIT = 4
LOG_TAIL_BYTES = 2**16


def main(argv: list[str]) -> int:
    """Supervise the seeds `argv[1:]` of the run at `argv[0]`; exit with 4 if another supervisor has the run.

    With `--part`, other supervisors train other seeds of the run at the same time, perhaps on other machines. A signal
    then pauses the seed, unless its job was cancelled; the exit code is `PAUSED_EXIT`.
    Without arguments, do the imports first and then read the arguments from stdin. If the caller closes stdin, there
    is nothing to supervise.
    """
    argv = argv or _read_arguments()
    if not argv:
        return 0
    is_part = PART in argv
    argv = [word for word in argv if word != PART]
    run = Run(Path(argv[0]))
    if "job" in (run.metadata.get("lineage") or {}):
        _start_with_known_variables([*argv, PART] if is_part else argv)
    os.chdir(run.path)
    (run.path / "logs").mkdir(exist_ok=True)
    with (run.path / "logs" / "supervisor.log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    own_file = run.path / SUPERVISOR
    if is_part:
        own_file = part_supervisor(run.path, int(argv[1]))
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(own_file, wait=False))
        except BlockingIOError:
            return REFUSED_EXIT
        seeds = [run.seed(int(number)) for number in argv[1:]]
        if is_part and not _has_work_left(run, [seed.number for seed in seeds]):
            return 0  # a job that was submitted twice, or interrupted after its last step
        slots = _slots(run)
        files.write_json(own_file, {"schema": 1, **process.current().document(), "seeds": argv[1:]})
        workers = len(seeds)
        if run.metadata.get("together") and not is_part and not run.metadata.get("lineage", {}).get("job"):
            workers = len(slots.places)  # a study's seeds never share a process
        try:
            is_paused = _supervise(run, slots, groups(seeds, workers), is_part=is_part)
        finally:
            own_file.unlink(missing_ok=True)
    if is_paused:
        return PAUSED_EXIT
    return 0


def _start_with_known_variables(argv: Sequence[str]) -> None:
    """Start this supervisor of a study's job again, unless it was started with listed variables only."""
    known = supervisor_environment(os.environ)
    if known.keys() != os.environ.keys():
        command = [sys.executable, "-P", "-m", __spec__.name, *argv]
        os.execve(sys.executable, command, known)  # noqa: S606


def _read_arguments() -> list[str]:
    """Import what workers need while the caller checks its config, then return the arguments that it sends."""
    spawn.preload()
    line = sys.stdin.buffer.readline()
    argv: list[str] = files.decode(line) if line else []
    return argv


def wait_for_run(source: int) -> int:
    """Supervise the run that is named on this descriptor, in a process that was forked for it."""
    keep_only(source, os.open(os.devnull, os.O_WRONLY))
    sys.stdin = os.fdopen(0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return main([])


def _slots(run: Run) -> Slots:
    """Return the places for a run's seeds: the machine's, or those that a study's launch assigned.

    A launch on this machine assigns GPUs. At another executor it only says how many places there are.
    """
    lineage = run.metadata.get("lineage") or {}
    assigned = tuple(lineage.get("slots") or ())
    if assigned and lineage.get("executor") == LOCAL:
        return Slots(assigned)
    return Slots(Slots.of(run.config).places[: len(assigned) or None])


def _supervise(run: Run, slots: Slots, waiting: list[tuple[Seed, ...]], *, is_part: bool) -> bool:
    """Train seeds and record a study's job; return whether they were paused and are to be continued."""
    seeds = [seed.number for group in waiting for seed in group]
    if "job" not in (run.metadata.get("lineage") or {}):
        supervisor = Supervisor(run, slots, waiting, is_part=is_part)
        supervisor.work()
        return supervisor.is_paused and _has_work_left(run, seeds)
    from rlx.launch.study_jobs.study_job import StudyJob

    job = StudyJob.of(run)
    assert job is not None
    job.record_start(run)
    supervisor = Supervisor(run, slots, waiting, study_job=job, is_part=is_part)
    is_paused = False
    try:
        supervisor.work()
    finally:  # a job always gets an end, unless it is to be continued
        is_paused = supervisor.is_paused and _has_work_left(run, seeds)
        with contextlib.suppress(OSError):  # a full disk: `reconcile` closes a job without an end
            if not is_part:
                job.record_end(Run(run.path), supervisor.job_end)
            elif not is_paused:
                job.record_part(Run(run.path), seeds, supervisor.job_end)
    return is_paused


def _has_work_left(run: Run, seeds: Sequence[int]) -> bool:
    """Say whether a seed has neither completed nor reached its pause, according to its folder as it is now."""
    view = Run(run.path)
    return not all(view.is_finished(view.seed(seed)) or _has_paused(view.seed(seed)) for seed in seeds)


def _has_paused(seed: Seed) -> bool:
    """Say whether a seed has saved a checkpoint at the step at which this job pauses it, or after it."""
    step = pause_step()
    if step is None:
        return False
    from rlx.runs.checkpoints import checkpoint

    try:
        newest = checkpoint.newest(seed.checkpoints)
    except RlxError:  # the worker reports what is wrong with its checkpoints
        return False
    return newest is not None and newest.step >= step


def groups(seeds: Sequence[Seed], most: int) -> list[tuple[Seed, ...]]:
    """Distribute seeds evenly over at most `most` workers."""
    count = min(most, len(seeds))
    return [tuple(seeds[index::count]) for index in range(count)]


@dataclass
class _Worker:
    seeds: tuple[Seed, ...]
    process: spawn.WorkerProcess
    lease: GpuLease
    started: float
    oom_kills: int | None
    breach: Breach | None = None  # the limit that it passed and was killed for
    is_too_large: bool = False  # it left more than it may, however quickly it ended


@dataclass
class Supervisor:
    """The workers of one run, as many at the same time as cores and GPUs allow; each trains one or several seeds."""

    run: Run
    slots: Slots
    waiting: list[tuple[Seed, ...]]
    study_job: StudyJob | None = None
    is_part: bool = False
    is_paused: bool = False
    workers: list[_Worker] = field(default_factory=list)
    ended: list[tuple[_Worker, float]] = field(default_factory=list)  # with the seconds that each took
    stop_signal: str = ""
    start_error: OSError | None = None
    causes: dict[int, Outcome] = field(default_factory=dict)  # what ended a seed, if the supervisor knows
    kill_at: float = float("inf")

    def work(self) -> None:
        """Train every waiting seed, until all have ended or a signal asks to stop."""
        self._catch_signals()
        if spawn.can_fork(self.run.config):
            spawn.preload()
        while self.workers or self._may_start:
            while self._may_start and (free := self._free_places()):
                self._start_next(take(free))
            self._collect()
            self._enforce_limits()
            if time.monotonic() >= self.kill_at:
                self._signal_workers(signal.SIGKILL)
                self.kill_at = time.monotonic() + GRACE_SECONDS
            time.sleep(POLL_SECONDS)
        if self.start_error is not None:
            raise self.start_error

    @property
    def _may_start(self) -> bool:
        return bool(self.waiting) and not self.stop_signal and self.start_error is None

    def _free_places(self) -> tuple[str | None, ...]:
        return self.slots.without([worker.lease.gpus for worker in self.workers]).places

    @property
    def job_end(self) -> JobEnd:
        """What a study's ledger records at the end: how many seeds were started, and how long they took."""
        from rlx.launch.study_jobs.study_job import JobEnd
        from rlx.study.budget import Amount

        error = ""
        if self.start_error:
            error = f"no worker could be started: {self.start_error}"
        return JobEnd(
            Amount(
                sum(len(worker.seeds) for worker, _ in self.ended), round(sum(seconds for _, seconds in self.ended), 3)
            ),
            was_stopped=bool(self.stop_signal),
            never_started=frozenset(seed.number for group in self.waiting for seed in group),
            start_error=error,
            causes=self.causes,
        )

    def _catch_signals(self) -> None:
        if self.run.is_opaque:  # a program can move to other sessions
            adopt_orphans()
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)
        if self.is_part:
            signal.signal(signal.SIGUSR1, self._stop)

    def _stop(self, number: int, _frame: object) -> None:
        # A scheduler may signal every process of a job, so SIGTERM alone does not mean that somebody stopped the run.
        self.is_paused = self.is_part and not is_job_cancelled()
        self.stop_signal = signal.Signals(number).name
        self.kill_at = min(self.kill_at, time.monotonic() + GRACE_SECONDS)
        self._signal_workers(signal.SIGTERM)

    def _start_next(self, lease: GpuLease) -> None:
        """Start a worker for the next seeds; seeds that this machine cannot start stay in `waiting`."""
        try:
            self._start(self.waiting[0], lease)
        except OSError as error:
            lease.end()
            self.start_error = error
        else:
            self.waiting.pop(0)

    def _start(self, seeds: tuple[Seed, ...], lease: GpuLease) -> None:
        root = self.study_job.worktree if self.study_job else project_of(self.run)
        environment = worker_environment(self.run.config, root=root, gpu=lease.gpus)
        if self.study_job:
            environment = self.study_job.environment(environment, [seed.number for seed in seeds])
        setup = spawn.WorkerSetup(environment, root, _log_of(self.run, seeds))
        argv = [str(self.run.path), *(str(seed.number) for seed in seeds)]
        child = spawn.start_worker(argv, setup, is_forked=spawn.can_fork(self.run.config))
        self.workers.append(_Worker(seeds, child, lease, time.monotonic(), oom_kills()))
        if self.stop_signal:  # it arrived while the worker was being started
            self._signal_workers(signal.SIGTERM)

    def _collect(self) -> None:
        """Record the outcome of every worker that has ended."""
        for worker in list(self.workers):
            if worker.process.poll() is None:
                continue
            self.workers.remove(worker)
            self.ended.append((worker, time.monotonic() - worker.started))
            kill_group(worker.process.pid)  # processes that the worker left behind
            worker.lease.end()
            if self.study_job or self.run.is_opaque:  # those may have moved to other groups
                with contextlib.suppress(TimeoutError):  # a process that waits for a disk cannot be killed
                    kill_descendants(os.getpid(), spare=tuple(other.process.pid for other in self.workers))
            if self.study_job:
                self.study_job.clean_up(worker.seeds)
                worker.is_too_large = self.study_job.is_too_large(at_once=True)
            for seed in worker.seeds:
                self._record_silent_end(worker, seed)
            if self.study_job:
                with contextlib.suppress(OSError, RlxError):  # a full disk: rlx records the hash when it measures
                    seeds = [Seed(seed.number, seed.folder) for seed in worker.seeds]
                    self.study_job.record_checkpoints(self.run, seeds)

    def _enforce_limits(self) -> None:
        """Kill the workers of a study's run that have passed a limit."""
        if self.study_job is None:
            return
        is_too_large = self.study_job.is_too_large()
        for worker in self.workers:
            breach = self.study_job.breach(time.monotonic() - worker.started, is_too_large=is_too_large)
            if breach and not worker.breach:
                worker.breach = breach
                kill_group(worker.process.pid)

    def _record_silent_end(self, worker: _Worker, seed: Seed) -> None:
        """Record the outcome of a seed whose worker did not record it, or left files that cannot be read."""
        with contextlib.suppress(OSError):  # a full disk or a moved project: the seed then counts as lost or failed
            damage = store.set_damage_aside(seed)
            if damage or worker.is_too_large or not _is_recorded(Seed(seed.number, seed.folder), worker.process.pid):
                state, reason, cause = self._outcome(worker, damage)
                if cause:
                    self.causes[seed.number] = cause
                row = {"event": state, "time": time.time(), "reason": reason, "exit": worker.process.returncode}
                files.append_line(seed.folder / untrusted_rows.EVENTS, files.encode(row))

    def _outcome(self, worker: _Worker, damage: str) -> tuple[str, str, Outcome | None]:
        """Return the state, the reason and, if it is known, the cause of an end that the worker did not record."""
        code = worker.process.returncode
        assert code is not None  # it has ended
        breach = worker.breach
        if self.study_job and not breach:
            breach = self.study_job.breach(0.0, is_too_large=worker.is_too_large)
        if breach:
            return FAILED, breach.message, breach.outcome
        if damage:
            return FAILED, damage, None
        if self.stop_signal and code == -signal.SIGKILL:
            return INTERRUPTED, f"{self.stop_signal}: killed, it did not end within {GRACE_SECONDS:.0f} s", None
        if self.stop_signal:
            return INTERRUPTED, f"{self.stop_signal} before training began", None
        if code >= 0:
            return FAILED, _last_error(_log_of(self.run, worker.seeds)) or f"worker exited {code}", None
        # A candidate's own code can kill its worker; without a candidate, the machine did it.
        is_candidate = self.study_job is not None and not self.study_job.is_unchanged
        state = FAILED if is_candidate else LOST
        reason = f"worker killed by {signal.Signals(-code).name}"
        note = _memory_note(worker, code)
        return state, reason + note, "oom" if note else None

    def _signal_workers(self, number: signal.Signals) -> None:
        for worker in self.workers:
            if number == signal.SIGKILL:
                kill_group(worker.process.pid)
            else:
                with contextlib.suppress(ProcessLookupError):
                    worker.process.send_signal(number)


def _is_recorded(seed: Seed, pid: int) -> bool:
    """Say whether a worker recorded how its seed ended."""
    if not seed.events or seed.events[-1]["event"] not in ENDED:
        return False
    starts = [event.get("process") for event in seed.events if event["event"] == "started"]
    worker = process.from_document(starts[-1]) if starts else None
    return worker is not None and worker.pid == pid


def project_of(run: Run) -> Path:
    """Return the root of the project that holds a run: the folder above `runs/`."""
    return project.root(run.path.parent.parent)


def _memory_note(worker: _Worker, code: int) -> str:
    """Say whether the kernel killed a worker because memory ran out; with a question mark if it does not tell."""
    now = oom_kills()
    if code != -signal.SIGKILL or (now is not None and now == worker.oom_kills):
        return ""
    return " (out of memory?)" if now is None else " (out of memory)"


def _log_of(run: Run, seeds: tuple[Seed, ...]) -> Path:
    """Return the log of a worker, which is named after its first seed."""
    return run.path / "logs" / f"seed_{seeds[0].number}.log"


def _last_error(path: Path) -> str:
    """Return the line in which a worker printed why it failed."""
    try:
        with files.reading(path) as stream:
            stream.seek(-min(LOG_TAIL_BYTES, stream.seek(0, os.SEEK_END)), os.SEEK_END)
            return failure_line(stream.read().decode("utf-8", "replace"))[:500]
    except (OSError, FileDamaged):
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
