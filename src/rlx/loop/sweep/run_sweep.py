"""Run a sweep from its plan to its result, and continue one that was stopped or killed.

The search is replayed from the log: the same scores lead to the same next trainings. So a sweep that was killed at any
moment continues where it was, trains no finished training again and never tries a config twice.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.compare.code_version import CurrentCode
from rlx.errors import JobFailed, Refused, RlxError
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch import launch
from rlx.loop.settle.train_seeds import SettleProgress
from rlx.loop.sweep import sweep_log, warm_start
from rlx.loop.sweep.check_plan import check_plan, left_out
from rlx.loop.sweep.confirm_winner import confirm_winner
from rlx.loop.sweep.sweep_log import BEST, SweepLog, SweepState
from rlx.loop.sweep.sweep_plan import AUTO_SAMPLER, SweepPlan
from rlx.loop.sweep.trial_runs import TrialRuns
from rlx.runs import process, project
from rlx.runs.run import Run
from rlx.search.auto import SEARCH_SHARE, Search, TrialJob, Winner, search_cost
from rlx.search.minority_vote import MinorityVote, Vote
from rlx.search.observation import Observation, Sampler
from rlx.search.samplers import sampler_named
from rlx.search.space import Values
from rlx.study.candidate.config_changes import nested

DEFAULT_SAMPLER = "model"
STOP_SECONDS = 60.0
LEAST_RACE = 4.0
"""The full trainings that a race gets even if a sweep's time is up."""


@dataclass(frozen=True)
class SweepProgress:
    """Where a sweep stands: its stage, the trials so far, the share done, the best score and the time left."""

    stage: str
    trials: int
    planned: int
    share: float
    best: str
    eta_seconds: float | None
    doing: str = ""


Report = Callable[[SweepProgress], None]
Say = Callable[[str], None]


def start(plan: SweepPlan, *, root: Path, report: Report, say: Say, vote: Vote | None = None) -> SweepState:
    """Check a plan, create its sweep and run it to its end."""
    check_plan(plan, root=root)
    note = left_out(plan)
    if note:
        say(f"note: {note}")
    log = sweep_log.create(plan, root=root)
    project.mark_own(root)
    say(f"sweep {plan.name}: {described(plan)}")
    return _run(log, root=root, report=report, vote=vote)


def resume(name: str, *, root: Path, report: Report, vote: Vote | None = None) -> SweepState:
    """Continue a sweep that was stopped or killed; return one that is over as it is."""
    log = sweep_log.find(name, root=root)
    refuse_foreign_program(f"the trainings and the planner of the sweep {name}", root=root, item=log.folder)
    return _run(log, root=root, report=report, vote=vote)


def described(plan: SweepPlan) -> str:
    """Describe a plan in one line, with its cost."""
    settings = plan.settings
    trials = f"{settings.trials} trials"
    if plan.hours is not None:
        trials = f"trials for {plan.hours:g} h"
    elif plan.planned_trials == 1:
        trials = "the only config"
    elif plan.planned_trials < settings.trials:
        trials = f"all {plan.planned_trials} configs"
    rungs = ""
    if len(settings.halving.shares) > 1:
        rungs = " over " + ", ".join(f"{share:.0%}" for share in settings.halving.shares) + " of the training"
    race = "no race"
    if settings.race.sizes:
        race = f"race on {', '.join(map(str, settings.race.sizes))} seeds"
    confirm = "no confirmation"
    if plan.confirm:
        confirm = f"confirmation on {plan.confirm} fresh seeds"
    cost = ""
    if plan.hours is None:
        cost = f"; at most {planned_cost(plan):.0f} full trainings"
    return f"{trials}{rungs}, {race}, {confirm}{cost}"


def planned_cost(plan: SweepPlan) -> float:
    """Return the cost of a whole sweep in full trainings, if nothing ends early."""
    trials = plan.planned_trials
    race = 0.0
    if plan.settings.race.sizes:
        race = min(plan.settings.race.budget, trials * (plan.settings.race.sizes[-1] - 1))
    return search_cost(trials, plan.settings.halving) + race + 2 * plan.confirm


