"""Trainings outside a study: recorded in the ledger of every approved study of the project, for its claims.

Somebody who tries candidates outside a study can choose those that had luck. The claim's seeds are drawn at its launch,
so it stays valid, but its reader should know how much was tried.
Not covered: trainings in a copy of the project, and programs that were started without rlx.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlx.errors import RlxError
from rlx.number_format import counted, listed
from rlx.runs.run import Run, names
from rlx.study.study_folder import Study, list_studies


@dataclass(frozen=True)
class OutsideRun:
    """A plain run: its name, environment, number of seeds and all their planned steps together."""

    run: str
    env: str
    seeds: int
    steps: int


def record(run: Run, seeds: Sequence[int]) -> None:
    """Write a plain run's start into the ledger of every approved study; a damaged study does not stop it."""
    root = run.path.parent.parent
    for study in list_studies(root):
        with contextlib.suppress(RlxError, OSError):
            if study.state().approval is not None:
                found = _outside(run, len(seeds))
                key = f"{run.metadata.get('id')}:{','.join(map(str, seeds))}"  # a resumed seed counts once
                study.ledger.append(
                    "outside", key=key, run=found.run, env=found.env, seeds=found.seeds, steps=found.steps
                )


def outside_runs(study: Study) -> list[OutsideRun]:
    """Return the plain runs of the study's environments since its approval, also those that were deleted."""
    state = study.state()
    jobs = {str(job.run) for job in state.jobs.values()}
    envs = {str(run.metadata.get("env")) for run in _readable(study, jobs)}
    found = [
        OutsideRun(str(event["run"]), str(event.get("env")), event["seeds"], event["steps"]) for event in state.outside
    ]
    known = {one.run for one in found}
    found += [one for one in _scripts(study) if one.run not in known]
    return [one for one in found if not envs or one.env in envs]


def _scripts(study: Study) -> Iterator[OutsideRun]:
    """Yield the runs that a person's own script recorded since the first approval."""
    approved = [event.time for event in study.ledger.events() if event.kind == "approved"]
    for run in _readable(study, names(study.root)) if approved else ():
        created = run.metadata.get("created")
        if run.is_script and isinstance(created, (int, float)) and created >= approved[0]:
            yield _outside(run, len(run.seeds))


def _readable(study: Study, runs: Iterator[str] | Sequence[str] | set[str]) -> Iterator[Run]:
    for name in sorted(runs):
        with contextlib.suppress(RlxError, OSError):
            run = Run(study.root / "runs" / name)
            if run.metadata:
                yield run


def _outside(run: Run, seeds: int) -> OutsideRun:
    return OutsideRun(run.name, str(run.metadata.get("env")), seeds, seeds * run.planned_steps)


def notes(study: Study) -> Iterator[str]:
    """Yield a note if the study's environments were trained on outside of it."""
    found = outside_runs(study)
    if found:
        runs = list(dict.fromkeys(one.run for one in found))
        seeds = sum(one.seeds for one in found)
        steps = sum(one.steps for one in found)
        yield (
            f"outside the study, {counted(len(runs), 'plain run')} of its environment trained since the approval: "
            f"{counted(seeds, 'seed')}, {steps:,} steps ({listed(runs)})"
        )
