"""Close the jobs of a study whose processes ended without recording it, so that no job stays open."""

from __future__ import annotations

import time

from rlx.launch import launch
from rlx.launch.executors import remote_job
from rlx.launch.study_jobs import study_job
from rlx.launch.supervisor import project_of
from rlx.runs import process, project
from rlx.runs.run import Run
from rlx.runs.status import LOST, run_status
from rlx.study.budget import Amount
from rlx.study.ledger.records import Job
from rlx.study.ledger.state import State
from rlx.study.study_folder import Study

START_SECONDS = 180.0  # a launcher that has started nothing for so long will not start its job any more


def state_of(run: Run) -> str:
    """Return the state of a run. For a study's run that is over, the ledger decides, not the run.

    If some seeds of a job completed, the job is evidence, and the state of its run tells how the other seeds ended.
    """
    lineage = run.metadata.get("lineage") or {}
    if "job" not in lineage or launch.is_active(run):
        return run.status
    root = project.root()
    if project.runs_folder(root).resolve() != run.path.resolve().parent:  # `runs` may be a link to another disk
        root = project_of(run)
    study = Study(root, str(lineage["task"]), str(lineage["study"]))
    reconcile(study)
    job = study.state().jobs.get(str(lineage["job"]))
    if job is None or job.outcome is None:
        return run.status
    return run_status(list(job.seed_states.values()), is_supervised=False, outcome=job.outcome)


def reconcile(study: Study, state: State | None = None) -> list[str]:
    """Close the jobs whose processes ended without recording it; return one line per closed job."""
    closed = []
    for job in (state or study.state()).open_jobs:
        reason = _close_lost(study, job)
        if reason:
            closed.append(f"{job.id} ({job.candidate}, {job.phase}): {reason}")
    return closed


def _close_lost(study: Study, job: Job) -> str:
    """Close a job if neither its supervisor nor its launcher lives; return why, or nothing if it stays open."""
    intent = next(event for event in study.ledger.events() if event.kind == "intent" and event["job"] == job.id)
    launcher = process.from_document(intent.get("process"))
    path = study.root / "runs" / str(job.run)
    run = Run(path) if path.is_dir() else None
    if run is not None and (run.is_supervised or run.status == "running"):
        return ""
    is_fresh = time.time() - intent.time < START_SECONDS
    if job.process is None and launcher is not None and process.is_alive(launcher) and is_fresh:
        return ""
    remote = remote_job.remote_job_of(run) if run is not None else None
    if remote is not None and remote.is_active:
        return ""
    started = _started_seeds(job, run)
    if job.process is None and not started:
        reason = _why_not_started(remote)
        abandon(study, job.id, reason)
        return f"abandoned: {reason}"
    if run is None:  # rlx cannot know that it used less than it reserved
        reason = "its run is gone"
        study.ledger.append(
            "ended", key=job.id, job=job.id, outcome="lost", seeds={str(seed): LOST for seed in job.seeds},
            spent=job.reserve.document(), says=reason,
        )  # fmt: skip
        return reason
    spent = Amount(len(started), job.reserve.seconds * len(started) / max(1, len(job.seeds)))
    study_job.close(study.ledger, job.id, run, study_job.JobEnd(spent, is_lost=True))
    return "its supervisor is gone"


def _started_seeds(job: Job, run: Run | None) -> list[int]:
    """Return the seeds of a job that may have trained: their folder has files, or is gone."""
    if run is None:
        return []
    folders = {seed.number: seed.folder for seed in run.seeds}
    return [seed for seed in job.seeds if seed not in folders or any(folders[seed].iterdir())]


def _why_not_started(remote: remote_job.RemoteJob | None) -> str:
    """Say why a job never started, and cancel it if it was written down but not submitted."""
    if remote is None:
        return "its launcher died before it started"
    status = remote.status()
    if status.is_over:
        reason = f" ({status.says})" if status.says else ""
        return f"its executor: {status.state} before it started{reason}"
    remote.cancel()
    return "its launcher died before it was submitted"


def abandon(study: Study, job: str, says: str) -> None:
    """Write that a job never became a process: it used nothing."""
    nothing = Amount().document()
    study.ledger.append("ended", key=job, job=job, outcome="abandoned", seeds={}, spent=nothing, says=says)
