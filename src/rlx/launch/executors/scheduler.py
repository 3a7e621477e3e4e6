"""What the executors of a cluster share: send many jobs at once, ask once for all of them, find a lost answer again.

rlx writes where it will send a job before it sends it. If the answer is lost, the next submission asks the scheduler
for that name before it sends the job again. All processes of a project share one answer of the scheduler, which is
renewed at most once per `poll_seconds`. The job's folder decides; the scheduler only explains a job that its folder
does not show as running or ended.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlx import files
from rlx.errors import JobFailed
from rlx.launch.executors.executor import JOB, PAUSED, Executor, Job, JobStatus, read_document
from rlx.runs.job_folder import CANCELLED, FORGOTTEN, SUBMITTED

SENDING = "sending.json"
Phase = Literal["waiting", "running", "ended", "cancelled", "preempted"]


@dataclass(frozen=True)
class QueueEntry:
    """What a scheduler says about one job: its own id, the phase, and the words that it used."""

    id: str
    phase: Phase
    says: str = ""


@dataclass(frozen=True)
class Queue:
    """A scheduler's last answer about all jobs, by the name that rlx gave them, and when it came."""

    asked: float = 0.0
    answered: float = 0.0
    entries: Mapping[str, QueueEntry] = field(default_factory=dict)
    problem: str = ""


_last_queues: dict[Path, Queue] = {}
"""The answers that this process has read. A list or a sweep makes an executor per run, and all of them share these."""


class SchedulerUnreachable(JobFailed):
    """The scheduler gave no answer. That says nothing about any job."""


