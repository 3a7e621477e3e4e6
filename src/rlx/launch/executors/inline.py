"""Jobs carried by this very process, one after the other: for debugging, and where somebody else is the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlx.launch.carry import carry
from rlx.launch.executor import Desk, Job, Standing


class InlineExecutor:
    """Returns from `submit` when the job has ended; a job that its controller left behind died with it."""

    name = "inline"

    def __init__(
        self, place: Path, *, submit: Sequence[str] = (), poll: Sequence[str] = (), cancel: Sequence[str] = ()
    ) -> None:
        self._desk = Desk(place)

    def submit(self, job: Job) -> str:
        """Carry a job to its end."""
        folder = self._desk.prepare(job)
        carry(folder, catches_signals=False)
        return job.id

    def poll(self, job: str) -> Standing:
        """Return how a job stands."""
        return self._desk.standing(job)

    def cancel(self, job: str) -> None:
        """Have a job not begin; one that runs is this process's own."""
        self._desk.mark_cancelled(job)

    def logs(self, job: str) -> str:
        """Return the end of what a job printed."""
        return self._desk.logs(job)

    def recover(self) -> tuple[str, ...]:
        """Return the jobs that were written down and not begun, or that somebody else carries."""
        return self._desk.open_jobs()
