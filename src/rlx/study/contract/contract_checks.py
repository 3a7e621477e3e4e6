"""Check the eight points of a contract: why a point is open, what settles it, and what a person should know."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlx import external_programs, files
from rlx.command import Command, shell
from rlx.config.expression import Expression, falling, renamed
from rlx.errors import did_you_mean, hint_for
from rlx.number_format import listed
from rlx.study.candidate import path_patterns
from rlx.study.contract import baseline_commit, fixes, scope_checks
from rlx.study.contract.contract import (
    MINIMUM_SEEDS,
    POINTS,
    REHEARSAL_SECONDS,
    SEALED_METRICS,
    STOP_NAMES,
    USUAL_STOP,
    Baseline,
    Contract,
    ContractGuardrail,
    Level,
    Point,
    metric_names,
    open_places,
)
from rlx.study.contract.scope_checks import MessageAndFix
from rlx.study.stop_rules import deadline
from rlx.study.task import protected_files
from rlx.study.task import task as tasks
from rlx.study.task.task import Task

Status = Literal["blocked", "ready", "approved"]
# Endings of files that programs usually read with `pickle`, which can run code from the file.
PICKLED = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".zip")
LARGEST_ALPHA = 0.2
_PICKLE_NOTE = (
    "if the eval command unpickles `{}` (pickle, joblib, torch.load without weights_only), a training can put code in "
    "it that writes its own figures; load only the weights, or serve the policy (adapter.policy)"
)
_SAME_EPISODES_NOTE = (
    "the eval command takes no {episode_seed}: it chooses its episodes, and a claim may be measured on the search's"
)
_FOLDER_NOTE = (
    "not ruled out: if `{}` is a folder, the eval command may read settings from it that a candidate has changed. A "
    "candidate cannot be claimed if its settings there differ from the baseline's, except for hyperparameters. Name "
    "only the file with the weights"
)
_STEP_NOTE = (
    "`{}` is the whole `step`: besides the reward, a candidate may change the dynamics, the observations and the end "
    "of an episode in training; scores come from the pinned copy. To open only the reward, move it into its own "
    "function, commit, and write the task again (rlx task new --replace)"
)


@dataclass(frozen=True)
class OpenPoint:
    """Why one of the eight points is not settled, and the command or advice that settles it, if rlx knows one."""

    point: Point
    message: str
    fix: Command | str = ""

    @property
    def hint(self) -> str:
        """The fix as text."""
        return str(self.fix)

    @property
    def command(self) -> Command | None:
        """The command that settles this as it stands, if there is one."""
        if isinstance(self.fix, Command) and self.fix.is_complete:
            return self.fix
        return None

    def __str__(self) -> str:
        text = f"{POINTS[self.point]}: {self.message}"
        if self.hint:
            text += f" ({self.hint})"
        return text


def problems(contract: Contract, task: Task, *, root: Path) -> tuple[OpenPoint, ...]:
    """Return why points are not settled: missing, invalid, in conflict with task or repository, or not confirmed."""
    checks: dict[Point, Callable[[Contract, Task, Path], Iterator[MessageAndFix]]] = {
        "task": _task,
        "metric": _metric,
        "scope": scope_checks.problems,
        "budget": _budget,
        "hardware": _hardware,
        "baseline": _baseline,
        "evaluation": _evaluation,
        "automation": _automation,
    }
    by_point: dict[Point, list[OpenPoint]] = {}
    for point, check in checks.items():
        if getattr(contract, point) is None:
            by_point[point] = [OpenPoint(point, f"`{point}` is missing", fixes.add_point(point, contract, task))]
        else:
            by_point[point] = [OpenPoint(point, message, fix) for message, fix in check(contract, task, root)]
    # One command confirms all points that have no other problem.
    complete = [point for point in POINTS if point in contract.confirmed or not by_point[point]]
    confirm = fixes.amend(contract, "confirmed", complete)
    for point, open_points in by_point.items():
        if point not in contract.confirmed and getattr(contract, point) is not None:
            open_points.append(OpenPoint(point, "not confirmed", "" if open_points else confirm))
    return tuple(open_point for open_points in by_point.values() for open_point in open_points)


def notes(contract: Contract, task: Task) -> tuple[OpenPoint, ...]:
    """Return notes on weak terms: those that make every verdict provisional, and those that rlx does not enforce."""
    return tuple(OpenPoint(point, message) for point, message in _notes(contract, task))


def _notes(contract: Contract, task: Task) -> Iterator[tuple[Point, str]]:
    if not task.adapter.takes_steps:
        minutes = REHEARSAL_SECONDS / 60
        yield (
            "budget",
            (
                "the training command has no {steps}: trials and the rehearsal train as long as a full training; "
                f"a rehearsal ends after {minutes:g} minutes"
            ),
        )
    metric = contract.metric
    if metric and metric.seeds < MINIMUM_SEEDS:
        yield "metric", f"{metric.seeds} seeds per side: every verdict is provisional and never moves an incumbent"
    if metric and metric.source == "training" and task.adapter.kind == "rlx":
        yield "metric", "source training: rlx evaluates this task itself; `source: evaluator` is stronger"
    if contract.scope:
        for path in open_places(contract.scope, task).paths:
            if (path_patterns.split(path)[1] or "").rpartition(".")[2] == "step":
                yield "scope", _STEP_NOTE.format(path)
    if contract.evaluation and contract.evaluation.level == "reported":
        yield "evaluation", "level reported: scores come from the training's own logs and never move an incumbent"
    if contract.evaluation and contract.evaluation.level == "pinned" and not task.adapter.takes_episode_seed:
        yield "evaluation", _SAME_EPISODES_NOTE
    checkpoint = task.adapter.checkpoint
    if contract.evaluation and contract.evaluation.level == "pinned" and checkpoint:
        if checkpoint.endswith(PICKLED):
            yield "evaluation", _PICKLE_NOTE.format(checkpoint)
        elif not Path(checkpoint).suffix:
            yield "evaluation", _FOLDER_NOTE.format(checkpoint)
    automation = contract.automation
    if automation and automation.network:
        yield "automation", "jobs may use the network: they could fetch or send anything"
    if automation and automation.sandbox == "if available":
        yield "automation", "if the kernel has no sandbox, jobs run without one, and the evidence records that"
    if automation and automation.unattended and automation.approval == "asserted":
        yield "automation", "unattended, and an asserted approval is enough: anyone on this account could make one"


def _task(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    if contract.task != task.name:
        yield f"the contract is for task `{contract.task}`, but this task is `{task.name}`", ""
    elif contract.task_sha256 != tasks.sha256(task):
        confirm = fixes.amend(contract, "task_sha256", tasks.sha256(task))
        yield "the task has changed since this was confirmed; check it again", confirm
    if not task.card.mission.strip():
        yield "the task card has no mission: say what should improve", fixes.set_mission(contract, task)
    stale = tuple(tasks.stale_facts(task, root))
    for message in stale:
        yield message, fixes.refresh_task(task)
    for message in tasks.problems(task, root)[len(stale) :]:  # the stale facts come first
        yield message, fixes.rewrite_task(task)


def _metric(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    metric = contract.metric
    assert metric is not None
    if contract.evaluation is not None:
        yield from _figure_problems(contract, task, contract.evaluation.level, root)
    if metric.alpha > LARGEST_ALPHA:
        message = f"alpha {metric.alpha:g} would accept chance as an improvement: at most {LARGEST_ALPHA:g}"
        yield message, fixes.amend(contract, "metric.alpha", 0.05)


def _figure_problems(contract: Contract, task: Task, level: Level, root: Path) -> Iterator[MessageAndFix]:
    """Yield problems of the metric and the guardrails with the figures of the evaluation."""
    metric = contract.metric
    assert metric is not None
    if metric.source == "training" and level != "reported":
        message = f"source training only reaches level reported, but the evaluation requires {level}"
        yield message, fixes.amend(contract, "metric.source", "evaluator")
    known: tuple[str, ...] = SEALED_METRICS
    if metric.source == "training":
        known = metric_names(task, "reported")
    elif level != "sealed":
        known = metric_names(task, level)
    if known and metric.name not in known:
        hint = hint_for(metric.name, known, otherwise=f"it has: {', '.join(known)}")
        fix = fixes.set_metric(contract, did_you_mean(metric.name, known) or known[0])
        yield f"the evaluation has no figure `{metric.name}`; {hint}", fix
    for guardrail in contract.guardrails:
        figures = guarded(task, level, root)
        for message, meant in misread(guardrail, figures):
            command = fixes.figure(task, guardrail, figures)
            if meant:
                command = fixes.guardrail(contract, guardrail, meant)
            yield message, command or ""
    if metric.name == "pass_rate" and level == "sealed":
        experiment = protected_files.experiment_of(task, root)
        if experiment and not any(scenario.passes for scenario in (experiment.eval.scenarios or {}).values()):
            message = "`pass_rate` needs scenarios with a `pass` in the config (eval.scenarios)"
            yield message, fixes.set_metric(contract, "success_rate")


def guarded(task: Task, level: Level, root: Path) -> tuple[str, ...]:
    """Return the figures that a guardrail may use; empty if only a measurement can tell."""
    if level != "sealed":
        return metric_names(task, level)
    terms = protected_files.reward_terms(task, root)
    if terms is None:
        return ()
    return (*metric_names(task, level), *terms)


def misread(guardrail: ContractGuardrail, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the problems of a guardrail, each with the expression that was probably meant, or an empty text."""
    text = guardrail.expression
    try:
        expression = Expression(text, known=known or None)
    except ValueError as error:
        yield f"guardrail `{text}` {error}", renamed(text, known) or ""
        return
    if expression.is_predicate:
        message = f"guardrail `{text}` is true or false; write the number that must not fall below the baseline's"
        yield message, falling(text) or ""
    if guardrail.mode == "safety" and guardrail.margin == 0:
        yield f"guardrail `{text}`: safety within a margin of 0 can never be shown; set `margin`", ""