def _run(log: SweepLog, *, root: Path, report: Report, vote: Vote | None) -> SweepState:
    with log.held():
        state = log.state()
        if state.is_over:
            return state
        ground = CurrentCode(root)
        _refuse_changed_code(log, state, root=root, ground=ground)
        log.append("session", pid=os.getpid(), executor=launch.default_executor(root))
        return _Sweep(log, log.state(), root=root, report=report, vote=vote).run(ground)


def _refuse_changed_code(log: SweepLog, state: SweepState, *, root: Path, ground: CurrentCode) -> None:
    """Raise if the code has changed since the first trial: its scores do not compare with new ones."""
    for name in list(state.runs.values())[:1]:
        run = Run(root / "runs" / name)
        if run.path.is_dir() and any(seed.attempts for seed in run.seeds):
            changes = ground.changes(run)
            if changes:
                message = f"the sweep {log.name} cannot go on: {', '.join(changes)} changed since it began"
                raise Refused(message, hint=f"start a new one: rlx sweep {state.plan.base} --name NEW -p …")


class _Sweep:
    """One session of a sweep."""

    def __init__(self, log: SweepLog, state: SweepState, *, root: Path, report: Report, vote: Vote | None) -> None:
        self.log = log
        self.state = state
        self.root = root
        self._report = report
        self._began = time.monotonic()
        self._seconds_before = state.seconds
        self._cost_before: float | None = None
        self._reused: dict[tuple[object, ...], str] = {}
        self._sampler, self._votes = _sampler(state.plan, vote)
        first = _first(state.plan)
        self._given = {state.plan.space.identity(values) for values in first}
        self.search = Search(state.plan.valid_space, self._sampler, state.plan.settings, first=first)
        self.search.recorded = list(state.trials.values())
        self.search.goes_on = self._goes_on
        self.trials = TrialRuns(log, state, root=root, watch=self._watch)

    def run(self, ground: CurrentCode) -> SweepState:
        """Search, race and confirm; every step is in the log before the next one begins."""
        self._warm_up(ground)
        winner = self._search()
        if winner is None:
            self._fail()
        assert winner is not None
        values = self.state.trials[winner.trial]
        self._record_winner(winner, values)
        self._confirm(winner, values, ground)
        return self.log.state()

    def _search(self) -> Winner | None:
        steps = self.search.run()
        try:
            jobs = next(steps)
            while True:
                self._record_trials()
                jobs = steps.send(self.trials.train(jobs))
        except StopIteration as stop:
            winner: Winner | None = stop.value
            return winner

    def _record_trials(self) -> None:
        for trial in self.search.trials[len(self.state.trials) :]:
            identity = self.state.plan.space.identity(trial.values)
            by = self.state.plan.sampler
            if identity in self._given:
                by = "given"
            if identity in self._votes:
                by = "planner"
            self.log.add_trial(trial.number, trial.values, by=by)
            self.state.trials[trial.number] = trial.values
            self.state.proposers[trial.number] = by
            if identity in self._reused:
                self.log.add_run(trial.number, self._reused[identity])
                self.state.runs[trial.number] = self._reused[identity]

    def _warm_up(self, ground: CurrentCode) -> None:
        """Take what earlier runs of the same protocol say, once; the log keeps it for a resume."""
        if not self.state.plan.is_warm:
            return
        if self.state.warm is None:
            known = warm_start.earlier_results(self.state.plan, root=self.root, ground=ground)
            reused = [{"run": run, "values": seen.values} for run, seen in known[: warm_start.MOST_REUSED]]
            rest = [vars(seen) for _, seen in known[warm_start.MOST_REUSED :]]
            self.log.append("warm", key="1", reused=reused, observations=rest)
            self.state.warm = {"reused": reused, "observations": rest}
        space = self.state.plan.space
        self.search.earlier = [Observation(**row) for row in self.state.warm["observations"]]
        self.search.first = [*(row["values"] for row in self.state.warm["reused"]), *self.search.first]
        self._reused = {space.identity(row["values"]): row["run"] for row in self.state.warm["reused"]}

    def _fail(self) -> None:
        reasons = [score.reason for score in self.state.scores.values() if score.reason]
        first = next(iter(self.state.runs.values()), None)
        hint = f"rlx sweep show {self.log.name}"
        if first:
            hint = f"rlx info {first} --traceback"
        message = f"all {len(self.state.trials)} trials failed: {(reasons or ['no score'])[0]}"
        self.log.append("confirmed", key="1", is_confirmed=False, line=message, why="failed")
        raise JobFailed(message, hint=hint)

    def _record_winner(self, winner: Winner, values: Values) -> None:
        audit = self.search.audit
        regret = None
        if audit is not None:
            regret = {"trials": list(audit.trials), "regret": audit.regret}
        if self.state.winner is None:
            self.log.append("winner", key="1", trial=winner.trial, score=winner.score, seeds=winner.seeds, audit=regret)
        write_best(self.log, self.state.plan, values, root=self.root)

    def _confirm(self, winner: Winner, values: Values, ground: CurrentCode) -> None:
        plan = self.state.plan
        base_values = plan.base_values()
        if base_values is not None and plan.space.identity(values) == plan.space.identity(base_values):
            answer: dict[str, Any] = {"is_confirmed": False, "line": "no trial beat the base config", "why": "base"}
        elif not plan.confirm:
            answer = {"is_confirmed": False, "line": "no confirmation was planned", "why": "skipped"}
        else:
            answer = confirm_winner(
                self.log, self.state, values, root=self.root, ground=ground, report=self._report_confirmation
            )
        optimism = None
        if answer.get("score") is not None:
            optimism = winner.score - answer["score"]
        self.log.append("confirmed", key="1", claimed=winner.score, optimism=optimism, **answer)

    # Time and progress

    def _elapsed(self) -> float:
        return self._seconds_before + time.monotonic() - self._began

    def _goes_on(self) -> bool:
        """Say whether another bracket begins: always if it is in the log, else while there is time for the search."""
        hours = self.state.plan.hours
        if hours is None or len(self.search.trials) < len(self.search.recorded) or not self.search.trials:
            return True
        if self.state.race_budget is None:
            pace = self._elapsed() / max(0.1, cost_so_far(dict.fromkeys(self.state.scores)))
            left = hours * 3600 - 2 * self.state.plan.confirm * pace
            if self._elapsed() < SEARCH_SHARE * left:
                return True
            self.state.race_budget = max(LEAST_RACE, (left - self._elapsed()) / pace)
            self.log.append("race", key="1", budget=self.state.race_budget)
        race = replace(self.search.settings.race, budget=self.state.race_budget)
        self.search.settings = replace(self.search.settings, race=race)
        return False

    def _watch(self, active: Mapping[TrialJob, float]) -> None:
        done = cost_so_far({**dict.fromkeys(self.state.scores, None), **active})
        plan = self.state.plan
        total = planned_cost(plan)
        share = min(1.0, done / total)
        if plan.hours is not None:
            share = min(1.0, self._elapsed() / (plan.hours * 3600))
        if self._cost_before is None:
            self._cost_before = share
        eta = None
        if share > self._cost_before:
            eta = (time.monotonic() - self._began) * (1 - share) / (share - self._cost_before)
        progress = SweepProgress(
            self.search.stage, len(self.state.trials), plan.planned_trials, share, self._best(), eta
        )
        self._report(progress)

    def _best(self) -> str:
        full = [(score.score, job.trial) for job, score in self.state.scores.items()
                if score.score is not None and job.share >= 1.0]  # fmt: skip
        if not full:
            return ""
        score, trial = max(full)
        return f"{score:.4g} (trial {trial})"

    def _report_confirmation(self, progress: SettleProgress) -> None:
        trials = len(self.state.trials)
        text = progress.doing
        if progress.verdict is not None and progress.verdict.leaning == progress.verdict.leaning:
            text += f", leaning {progress.verdict.effect()}"
        self._report(SweepProgress("confirm", trials, trials, progress.share, self._best(), progress.eta_seconds, text))


