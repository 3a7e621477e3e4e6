"""The rehearsal: a candidate that changes nothing walks the whole path once, at a tiny budget, in the real sandbox."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlx import files, sandbox
from rlx.compare.race import RULE, race
from rlx.config.expression import Expression
from rlx.config.schema import Experiment
from rlx.errors import EvidenceInvalid, JobFailed, Refused, RlxError
from rlx.figures import counted
from rlx.launch import door, worktree
from rlx.launch import launch as plain
from rlx.launch.door import Order
from rlx.launch.examined import examine
from rlx.launch.facts import unapproved
from rlx.launch.reconcile import reconcile
from rlx.launch.weights import weights_of
from rlx.loop.evaluator import Evaluator
from rlx.loop.pool import unguarded
from rlx.loop.proceed import next_step, open_points
from rlx.loop.scores import Say, score_of
from rlx.runs.run import Run
from rlx.runs.summary import costs
from rlx.study import contract as contracts
from rlx.study import remedy
from rlx.study.candidate import REHEARSAL
from rlx.study.prefill import SLACK
from rlx.study.recipe import SMOKE_SHARE, experiment_of, steps_of
from rlx.study.standing import Draw
from rlx.study.study import Study

EPISODES = 2
_ABSENT = re.compile(r"(?:No such file or directory|Permission denied): '([^']+)'")
LINES = 20
"""How much of a job's own log is shown where it failed."""


