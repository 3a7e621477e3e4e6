"""Run jobs on this machine in processes that outlive the process that submitted them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

from rlx.errors import JobFailed
from rlx.launch.executors.executor import Executor, Job, runner_argv
from rlx.launch.executors.job_runner import DETACH
from rlx.runs import process
from rlx.runs.job_folder import EXIT, PROCESS, SUBMITTED

START_SECONDS = 20.0
POLL_SECONDS = 0.01
RUNNER_LOG = "carrier.log"


class LocalExecutor(Executor):
    """Starts a detached job runner for every job."""

    name = "local"

    def submit(self, job: Job) -> str:
        """Start a job runner and return when it has taken the job; a job that was started is left alone."""
        folder = self.prepare(job)
        if self.status(job.id).state != "prepared":
            return job.id
        with (folder / RUNNER_LOG).open("ab") as log:
            subprocess.run(
                [*runner_argv(folder), DETACH], stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        deadline = time.monotonic() + START_SECONDS
        while not (folder / PROCESS).exists() and not (folder / EXIT).exists():
            if time.monotonic() > deadline:
                raise JobFailed(f"the job runner of {job.id} did not start", hint=f"see {folder / RUNNER_LOG}")
            time.sleep(POLL_SECONDS)
        (folder / SUBMITTED).touch()
        return job.id

    def cancel(self, job: str) -> None:
        """Ask the job runner to end the job; it kills a job that does not end."""
        if self.status(job).is_over:
            return
        self.mark_cancelled(job)
        runner = self.runner(job)
        if runner is not None and process.is_alive(runner):
            with contextlib.suppress(ProcessLookupError):
                os.kill(runner.pid, signal.SIGTERM)
