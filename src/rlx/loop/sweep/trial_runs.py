"""Train the trials of a sweep as ordinary runs: create, start, pause at a rung, continue, and read the scores.

A trial is one run. Halving pauses its first seed at a rung: the seed is evaluated and saves `latest`. The next rung
continues from there, which gives the same policy as training without the pause. The race adds seeds to the run. A seed
that was killed is continued; one that crashed, diverged or ran out of memory twice has failed. Scores stand in the log,
so nothing that has one is trained again.
"""

from __future__ import annotations

import math
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.compare.stored_scores import logged_scores, stored_scores
from rlx.errors import ConfigError, RlxError, WriteFailed
from rlx.launch import launch
from rlx.launch.executors.executor import TrainingOrder
from rlx.launch.executors.scheduler import SchedulerUnreachable
from rlx.launch.resources import Slots
from rlx.loop.settle.run_or_config import readable_runs
from rlx.loop.sweep.sweep_log import SweepLog, SweepState, TrialScore
from rlx.runs import store
from rlx.runs.run import Run, Seed
from rlx.runs.status import COMPLETED, FAILED, INTERRUPTED, LOST, RUNNING
from rlx.runs.summary import costs, position
from rlx.search.auto import TrialJob

if TYPE_CHECKING:
    from rlx.config.schema import Experiment

POLL_SECONDS = 0.2
LONGEST_PAUSE = 5.0
IDLE_FACTOR = 4
"""A sweep looks at its runs during at most a fifth of the time."""
RETRY_SECONDS = 5.0
RESTARTS = 2
"""How often a killed seed is continued before the trial counts as failed."""
LEAST_FREE_BYTES = 20_000_000
LINEAGE = "sweep"


@dataclass
class _Active:
    """A run in training, and the jobs that it trains."""

    run: Path
    jobs: tuple[TrialJob, ...]