def _budget(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    budget = contract.budget
    assert budget is not None
    if budget.until is not None and deadline(budget.until, since=0.0) is None:
        message = f"until `{budget.until}` is not a time; write 07:00 or 2030-01-31T07:00"
        yield message, fixes.amend(contract, "budget.until", "07:00")
    if budget.per_seed_minutes > budget.hours * 60:
        hours = math.ceil(budget.per_seed_minutes * budget.seeds / 60)
        message = f"one seed may take {budget.per_seed_minutes:g} min, but all seeds together only {budget.hours:g} h"
        yield message, fixes.amend(contract, "budget.hours", hours)
    if contract.metric and budget.seeds < 2 * contract.metric.seeds and contract.metric.seeds >= MINIMUM_SEEDS:
        needed = 2 * contract.metric.seeds
        message = f"{budget.seeds} seeds are too few for a confirmation ({needed}: {contract.metric.seeds} per side)"
        yield message, fixes.amend(contract, "budget.seeds", needed)


def overdue(contract: Contract, *, now: float) -> Iterator[OpenPoint]:
    """Yield a problem if no job can start because the contract's time has passed."""
    if contract.budget is None or contract.budget.until is None:
        return
    end = deadline(contract.budget.until, since=now)
    if end is not None and end <= now:
        message = f"until `{contract.budget.until}` has passed: no job could start"
        yield OpenPoint("budget", message, fixes.amend(contract, "budget.until", "07:00"))


def _hardware(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    hardware = contract.hardware
    assert hardware is not None
    for name in hardware.reads:
        problem = _folder_problem(Path(name), root.resolve())
        if problem:
            yield f"reads `{name}` {problem}", fixes.remove_entry(contract, "hardware.reads", hardware.reads, name)


def _folder_problem(path: Path, project: Path) -> str:
    """Say why jobs may not read a folder; empty if they may."""
    if not path.is_absolute():
        return "is not absolute"
    if not path.exists():
        return "does not exist"
    folder = path.resolve()
    if project.is_relative_to(folder) or folder.is_relative_to(project / ".rlx"):
        return "would show jobs the ledger and other candidates"
    keys = (Path.home() / ".ssh").resolve()
    if folder.is_relative_to(keys) or keys.is_relative_to(folder):
        return "would show jobs the keys that sign approvals"
    return ""


def _baseline(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    baseline = contract.baseline
    assert baseline is not None
    if shutil.which("git") is None:
        yield "git was not found: install git", ""
        return
    if external_programs.git("rev-parse", "--git-dir", folder=root) is None:
        yield "the project is not a git repository", shell(f"git init && {fixes.COMMIT}")
        return
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", baseline.commit):
        yield f"commit `{baseline.commit}` is not a full hash", _pin_head(contract, root)
        return
    if external_programs.git("cat-file", "-e", f"{baseline.commit}^{{commit}}", folder=root) is None:
        yield f"the repository has no commit {baseline.commit[:12]}", _pin_head(contract, root)
        return
    command = fixes.baseline_command(task)
    if baseline.command != command:
        message = f"the task trains with `{command}`"
        if baseline.command:
            message += f", not with `{baseline.command}`"
        yield message, fixes.amend(contract, "baseline.command", command)
    if task.adapter.kind == "rlx":
        yield from _config_problems(contract, baseline, task, root)
    differing = baseline_commit.differing_files(task, baseline.commit, root)
    if differing:
        names = listed([f"`{name}`" for name in differing], most=3)
        pin: Command = shell(f"{fixes.COMMIT} && {fixes.pins_head(contract.study)}")
        if not baseline_commit.differing_files(task, "HEAD", root):
            pin = _pin_head(contract, root)
        yield (
            f"the task was read from another version of {names} than commit {baseline.commit[:12]} has; "
            "candidates would be compared with the old version",
            pin,
        )


def _pin_head(contract: Contract, root: Path) -> Command:
    """Return the command that pins the commit that is checked out, or makes the first commit."""
    head = (external_programs.git("rev-parse", "HEAD", folder=root) or "").strip()
    if not head:
        return fixes.COMMIT
    return fixes.amend(contract, "baseline.commit", head)


def _config_problems(contract: Contract, baseline: Baseline, task: Task, root: Path) -> Iterator[MessageAndFix]:
    """Yield a problem if the pinned commit lacks the config, or the contract has another hash of it."""
    config = task.adapter.config
    prefix = (external_programs.git("rev-parse", "--show-prefix", folder=root) or "").strip()
    text = external_programs.git("show", f"{baseline.commit}:{prefix}{config}", folder=root)
    if text is None:
        yield f"commit {baseline.commit[:12]} has no `{config}`", fixes.COMMIT
        return
    sha256 = files.sha256(text.encode())
    if baseline.config_sha256 != sha256:
        message = f"config_sha256 does not match `{config}` in commit {baseline.commit[:12]}"
        yield message, fixes.amend(contract, "baseline.config_sha256", sha256)


def _evaluation(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    evaluation = contract.evaluation
    assert evaluation is not None
    level = evaluation.level
    adapter = task.adapter
    lower = fixes.amend(contract, "evaluation.level", fixes.strongest_level(task))
    if level == "sealed" and adapter.kind == "command" and not (adapter.env and adapter.policy):
        yield "level sealed needs adapter.env and adapter.policy, so that rlx can run the environment itself", lower
    if level == "pinned" and adapter.kind == "rlx":
        yield "level pinned is for repositories with an eval command; rlx evaluates its configs sealed", lower
    elif level == "pinned" and not (adapter.eval and adapter.result):
        yield "level pinned needs adapter.eval and adapter.result", lower
    if level != "sealed" and not evaluation.deterministic:
        message = f"level {level}: the eval command decides whether a policy explores, not this contract"
        yield message, fixes.amend(contract, "evaluation.deterministic", True)


def _automation(contract: Contract, task: Task, root: Path) -> Iterator[MessageAndFix]:
    automation = contract.automation
    assert automation is not None
    for rule in automation.stop:
        try:
            if Expression(rule, known=STOP_NAMES).is_predicate:
                continue
            message = f"is not true or false; write for example `{rule} >= 5`"
            right = f"{rule} >= 5"
        except ValueError as error:
            message = str(error)
            right = renamed(rule, STOP_NAMES) or USUAL_STOP
        fix = fixes.replace_entry(contract, "automation.stop", automation.stop, rule, right)
        yield f"stop rule `{rule}` {message}", fix
    if automation.unattended and not automation.stop:
        yield "unattended without a stop rule", fixes.amend(contract, "automation.stop", [USUAL_STOP])
