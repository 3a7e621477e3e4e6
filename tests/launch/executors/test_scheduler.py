"""What the executors of a cluster make of a scheduler's answers, with a scheduler that says what a test tells it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rlx import files
from rlx.launch.executors import scheduler as scheduler_module
from rlx.launch.executors.executor import Job
from rlx.launch.executors.scheduler import Phase, QueueEntry, Scheduler


class SaidScheduler(Scheduler):
    """A scheduler whose only answer is `phase`; it counts what it was sent."""

    name = "said"
    phase: Phase = "waiting"

    def __init__(self, place: Path) -> None:
        super().__init__(place, poll_seconds=30.0)
        self.sent: list[str] = []

    def send(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.sent.append(job.id)
            self.note_sending(self.folder(job.id), f"{job.id}-{len(self.sent)}")
            self.note_submitted(self.folder(job.id), str(len(self.sent)))

    def ask(self) -> Mapping[str, QueueEntry]:
        names = [files.read_json(self.folder(job) / "sending.json")["name"] for job in self.known()]
        return {name: QueueEntry("1", self.phase, self.phase.upper()) for name in names}

    def end(self, ids: Sequence[str]) -> None:
        raise NotImplementedError

    def answers(self, phase: Phase) -> None:
        """Let the scheduler say this about every job, now: after all that was submitted."""
        self.phase = phase
        for job in self.known():
            path = self.folder(job) / "submitted.json"
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 1))
        self.queue(is_new=True)


@pytest.fixture
def scheduler(tmp_path: Path) -> SaidScheduler:
    scheduler = SaidScheduler(tmp_path / "jobs")
    scheduler.submit(Job("j001", ("true",), tmp_path, resumes=True))
    return scheduler


def test_all_executors_of_a_process_share_one_answer(scheduler: SaidScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler.answers("waiting")
    monkeypatch.setattr(scheduler_module, "_read_queue", lambda _: pytest.fail("the answer was read again"))
    for _ in range(3):  # as many runs of a sweep, each with its own executor
        assert SaidScheduler(scheduler.place).poll("j001").says == "WAITING"


def pauses(scheduler: SaidScheduler) -> None:
    """Do what a job runner does when the job has saved its work."""
    files.write_json(scheduler.folder("j001") / "paused.json", {"schema": 1, "signal": "SIGTERM"})


def test_a_job_that_saved_its_work_and_was_never_started_again_is_sent_again(scheduler: SaidScheduler) -> None:
    pauses(scheduler)
    scheduler.answers("ended")  # such as Slurm's FAILED, if it cannot start a requeued task
    assert scheduler.poll("j001").state == "preempted"
    scheduler.resubmit("j001")
    assert scheduler.sent == ["j001", "j001"]


def test_a_job_that_never_saved_anything_and_left_no_end_is_lost(scheduler: SaidScheduler) -> None:
    scheduler.answers("ended")
    assert scheduler.poll("j001").state == "lost"


def test_a_job_that_a_person_cancelled_in_the_queue_stays_cancelled(scheduler: SaidScheduler) -> None:
    pauses(scheduler)
    scheduler.answers("cancelled")
    assert scheduler.poll("j001").state == "cancelled"


def test_an_answer_from_before_a_task_was_queued_again_says_nothing_about_it(scheduler: SaidScheduler) -> None:
    pauses(scheduler)
    scheduler.answers("ended")
    scheduler.note_submitted(scheduler.folder("j001"), "2")  # a task queues itself again, under its old name
    assert scheduler.poll("j001").state == "queued"
    scheduler.resubmit("j001")
    assert scheduler.sent == ["j001"]