class Rehearsal:
    """One walk: every step says what it saw, and the first that fails ends it and leaves its traces.

    These are the run with its logs, what an evaluation printed, and the worktree; the next walk begins without them.
    """

    def __init__(self, study: Study, *, say: Say) -> None:
        self.study = study
        self.say = say
        self.evaluator = Evaluator(study)
        self.run: Run | None = None
        self.document: Mapping[str, Any] = {}
        self.score = float("nan")
        self.seed_seconds: float | None = None
        self.checks: list[dict[str, Any]] = []

    def walk(self) -> dict[str, Any]:
        """Walk the path and write how it went into the ledger; a path that works leaves nothing behind."""
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
        for name, step in steps.items():
            if not self._took(name, step):
                break
        is_well = len(self.checks) == len(steps) and all(check["ok"] for check in self.checks)
        found, traces = sandbox.probe().document(), {} if is_well else self._traces()
        self.study.ledger.append(
            "rehearsed", contract=contracts.sha256(self.study.contract_path), ok=is_well, checks=self.checks,
            enforced=found, reads=traces.get("reads"), seed_seconds=self.seed_seconds,
        )  # fmt: skip
        told = {"study": self.study.name, "ok": is_well, "path": list(steps), "checks": self.checks, "enforced": found}
        return {**told, **traces}

    def _clear(self) -> None:
        """Take away what an earlier walk left, unless its job still runs: then this one goes on with that."""
        if not any(job.candidate == REHEARSAL for job in self.study.state().open_jobs):
            shutil.rmtree(self._out, ignore_errors=True)
            worktree.remove(self.study.worktree(REHEARSAL), root=self.study.root)

    def _took(self, name: str, step: Callable[[], str]) -> bool:
        try:
            says, is_well, hint = step(), True, None
        except RlxError as error:
            says, is_well, hint = error.message, False, self._out_of_reach(error.message) or error.hint
        self.checks.append({"name": name, "ok": is_well, "says": says, **({"hint": hint} if hint else {})})
        self.say(f"{'ok' if is_well else 'failed'}: {name}: {says}")
        return is_well

    def _out_of_reach(self, says: str) -> str | None:
        """Return what helps where a job lacks a file that lies here: it has what is committed, and may read no more."""
        name = match[1] if (match := _ABSENT.search(says)) else ""
        path = self.study.root / name
        if not name or not path.exists():
            return None
        hardware = self.study.contract().hardware
        folders = [*(hardware.reads if hardware else ()), str(path.parent)]
        reads = remedy.amend(self.study.contract(), "hardware.reads", list(dict.fromkeys(folders)))
        if Path(name).is_absolute():
            return reads
        return f"jobs have what is committed, and {name} is not: commit it, or name it whole ({path}) and {reads}"

    def _traces(self) -> dict[str, Any]:
        """Return the end of what the failed step's process said, the file it is in, and what shows all of it."""
        printed = next(iter(sorted(self._out.glob("*.log"))), None)
        if printed is not None:
            log = printed.relative_to(self.study.root).as_posix()
            return {"log": log, "tail": self._tail(printed), "reads": f"cat {log}"}
        printed = self.run.path / "logs" / f"seed_{self.run.seeds[0].number}.log" if self.run else None
        if self.run is None or printed is None or not printed.is_file():
            return {}
        log = printed.relative_to(self.study.root).as_posix()
        return {"log": log, "tail": self._tail(printed), "reads": f"rlx logs {self.run.name}"}

    def _tail(self, path: Path) -> list[str]:
        """Return the last lines of a log, without those that the failed step has told."""
        said = self.checks[-1]["says"]
        whole = path.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line for line in whole if line.startswith("error: ") and line.removeprefix("error: ") in said]
        return [line for line in whole if line not in told][-LINES:]

    @property
    def _out(self) -> Path:
        return self.study.evidence / "smoke"

    def _contract(self) -> str:
        found = open_points(self.study, self.study.state(), self.study.contract())
        if found:
            raise Refused(f"not settled: {'; '.join(map(str, found))}", hint=next_step(self.study).command)
        return "all eight points are settled"

    def _disk(self) -> str:
        contract = self.study.contract()
        free = shutil.disk_usage(self.study.root).free / 2**30
        needed = contract.hardware.disk_gb if contract.hardware else 0.0
        if free < needed:
            raise Refused(f"{free:.1f} GB are free, a job may write {needed:g}")
        return f"{free:.1f} GB are free"

    def _sandbox(self) -> str:
        found, automation = sandbox.probe(), self.study.contract().automation
        if not found.is_enforced and automation is not None and automation.sandbox == "required":
            raise Refused("no sandbox can be enforced here, and the contract requires one")
        denied = sum(one.endswith(": denied") for one in found.enforced)
        return f"{found.mechanism} holds: {denied} ways out were tried and denied"

    def _evaluator(self) -> str:
        if unapproved(self.study, self.study.state(), self.study.contract()):
            self.evaluator.pin = self.evaluator.fresh()  # an earlier one may be of another commit
        return f"pinned as {self.evaluator.pin.sha256[:12]}"

    def _worktree(self) -> str:
        examined = examine(self.study, REHEARSAL)
        reasons = examined.reasons()
        if reasons:
            again = remedy.pins_head(self.study.name)
            says = "; ".join(one.says for one in reasons)
            raise Refused(f"the baseline itself is refused: {says}", hint=f"mend it, commit, and pin that: {again}")
        return "made from the pinned commit, and equal to it"

    def _launch(self) -> str:
        launched = door.launch(self.study, Order(REHEARSAL, "smoke"))
        self.run = Run(self.study.root / "runs" / str(launched.run))
        return f"{launched.run} was started"

    def _train(self) -> str:
        assert self.run is not None
        self.run = plain.wait(self.run, timeout_seconds=door.SMOKE_SECONDS + 60)
        failure = plain.failure(self.run)
        if failure or self.run.status != "completed":
            raise failure or JobFailed(f"{self.run.name} is {self.run.status}")
        seconds = costs(self.run)[self.run.seeds[0].number].seconds
        return f"{self._trained(self.run)} in {seconds:.1f} s{self._pace(seconds)}"

    def _trained(self, run: Run) -> str:
        """Say how much was trained: what was asked for, for whatever a program writes down as its steps."""
        is_short, whole = self._whole()
        return counted(steps_of(whole, SMOKE_SHARE) if is_short else run.seeds[0].step, "step")

    def _whole(self) -> tuple[bool, Experiment]:
        """Return whether a rehearsal trains less than a whole training, and what that is."""
        task = self.study.task()
        whole = experiment_of(task, {}, tree=self.study.root)
        return task.adapter.takes_steps and whole.algo.says_length, whole

    def _pace(self, seconds: float) -> str:
        """Say what a whole training could take, where a seed may not take as long."""
        budget = self.study.contract().budget
        assert budget is not None
        is_short, whole = self._whole()
        share = steps_of(whole, SMOKE_SHARE) / steps_of(whole) if is_short else 1.0
        self.seed_seconds = seconds / share
        if self.seed_seconds <= budget.per_seed_minutes * 60:
            return ""
        minutes = math.ceil(SLACK * self.seed_seconds / 60)
        longer = remedy.amend(self.study.contract(), "budget.per_seed_minutes", minutes)
        most = f"a seed is ended after {budget.per_seed_minutes * 60:.0f} s"
        return f"; a whole training could take {self.seed_seconds:.0f} s at this pace, and {most} ({longer})"

    def _evaluate(self) -> str:
        assert self.run is not None
        seed = self.run.seeds[0]
        weights = weights_of(seed)
        if weights is None:
            raise EvidenceInvalid(f"{self.run.name} left no checkpoint")
        draw = Draw("search", 0, EPISODES, (REHEARSAL,), 0)
        found = self.evaluator.measure(REHEARSAL, self.run.name, {seed.number: weights}, draw, self._out)
        self.document = next(found).document
        if self.document.get("failure"):
            raise EvidenceInvalid(f"{self.document['failure']['code']}: {self.document['failure']['says']}")
        return f"{EPISODES} episodes ({self.document['level']})"

    def _metric(self) -> str:
        self.score = score_of(self.study, self.document)
        contract, figures = self.study.contract(), self.document["figures"]
        for says, command in unguarded(contract, figures):
            raise EvidenceInvalid(says, hint=command or None)
        told = {name: figures[name] for one in contract.guardrails for name in sorted(Expression(one.expression).names)}
        named = {contract.metric.name: self.score, **told} if contract.metric else told
        return ", ".join(f"{name} {value:.4g}" for name, value in named.items())

    def _decide(self) -> str:
        same = [self.score] * RULE.head
        result = race(same, same[: RULE.first])
        if result.step not in ("drop", "more"):
            raise EvidenceInvalid(f"equal scores end in `{result.step}`: {result.reason}")
        return f"equal scores do not move the head ({result.reason})"

    def _revert(self) -> str:
        assert self.run is not None
        worktree.remove(self.study.worktree(REHEARSAL), root=self.study.root)
        files.sync_folder(self.study.folder)
        return "the worktree is gone again"
