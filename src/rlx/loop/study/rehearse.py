"""The rehearsal: a candidate that changes nothing takes every step once, on a tiny budget, in the real sandbox."""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlx import files
from rlx.command import Command, rlx
from rlx.compare.race import race
from rlx.compare.race_thresholds import RULE
from rlx.config.expression import Expression
from rlx.config.schema import Experiment
from rlx.errors import EvidenceInvalid, JobFailed, Refused, RlxError
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch import launch as plain
from rlx.launch.git import worktree
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.candidate_check import check_on_disk
from rlx.launch.study_jobs.checkpoint_hashes import checkpoint_hash
from rlx.launch.study_jobs.launch_candidate import LaunchOrder
from rlx.launch.study_jobs.launch_facts import candidate_facts, unapproved
from rlx.launch.study_jobs.reconcile import reconcile
from rlx.loop.study.baseline import unguarded
from rlx.loop.study.evaluator import StudyEvaluator
from rlx.loop.study.measure_scores import Say, score_of
from rlx.loop.study.open_points import open_points
from rlx.loop.study.step_commands import next_step
from rlx.number_format import counted
from rlx.runs.run import Run
from rlx.runs.summary import costs
from rlx.sandbox.self_test import run_self_test
from rlx.study.candidate.candidate import REHEARSAL
from rlx.study.candidate.candidate_experiment import SMOKE_SHARE, experiment_of, steps_of
from rlx.study.contract import contract as contracts
from rlx.study.contract import fixes
from rlx.study.contract.prefill import SLACK
from rlx.study.ledger.records import Draw
from rlx.study.moves import Move, judge
from rlx.study.situation import Facts, Situation
from rlx.study.study_folder import Study
from rlx.train.backends.command.training_process import ENDED_WITHOUT

EPISODES = 2
_ABSENT = re.compile(r"(?:No such file or directory|Permission denied): '([^']+)'")
LINES = 20
"""How many lines of a failed job's log are shown."""
SHARES = (SMOKE_SHARE, 0.1, 0.4, 1.0)
"""The shares of a training that are tried until it has logged its score and saved a checkpoint."""


