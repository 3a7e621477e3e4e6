"""Jobs carried on this machine by processes of their own, which outlive whoever submitted them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from rlx.errors import JobFailed
from rlx.launch.carry import DETACH
from rlx.launch.executor import EXIT, PROCESS, SUBMITTED, Desk, Job, Standing, carrier_argv
from rlx.runs import process

START_SECONDS = 20.0
POLL_SECONDS = 0.01
TALK = "carrier.log"


class LocalExecutor:
    """Starts a detached carrier for every job."""

    name = "local"

    def __init__(
        self, place: Path, *, submit: Sequence[str] = (), poll: Sequence[str] = (), cancel: Sequence[str] = ()
    ) -> None:
        self._desk = Desk(place)

    def submit(self, job: Job) -> str:
        """Start a job's carrier and return when it has taken the job; one that is known is left to its carrier."""
        folder = self._desk.prepare(job)
        if self._desk.standing(job.id).state != "prepared":
            return job.id
        with (folder / TALK).open("ab") as talk:
            subprocess.run(
                [*carrier_argv(folder), DETACH], stdin=subprocess.DEVNULL, stdout=talk, stderr=talk, check=False
            )
        deadline = time.monotonic() + START_SECONDS
        while not (folder / PROCESS).exists() and not (folder / EXIT).exists():
            if time.monotonic() > deadline:
                raise JobFailed(f"the carrier of {job.id} does not begin", hint=f"see {folder / TALK}")
            time.sleep(POLL_SECONDS)
        (folder / SUBMITTED).touch()
        return job.id

    def poll(self, job: str) -> Standing:
        """Return how a job stands."""
        return self._desk.standing(job)

    def cancel(self, job: str) -> None:
        """Ask the carrier to end the job; it kills what does not listen."""
        if self._desk.standing(job).is_over:
            return
        self._desk.mark_cancelled(job)
        carrier = self._desk.carrier(job)
        if carrier is not None and process.is_alive(carrier):
            with contextlib.suppress(ProcessLookupError):
                os.kill(carrier.pid, signal.SIGTERM)

    def logs(self, job: str) -> str:
        """Return the end of what a job printed."""
        return self._desk.logs(job)

    def recover(self) -> tuple[str, ...]:
        """Return the jobs that are not over; those that never began are `prepared`, and may be submitted again."""
        return self._desk.open_jobs()