class TrialRuns:
    """Trains jobs within the machine's slots. `watch` is called again and again with the runs in training."""

    def __init__(
        self, log: SweepLog, state: SweepState, *, root: Path, watch: Callable[[Mapping[TrialJob, float]], None]
    ) -> None:
        self.log = log
        self.state = state
        self.root = root
        self._watch = watch
        self._restarts: Counter[TrialJob] = Counter()
        self._active: list[_Active] = []
        self._orphans: dict[int, str] | None = None
        self._is_answered = False  # whether an executor has taken a submission of this session
        base = state.plan.experiment({})
        self.first_seed = base.training_seeds()[0]
        self.total = base.algo.total_timesteps

    def train(self, jobs: Sequence[TrialJob]) -> dict[TrialJob, float | None]:
        """Train jobs to their shares and return their scores; None is a failed training."""
        waiting = _by_trial(job for job in jobs if job not in self.state.scores)
        try:
            while waiting or self._active:
                began = time.process_time()  # waiting for a slow scheduler costs nothing
                self._start_some(waiting)
                self._watch(self.progress())
                for active in list(self._active):
                    if not launch.is_active(Run(active.run)):
                        self._active.remove(active)
                        again = self._collect(active)
                        if again:
                            waiting.insert(0, again)
                if waiting or self._active:  # looking at many runs takes a while: the machine is for training
                    busy = time.process_time() - began
                    time.sleep(min(LONGEST_PAUSE, max(POLL_SECONDS, IDLE_FACTOR * busy)))
        except (KeyboardInterrupt, RlxError):
            self.stop()
            raise
        return {job: self.state.scores[job].score for job in jobs}

    def stop(self) -> None:
        """Stop every run in training; its seeds save `latest`."""
        launch.stop_all([Run(active.run) for active in self._active])
        self._active.clear()

    def progress(self) -> dict[TrialJob, float]:
        """Return how far the jobs in training are, as shares of a full training."""
        shares: dict[TrialJob, float] = {}
        for active in self._active:
            run = Run(active.run)
            for job in active.jobs:
                seed = self._seed(run, job)
                if seed is not None:
                    shares[job] = min(job.share, position(seed)[0] / max(1, self.total))
        return shares

    # Starting

    def _start_some(self, waiting: list[tuple[TrialJob, ...]]) -> None:
        """Start waiting trials while there are free places; a group that needs more than all places runs alone.

        A scheduler has a queue of its own: it gets all trials at once, in one submission.
        """
        places = math.inf
        if not launch.has_queue(self.root):
            places = len(Slots.of(self.state.plan.data).places)
        orders: list[TrainingOrder] = []
        started: list[_Active] = []
        while waiting:
            used = sum(len(active.jobs) for active in [*self._active, *started])
            if used and used + len(waiting[0]) > places:
                break
            order, active = self._prepare(waiting.pop(0))
            if order:
                orders.append(order)
            if active:
                started.append(active)
        self._active += started  # first: `stop` must find them if the submission fails
        try:
            launch.start_all(orders)
        except SchedulerUnreachable:
            if not self._is_answered:
                raise
            # It answered before, so it will again. Until then, nothing has failed: these trials wait.
            unsent = [active for active in started if not launch.is_active(Run(active.run))]
            self._active = [active for active in self._active if active not in unsent]
            waiting[:0] = [active.jobs for active in unsent]
            time.sleep(RETRY_SECONDS)
        else:
            self._is_answered = True

    def _prepare(self, jobs: tuple[TrialJob, ...]) -> tuple[TrainingOrder | None, _Active | None]:
        """Return what to start for the jobs of one trial, and what to wait for; neither if all have ended."""
        self._refuse_full_disk()
        trial = jobs[0].trial
        run = self._find_run(trial)
        if run is None:
            try:
                experiment = self._experiment(trial)
            except ConfigError as error:
                for job in jobs:
                    self._record(job, _failed(f"not a valid config: {error.message.splitlines()[0]}"))
                return None, None
            run = self._create(trial, experiment)
        missing = [job for job in jobs if not self._take_score(run, job)]
        numbers = [self.first_seed + job.seed for job in missing]
        if not missing:
            return None, None
        active = _Active(run.path, tuple(missing))
        if launch.is_active(run):  # after a kill -9 of the sweep, its runs go on by themselves
            return None, active
        known = {seed.number for seed in run.seeds}
        store.add_seeds(run, [number for number in numbers if number not in known])
        return TrainingOrder(Run(run.path), tuple(numbers), self._pause_step(missing[0])), active

    def _experiment(self, trial: int) -> Experiment:
        experiment = self.state.plan.experiment(self.state.trials[trial])
        return launch.check(experiment, root=self.root).experiment

    def _create(self, trial: int, experiment: Experiment) -> Run:
        experiment = experiment.model_copy(update={"seeds": (self.first_seed,)})
        run = launch.create(experiment, root=self.root, lineage={LINEAGE: self.log.name, "trial": trial})
        if self.state.plan.tags:
            store.tag(run, *self.state.plan.tags)
        self._remember(trial, run.name)
        return run

    def _remember(self, trial: int, run: str) -> None:
        self.log.add_run(trial, run)
        self.state.runs[trial] = run

    def _find_run(self, trial: int) -> Run | None:
        """Return the run that the log names for a trial, or one that was created just before the sweep was killed."""
        name = self.state.runs.get(trial)
        if name is None:
            if self._orphans is None:
                self._orphans = orphans(self.root, self.log.name)
            name = self._orphans.get(trial)
            if name is None:
                return None
            self._remember(trial, name)
        run = Run(self.root / "runs" / name)
        if not run.path.is_dir():
            message = f"the run {name} of trial {trial} is gone"
            raise RlxError(message, hint="restore it from a copy, or start a new sweep: rlx sweep --help")
        return run

    def _pause_step(self, job: TrialJob) -> int | None:
        if job.share >= 1.0:
            return None
        return math.ceil(job.share * self.total)

    def _refuse_full_disk(self) -> None:
        refuse_full_disk(self.log.name, root=self.root)

    # Ending

    def _collect(self, active: _Active) -> tuple[TrialJob, ...]:
        """Record the jobs of a run that has ended; return those that must be continued."""
        run = Run(active.run)
        again = []
        for job in active.jobs:
            if self._take_score(run, job):
                continue
            self._refuse_full_disk()
            seed = self._seed(run, job)
            self._restarts[job] += 1
            state = LOST
            if seed is not None:
                state = seed.status.state
            if state != FAILED and self._restarts[job] <= _restarts_for(seed):
                again.append(job)
            else:
                reason = launch.job_problem(run, self.first_seed + job.seed) or state
                if seed is not None and seed.status.reason:
                    reason = seed.status.reason
                self._record(job, _failed(reason, cpu_seconds=_cpu_seconds(run, seed)))
        return tuple(again)

    def _take_score(self, run: Run, job: TrialJob) -> bool:
        """Record the score of a job if its run has one; return whether the job has ended."""
        seed = self._seed(run, job)
        if seed is None or seed.status.state == RUNNING:
            return False
        score = self.read_score(run, seed, job)
        if score is not None:
            ended = TrialScore(score, cpu_seconds=_cpu_seconds(run, seed), steps=seed.step)
            if not math.isfinite(score):
                ended = _failed("its score is not finite", cpu_seconds=_cpu_seconds(run, seed))
            self._record(job, ended)
            return True
        return False

    def read_score(self, run: Run, seed: Seed, job: TrialJob) -> float | None:
        """Return the score of a seed at a job's share, if it got there."""
        if job.share >= 1.0:
            return final_score(run, seed, self.state.plan.question)
        if seed.status.state not in (INTERRUPTED, COMPLETED, LOST):
            return None
        return rung_score(run, seed, self._pause_step(job) or 0)

    def _record(self, job: TrialJob, score: TrialScore) -> None:
        self.log.add_score(job, score)
        self.state.scores[job] = score

    def _seed(self, run: Run, job: TrialJob) -> Seed | None:
        number = self.first_seed + job.seed
        return next((seed for seed in run.seeds if seed.number == number), None)


