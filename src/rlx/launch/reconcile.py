"""What became of a study's jobs: those whose processes are gone without a word are closed, so that none stays open."""

from __future__ import annotations

import time
from pathlib import Path

from rlx.launch import carried, governed
from rlx.launch import launch as plain
from rlx.launch.supervisor import project_of
from rlx.runs import process, project
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, LOST, run_status
from rlx.study.budget import Amount
from rlx.study.standing import Job
from rlx.study.study import Study

START_SECONDS = 180.0
"""A launcher that lives and has started nothing for so long will not: its job's workers would be refused."""


def state_of(run: Run) -> str:
    """Return the state of a run: where a study launched it and it is over, what the ledger says, and not the run.

    A job of which some seeds completed is evidence; its run is what became of the others.
    """
    lineage = run.metadata.get("lineage") or {}
    if "job" not in lineage or plain.goes_on(run):
        return run.status
    study = Study(_home(run), str(lineage["task"]), str(lineage["study"]))
    reconcile(study)
    job = study.state().jobs.get(str(lineage["job"]))
    if job is None or job.outcome is None:
        return run.status
    seeds = list(job.seed_states.values())
    return run_status(seeds, is_supervised=False) if job.outcome == COMPLETED else job.outcome


def _home(run: Run) -> Path:
    """Return the project of a run: the one around us where its `runs` leads there, as a link to another disk does."""
    here = project.root()
    return here if project.runs_folder(here).resolve() == run.path.resolve().parent else project_of(run)


def reconcile(study: Study) -> list[str]:
    """Close the jobs whose processes are gone without a word; return what was found, job by job."""
    found = []
    for job in study.state().open_jobs:
        says = _close_lost(study, job)
        found += [f"{job.id} ({job.candidate}, {job.phase}): {says}"] if says else []
    return found


def _close_lost(study: Study, job: Job) -> str:
    """Close one job where neither its supervisor nor whoever was about to start it lives."""
    intent = next(one for one in study.ledger.events() if one.kind == "intent" and one["job"] == job.id)
    launcher = process.from_document(intent.get("process"))
    path = study.root / "runs" / str(job.run)
    run = Run(path) if path.is_dir() else None
    if run is not None and (run.is_supervised or run.status == "running"):
        return ""
    is_fresh = time.time() - intent.time < START_SECONDS
    if job.process is None and launcher is not None and process.is_alive(launcher) and is_fresh:
        return ""
    engine = carried.carried(run) if run is not None else None
    if engine is not None and engine.is_under_way:
        return ""
    began = _began(job, run)
    if job.process is None and not began:
        says = _never_began(engine)
        abandon(study, job.id, says)
        return f"abandoned: {says}"
    if run is None:
        _lose(study, job)
        return "its run is gone"
    spent = Amount(len(began), job.reserve.seconds * len(began) / max(1, len(job.seeds)))
    governed.close(study.ledger, job.id, run, governed.Ending(spent, is_lost=True))
    return "its supervisor is gone"


def _began(job: Job, run: Run | None) -> list[int]:
    """Return the seeds of a job that may have trained: those that left anything, and those whose folders are gone."""
    if run is None:
        return []
    folders = {seed.number: seed.folder for seed in run.seeds}
    return [seed for seed in job.seeds if seed not in folders or any(folders[seed].iterdir())]


def _never_began(engine: carried.Carried | None) -> str:
    """Say why a job never began; one that was not handed over, as far as is known, is never to begin."""
    if engine is None:
        return "whoever launched it died before it began"
    standing = engine.standing()
    if standing.is_over:
        return f"its engine: {standing.state} before it began" + (f" ({standing.says})" if standing.says else "")
    engine.cancel()
    return "whoever launched it died before it was handed over"


def abandon(study: Study, job: str, says: str) -> None:
    """Write that a job never became a process: it used nothing."""
    nothing = Amount().document()
    study.ledger.append("ended", key=job, job=job, outcome="abandoned", seeds={}, spent=nothing, says=says)


def _lose(study: Study, job: Job) -> None:
    """Write that nothing is left of a job that was started: nobody can say that it used less than it may."""
    study.ledger.append(
        "ended", key=job.id, job=job.id, outcome="lost", seeds={str(seed): LOST for seed in job.seeds},
        spent=job.reserve.document(), says="its run is gone",
    )  # fmt: skip
