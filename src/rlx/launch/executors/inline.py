"""Run jobs in this process, one after the other: for debugging, or inside a job of another scheduler."""

from __future__ import annotations

from rlx.launch.executors.executor import Executor, Job
from rlx.launch.executors.job_runner import run_to_end


class InlineExecutor(Executor):
    """Returns from `submit` when the job has ended; if this process dies, its job dies with it."""

    name = "inline"

    def submit(self, job: Job) -> str:
        """Run a job to its end."""
        run_to_end(self.prepare(job), catches_signals=False)
        return job.id

    def cancel(self, job: str) -> None:
        """Keep a job from starting; a running job blocks this process."""
        self.mark_cancelled(job)