def cost_so_far(shares: Mapping[TrialJob, float | None]) -> float:
    """Return the cost of some trainings in full trainings; a rung counts only what it added to the one before."""
    longest: dict[tuple[int, int], float] = {}
    for job, reached in shares.items():
        share = job.share
        if reached is not None:
            share = reached
        place = (job.trial, job.seed)
        longest[place] = max(longest.get(place, 0.0), share)
    return sum(longest.values())


def _first(plan: SweepPlan) -> list[Values]:
    """Return the configs that are tried first: those of the plan, or the base config if it is in the space."""
    if plan.first or plan.sampler == "grid":
        return [dict(values) for values in plan.first]
    values = plan.base_values()
    if values is None:
        return []
    return [values]


def _sampler(plan: SweepPlan, vote: Vote | None) -> tuple[Sampler, set[tuple[object, ...]]]:
    """Return the sampler, and the identities of the configs that a planner voted for."""
    name = plan.sampler
    if name == AUTO_SAMPLER:
        name = DEFAULT_SAMPLER
    sampler = sampler_named(name)
    if vote is None:
        return sampler, set()
    minority = MinorityVote(sampler, vote)
    return minority, minority.voted


def write_best(log: SweepLog, plan: SweepPlan, values: Values, *, root: Path) -> Path:
    """Write the winner as a config that extends the base; if the base has changed since, it extends a copy."""
    from rlx.config.load import dump_data, group_hash, read

    path = log.folder / BEST
    changes = {**plan.fixed, **values}
    base = os.path.relpath(root / plan.base, log.folder)
    if plan.base.startswith("catalog:"):
        base = plan.base
    text = dump_data({"extends": base, **nested(changes)})
    files.write_atomic(path, text.encode())
    wanted = group_hash(plan.experiment(values))
    try:
        is_same = group_hash(read(path)) == wanted
    except RlxError:  # the base is gone, or does not load any more
        is_same = False
    if not is_same:
        copy = dump_data(dict(plan.data))
        files.write_atomic(log.folder / "base.yaml", copy.encode())
        files.write_atomic(path, dump_data({"extends": "base.yaml", **nested(changes)}).encode())
    return path


def stop(name: str, *, root: Path) -> bool:
    """Stop a sweep cleanly: its process ends, its runs save `latest`. Return whether anything was running."""
    log = sweep_log.find(name, root=root)
    holder = log.holder
    was_running = log.is_running
    if was_running and holder is not None and process.is_alive(holder):
        os.kill(holder.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while log.is_running and time.monotonic() < deadline:
            time.sleep(0.1)
    if log.is_running:
        raise Refused(f"the process of the sweep {name} cannot be reached from here", hint="stop it on its own machine")
    state = log.state()
    left = []
    for run_name in [*state.runs.values(), *state.confirm_runs.values()]:
        run = Run(root / "runs" / run_name)
        if run.path.is_dir() and launch.is_active(run):  # it outlived a sweep that was killed
            left.append(run)
    launch.stop_all(left)
    return was_running or bool(left)


def first_trials(plan: SweepPlan) -> list[Values]:
    """Return the configs of the first bracket, as the sweep would try them."""
    sampler, _ = _sampler(plan, None)
    first = _first(plan)[: plan.settings.bracket]
    history = [Observation(values) for values in first]
    missing = plan.settings.bracket - len(first)
    return [*first, *sampler.propose(plan.valid_space, history, missing, seed=plan.settings.seed)]