def refuse_full_disk(sweep: str, *, root: Path) -> None:
    """Raise before a full disk looks like a failed training."""
    if shutil.disk_usage(root).free < LEAST_FREE_BYTES:
        hint = f"free some space, then continue: rlx sweep resume {sweep}"
        raise WriteFailed(f"the disk is full: {root}", hint=hint)


def final_score(run: Run, seed: Seed, question: ComparisonQuestion = STANDARD) -> float | None:
    """Return the score of a seed's final policy on report episodes, or the metric that it logged last."""
    if seed.status.state != COMPLETED:
        return None
    if question.metric is not None:
        by_seed = logged_scores(run, question).get(question.fingerprint, {})
    else:
        by_seed = stored_scores(run).get(seed.own_protocol or "", {})
    if seed.number not in by_seed:
        return None
    return by_seed[seed.number].score


def rung_score(run: Run, seed: Seed, step: int) -> float | None:
    """Return the first periodic evaluation of a seed at a step or after it."""
    found: dict[int, dict[str, Any]] = {}
    for document in run.evaluations():
        if document.get("purpose") == "selection" and document.get("seed") == seed.number and document["step"] >= step:
            found[document["step"]] = document
    if not found:
        return None
    first = found[min(found)]
    return files.number(first.get("score", first["mean"]))


def orphans(root: Path, sweep: str) -> dict[int, str]:
    """Return trial → run of the runs that name a sweep."""
    found: dict[int, str] = {}
    for run in readable_runs(root):
        lineage = run.metadata.get("lineage") or {}
        if lineage.get(LINEAGE) == sweep and "trial" in lineage:
            found.setdefault(int(lineage["trial"]), run.name)
    return found


def _restarts_for(seed: Seed | None) -> int:
    """Return how often a seed that did not end by itself is continued; less if the system keeps killing its worker."""
    if seed is not None and seed.events and seed.events[-1].get("exit") == -signal.SIGKILL:
        return 1  # the supervisor lives: most likely memory ran out
    return RESTARTS


def _by_trial(jobs: Iterable[TrialJob]) -> list[tuple[TrialJob, ...]]:
    groups: dict[int, list[TrialJob]] = {}
    for job in jobs:
        groups.setdefault(job.trial, []).append(job)
    return [tuple(group) for group in groups.values()]


def _cpu_seconds(run: Run, seed: Seed | None) -> float | None:
    if seed is None:
        return None
    cost = costs(run).get(seed.number)
    if cost is None or cost.cpu_seconds is None:
        return None
    return round(cost.cpu_seconds, 2)


def _failed(reason: str, *, cpu_seconds: float | None = None) -> TrialScore:
    return TrialScore(None, reason[:300], cpu_seconds)