class Rehearsal:
    """One rehearsal. Its first failed step ends it and leaves the run, the logs and the worktree to look at.

    The next rehearsal removes them first.
    """

    def __init__(self, study: Study, *, say: Say) -> None:
        self.study = study
        self.say = say
        self.evaluator = StudyEvaluator(study)
        self.run: Run | None = None
        self.document: Mapping[str, Any] = {}
        self.score = float("nan")
        self.seed_seconds: float | None = None
        self.trials: list[tuple[int, float]] = []
        """The steps and seconds of the trainings so far."""
        self.checks: list[dict[str, Any]] = []
        self.fix: Command | None = None
        """What fixes the step that failed."""

    def walk(self) -> dict[str, Any]:
        """Take every step and write the result into the ledger; a rehearsal that goes well leaves nothing behind."""
        what = f"the training of the task {self.study.task_name}"
        refuse_foreign_program(what, root=self.study.root, item=self.study.folder)
        try:
            with files.locked(self.study.folder / REHEARSAL, wait=False):
                return self._walk()
        except BlockingIOError:
            raise Refused(f"{self.study.name} is being rehearsed by somebody else", hint="rlx status") from None

    def _walk(self) -> dict[str, Any]:
        reconcile(self.study)
        self._clear()
        steps: dict[str, Callable[[], str]] = {
            "contract": self._contract,
            "disk": self._disk,
            "sandbox": self._sandbox,
            "evaluator": self._evaluator,
            "worktree": self._worktree,
            "launcher": self._launch,
            "training": self._train,
            "evaluation": self._evaluate,
            "metric": self._metric,
            "decision": self._decide,
            "revert": self._revert,
        }
        is_well = all(self._is_done(name, step) for name, step in steps.items())
        enforced = run_self_test().document()
        log = None if is_well else self._log()
        traces: dict[str, Any] = {}
        shows: Command | None = None
        if log is not None:
            shows = rlx("logs", self.run.name) if self.run and self.run.path in log.parents else None
            where = log.relative_to(self.study.root).as_posix()
            shows = shows or Command(("cat", where))
            traces = {"log": where, "tail": self._tail(log), "reads": str(shows)}
        first = self.fix or shows
        self.study.ledger.append(
            "rehearsed", contract=contracts.sha256(self.study.contract_path), ok=is_well, checks=self.checks,
            enforced=enforced, reads=traces.get("reads"), fix=list(first.argv) if first else None,
            seed_seconds=self.seed_seconds,
        )  # fmt: skip
        return {
            "study": self.study.name, "ok": is_well, "path": list(steps), "checks": self.checks, "enforced": enforced,
            **traces,
        }  # fmt: skip

    def _clear(self) -> None:
        """Remove what an earlier rehearsal left. If its job still runs, this rehearsal continues with it."""
        if not any(job.candidate == REHEARSAL for job in self.study.state().open_jobs):
            shutil.rmtree(self._out, ignore_errors=True)
            worktree.remove(self.study.worktree(REHEARSAL), root=self.study.root)

    def _is_done(self, name: str, step: Callable[[], str]) -> bool:
        """Take a step and note what it saw; return whether it went well."""
        try:
            message = step()
        except RlxError as error:
            self.fix, hint = self._remedy(error)
            check = {"name": name, "ok": False, "says": error.message}
            self.checks.append({**check, "hint": hint} if hint else check)
            self.say(f"failed: {name}: {error.message}")
            return False
        self.checks.append({"name": name, "ok": True, "says": message})
        self.say(f"ok: {name}: {message}")
        return True

    def _remedy(self, error: RlxError) -> tuple[Command | None, str]:
        """Return the command that fixes a failed step, if one is known, and what to tell people.

        A job has the committed files only. If it lacks another one, the contract can let jobs read that folder.
        """
        missing = _ABSENT.search(error.message)
        path = self.study.root / missing[1] if missing else None
        if missing is None or path is None or not path.exists():
            fix = error.fix if isinstance(error, Refused) else None
            return fix if fix and fix.is_complete else None, error.hint or ""
        contract = self.study.contract()
        folders = [*(contract.hardware.reads if contract.hardware else ()), str(path.parent)]
        amend = fixes.amend(contract, "hardware.reads", list(dict.fromkeys(folders)))
        if Path(missing[1]).is_absolute():
            return amend, str(amend)
        what = f"jobs have only committed files, and {missing[1]} is not committed"
        return None, f"{what}: commit it, or use its full path ({path}) and type {amend}"

    def _log(self) -> Path | None:
        """Return the log of the failed step's process, if it has one: an evaluation's, else the training's."""
        logs = sorted(self._out.glob("*.log"))
        if self.run:
            logs.append(self.run.path / "logs" / f"seed_{self.run.seeds[0].number}.log")
        return next((path for path in logs if path.is_file()), None)

    def _tail(self, path: Path) -> list[str]:
        """Return the last lines of a log, without those that the failed step repeats."""
        message = self.checks[-1]["says"]
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if not (line.startswith("error: ") and line[7:] in message)][-LINES:]

    @property
    def _out(self) -> Path:
        return self.study.evidence / "smoke"

    def _contract(self) -> str:
        problems = open_points(self.study, self.study.state(), self.study.contract())
        if problems:
            message = "; ".join(problem.message for problem in problems)
            raise Refused(f"not settled: {message}", fix=next_step(self.study).command)
        return "all eight points are settled"

    def _disk(self) -> str:
        contract = self.study.contract()
        free = shutil.disk_usage(self.study.root).free / 2**30
        needed = contract.hardware.disk_gb if contract.hardware else 0.0
        if free < needed:
            raise Refused(f"{free:.1f} GB are free, a job may write {needed:g}")
        return f"{free:.1f} GB are free"

    def _sandbox(self) -> str:
        found, automation = run_self_test(), self.study.contract().automation
        if not found.is_enforced and automation is not None and automation.sandbox == "required":
            raise Refused("no sandbox can be enforced here, and the contract requires one")
        denied = len(found.denied)
        return f"{found.mechanism} holds: {denied} ways out were tried and denied"

    def _evaluator(self) -> str:
        if unapproved(self.study, self.study.state(), self.study.contract()):
            self.evaluator.pin = self.evaluator.fresh()  # an earlier one may be of another commit
        return f"pinned as {self.evaluator.pin.sha256[:12]}"

    def _worktree(self) -> str:
        examined = check_on_disk(self.study, REHEARSAL)
        facts = Facts(time.time(), "", candidates=candidate_facts(self.study, examined))
        at = Situation(self.study.state(), self.study.contract(), facts)
        reasons = judge(at, Move("check", REHEARSAL))
        if reasons:
            pin = fixes.pins_head(self.study.name)
            message = "; ".join(reason.message for reason in reasons)
            raise Refused(f"the baseline itself is refused: {message}", hint=f"fix it, commit, and pin that: {pin}")
        return "made from the pinned commit, and equal to it"

    def _launch(self, share: float = SMOKE_SHARE) -> str:
        launched = launch_candidate.launch(self.study, LaunchOrder(REHEARSAL, "smoke", smoke_share=share))
        self.run = Run(self.study.root / "runs" / str(launched.run))
        return f"{launched.run} was started"

    def _train(self) -> str:
        """Wait for the training. If it was too short for its first score or checkpoint, try a longer one."""
        assert self.run is not None
        missing = self._trained(SMOKE_SHARE)
        for share in SHARES[1:]:
            if not self._takes_steps or not (missing or self._is_startup_large()):
                break
            if self.trials[-1][1] * share / SHARES[SHARES.index(share) - 1] > contracts.REHEARSAL_SECONDS:
                break  # the longer one would be ended before it is done
            if missing:
                self.say(f"{counted(self.trials[-1][0], 'step')} ended without {missing}: trying a longer training")
            reconcile(self.study)
            self._launch(share)
            missing = self._trained(share)
        failure = plain.failure(self.run)
        if failure or self.run.status != "completed":
            raise failure or JobFailed(f"{self.run.name} is {self.run.status}")
        steps, seconds = self.trials[-1]
        self.seed_seconds = self._whole_seconds()
        return f"{counted(steps, 'step')} in {seconds:.1f} s{self._pace(self.seed_seconds)}"

    def _trained(self, share: float) -> str:
        """Wait for a training; return what it ended without: its metrics, its score, or its checkpoint."""
        assert self.run is not None
        self.run = plain.wait(self.run, timeout_seconds=contracts.REHEARSAL_SECONDS + 60)
        seed = self.run.seeds[0]
        steps = seed.step
        if self._takes_steps:  # a program may log any number as its steps
            steps = steps_of(self._whole, share)
        self.trials.append((steps, costs(self.run)[seed.number].seconds))
        for event in seed.events:
            if event.get("event") == ENDED_WITHOUT:
                return str(event.get("what"))
        metric = self.study.contract().metric
        task = self.study.task()
        is_logged = task.adapter.kind == "command" and not task.adapter.eval and not task.adapter.env
        if self.run.status == "completed" and is_logged and metric and metric.name not in self.run.metric_names():
            return f"`{metric.name}`"
        return ""

    @property
    def _whole(self) -> Experiment:
        return experiment_of(self.study.task(), {}, tree=self.study.root)

    @property
    def _takes_steps(self) -> bool:
        return self.study.task().adapter.takes_steps and self._whole.algo.says_length

    def _is_startup_large(self) -> bool:
        """Return whether one short training says that a whole one takes too long: start-up may be most of it."""
        assert self.run is not None
        is_first = len(self.trials) == 1 and self.run.status == "completed"
        return is_first and bool(self._pace(self._whole_seconds()))

    def _whole_seconds(self) -> float:
        """Return the seconds of a whole training. Two trainings of different lengths tell start-up from pace."""
        if not self._takes_steps:
            return self.trials[-1][1]
        whole = steps_of(self._whole)
        steps, seconds = self.trials[-1]
        if len(self.trials) == 1:
            return seconds * whole / steps
        before, seconds_before = self.trials[-2]
        pace = max(seconds - seconds_before, 0.0) / max(steps - before, 1)
        return seconds + pace * (whole - steps)

    def _pace(self, seed_seconds: float) -> str:
        """Return a warning if a whole training would take longer than a seed may."""
        contract = self.study.contract()
        assert contract.budget is not None
        limit = contract.budget.per_seed_minutes * 60
        if seed_seconds <= limit:
            return ""
        longer = fixes.amend(contract, "budget.per_seed_minutes", math.ceil(SLACK * seed_seconds / 60))
        return (
            f"; a whole training could take {seed_seconds:.0f} s at this pace, and rlx ends a seed after {limit:.0f} s "
            f"({longer})"
        )

    def _evaluate(self) -> str:
        assert self.run is not None
        seed = self.run.seeds[0]
        weights = checkpoint_hash(seed)
        if weights is None:
            raise EvidenceInvalid(f"{self.run.name} left no checkpoint")
        draw = Draw("search", 0, EPISODES, (REHEARSAL,), 0)
        results = self.evaluator.measure(REHEARSAL, self.run.name, {seed.number: weights}, draw, self._out)
        self.document = next(results).document
        failure = self.document.get("failure")
        if failure:
            raise EvidenceInvalid(f"{failure['code']}: {failure['says']}")
        level, adapter = self.document["level"], self.study.task().adapter
        if level == "reported":
            return "the training's own log was read (reported)"
        if level == "pinned" and not adapter.takes_episodes:
            played = len(self.document["episodes"])
            return f"{counted(played, 'episode') if played else 'an unknown number of episodes'} ({level})"
        return f"{EPISODES} episodes ({level})"

    def _metric(self) -> str:
        self.score = score_of(self.study, self.document)
        contract, figures = self.study.contract(), self.document["figures"]
        for message, fix in unguarded(contract, figures):
            raise Refused(message, fix=fix)
        values = {contract.metric.name: self.score} if contract.metric else {}
        for guardrail in contract.guardrails:
            values |= {name: figures[name] for name in sorted(Expression(guardrail.expression).names)}
        return ", ".join(f"{name} {value:.4g}" for name, value in values.items())

    def _decide(self) -> str:
        same = [self.score] * RULE.head
        result = race(same, same[: RULE.first])
        if result.step not in ("drop", "more"):
            raise EvidenceInvalid(f"equal scores end in `{result.step}`: {result.reason}")
        return f"equal scores do not move the head ({result.reason})"

    def _revert(self) -> str:
        worktree.remove(self.study.worktree(REHEARSAL), root=self.study.root)
        files.sync_folder(self.study.folder)
        return "the worktree is removed"