class Scheduler(Executor):
    """An executor with a queue of its own. Each seed of a run is one job."""

    splits_seeds = True

    @abstractmethod
    def send(self, jobs: Sequence[Job]) -> None:
        """Give jobs to the scheduler; write `SENDING` before and `SUBMITTED` after."""

    @abstractmethod
    def ask(self) -> Mapping[str, QueueEntry]:
        """Return what the scheduler says about every job of this user, by name. Raises `SchedulerUnreachable`."""

    @abstractmethod
    def end(self, ids: Sequence[str]) -> None:
        """Ask the scheduler to end jobs, by its own ids."""

    def submit(self, job: Job) -> str:
        """Send a job, unless it was sent or has started."""
        self.submit_all([job])
        return job.id

    def submit_all(self, jobs: Sequence[Job]) -> None:
        """Send all jobs that the scheduler does not have yet."""
        for job in jobs:
            self.prepare(job)
        with files.locked(self.place / "submit"):
            unsent = [job for job in jobs if self.status(job.id).state == "prepared"]
            if any((self.folder(job.id) / SENDING).exists() for job in unsent):
                self._find_lost_answers(unsent)
                unsent = [job for job in unsent if self.status(job.id).state == "prepared"]
            if unsent:
                self.send(unsent)

    def poll(self, job: str) -> JobStatus:
        """Return the status of a job; the scheduler explains one that does not run and has not ended."""
        status = self.status(job)
        sending = read_document(self.folder(job) / SENDING)
        if status.state not in ("queued", "lost") or sending is None:
            return status
        queue = self.queue()
        entry = queue.entries.get(str(sending.get("name")))
        is_queued = status.state == "queued"
        if entry is not None and self._is_older(entry, job, queue):
            entry = None
        if entry is None and (queue.problem or self._is_newer(job, queue)):
            return JobStatus("queued" if is_queued else "running", says=queue.problem)
        if entry is not None and entry.phase in ("waiting", "running"):
            (self.folder(job) / FORGOTTEN).unlink(missing_ok=True)  # an earlier answer was wrong
        if entry is not None and entry.phase == "waiting":
            return JobStatus("queued", says=entry.says)
        if entry is not None and entry.phase == "running":
            return JobStatus("queued" if is_queued else "running", says="starting" if is_queued else "")
        status = self.status(job)  # it may have ended while we asked
        if status.state not in ("queued", "lost"):
            return status
        ended = self._ended(job, entry)
        if ended.is_over:
            self.note_forgotten(job)
        return ended

    def _ended(self, job: str, entry: QueueEntry | None) -> JobStatus:
        """Return the status of a job that left no end in its folder, and that the scheduler no longer runs."""
        folder = self.folder(job)
        if (folder / CANCELLED).exists():
            return JobStatus("cancelled")
        is_paused = (folder / PAUSED).exists()  # no job runner has started since
        if entry is None:
            if is_paused:
                return JobStatus("preempted", says="it saved a checkpoint; the scheduler no longer knows it")
            return JobStatus("lost", says="the scheduler no longer knows it")
        if entry.phase == "preempted" and files.read_json(folder / JOB).get("resumes"):
            return JobStatus("preempted", says=entry.says)
        if entry.phase == "cancelled":
            return JobStatus("cancelled", says=f"the scheduler says {entry.says}")
        if is_paused:
            return JobStatus("preempted", says=f"it saved a checkpoint; the scheduler says {entry.says}")
        return JobStatus("lost", says=f"the scheduler says {entry.says}{self.last_words(job)}")

    def last_words(self, job: str) -> str:
        """Return the last line that the scheduler's own script printed for a job, if there is one."""
        return ""

    def resubmit(self, job: str) -> None:
        """Send a preempted job again, unless it was sent too often."""
        with files.locked(self.place / "submit"):
            if self.poll(job).state != "preempted":
                return
            folder = self.folder(job)
            attempt = int(files.read_json(folder / SENDING).get("attempt") or 1)
            if attempt >= self.settings.attempts:
                self.mark_cancelled(job)
                return
            self.send([Job.from_document(files.read_json(folder / JOB))])

    def cancel(self, job: str) -> None:
        """Ask the scheduler to end a job."""
        self.cancel_all([job])

    def cancel_all(self, jobs: Sequence[str]) -> None:
        """Ask the scheduler once to end jobs."""
        ids = []
        for job in jobs:
            if self.status(job).is_over and self.status(job).state != "lost":
                continue
            self.mark_cancelled(job)
            submitted = read_document(self.folder(job) / SUBMITTED)
            if submitted:
                ids.append(str(submitted["id"]))
        if ids:
            self.end(ids)

    def queue(self, *, is_new: bool = False) -> Queue:
        """Return the scheduler's answer; it is asked again if the answer is too old, or must be new."""
        path = (self.place / f"{self.name}_queue.json").absolute()
        known = _last_queues.get(path, Queue())
        if not is_new and self._is_fresh(known):
            return known
        with files.locked(path):
            queue = _read_queue(path)
            if not is_new and self._is_fresh(queue):
                _last_queues[path] = queue
                return queue
            asked = time.time()
            try:
                queue = Queue(asked, asked, self.ask())
            except SchedulerUnreachable as error:
                queue = Queue(asked, queue.answered, queue.entries, error.message)
            files.write_json(path, {"schema": 1, **asdict(queue)})
        _last_queues[path] = queue
        return queue

    def _is_fresh(self, queue: Queue) -> bool:
        return 0 <= time.time() - queue.asked < self.settings.poll_seconds

    def _is_newer(self, job: str, queue: Queue) -> bool:
        """Say whether a job was submitted after the scheduler answered."""
        try:
            return (self.folder(job) / SUBMITTED).stat().st_mtime >= queue.answered
        except FileNotFoundError:
            return True

    def _is_older(self, entry: QueueEntry, job: str, queue: Queue) -> bool:
        """Say whether an answer is about an earlier submission: a task may have queued itself again since."""
        submitted = read_document(self.folder(job) / SUBMITTED) or {}
        return entry.id != submitted.get("id") and self._is_newer(job, queue)

    def _find_lost_answers(self, jobs: Sequence[Job]) -> None:
        """Ask for the names of jobs whose submission gave no answer, and note those that the scheduler has."""
        queue = self.queue(is_new=True)
        if queue.problem:
            raise SchedulerUnreachable(f"rlx cannot tell whether {jobs[0].id} was submitted: {queue.problem}",
                                       hint="run the same command again when the scheduler answers")  # fmt: skip
        for job in jobs:
            sending = read_document(self.folder(job.id) / SENDING) or {}
            entry = queue.entries.get(str(sending.get("name")))
            if entry is not None:
                self.note_submitted(self.folder(job.id), entry.id, printed="found by its name")

    def is_unsent(self, job: str) -> bool:
        """Say whether a job was never sent; one whose answer was lost may have arrived."""
        return super().is_unsent(job) and not (self.folder(job) / SENDING).exists()

    def note_sending(self, folder: Path, name: str) -> None:
        """Write down under which name a job is about to be sent."""
        before = dict(read_document(folder / SENDING) or {})
        before.pop("before", None)
        attempt = int(before.get("attempt") or 0) + 1
        document = {"schema": 1, "name": name, "attempt": attempt, "time": time.time(), "before": before or None}
        files.write_json(folder / SENDING, document)
        (folder / FORGOTTEN).unlink(missing_ok=True)

    def note_refused(self, folders: Sequence[Path]) -> None:
        """Take `note_sending` back: the scheduler certainly does not have these jobs."""
        for folder in folders:
            before = (read_document(folder / SENDING) or {}).get("before")
            if before:
                files.write_json(folder / SENDING, before)
            else:
                (folder / SENDING).unlink(missing_ok=True)

    def note_submitted(self, folder: Path, id: str, *, printed: str = "") -> None:
        """Write down that the scheduler has a job, under its own id."""
        files.write_json(folder / SUBMITTED, {"schema": 1, "id": id, "printed": printed[:2000]})


def _read_queue(path: Path) -> Queue:
    document: Any = read_document(path)
    if document is None:
        return Queue()
    try:
        entries = {name: QueueEntry(**entry) for name, entry in document["entries"].items()}
        return Queue(float(document["asked"]), float(document["answered"]), entries, str(document["problem"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return Queue()
