"""The eight points of a contract: why one is not settled, what settles it, and what should be known of it."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from rlx import files, tools
from rlx.config.expression import Expression, falling, renamed
from rlx.errors import did_you_mean
from rlx.study import evaluator, patterns, pinned, reach, remedy
from rlx.study import task as tasks
from rlx.study.contract import (
    MINIMUM_SEEDS,
    REHEARSAL_SECONDS,
    SEALED_METRICS,
    STOP_NAMES,
    USUAL_STOP,
    allowed,
    figures_of,
)
from rlx.study.remedy import Open
from rlx.study.stops import deadline
from rlx.study.task import Task
from rlx.study.terms import POINTS, Baseline, Contract, Guardrail, Level, Point

Status = Literal["blocked", "ready", "approved"]
UNCONFIRMED = "not confirmed"
"""What a point lacks that is complete and not listed under `confirmed`."""
PICKLED = (".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".zip")
"""How files end that are usually read by `pickle`, which runs what they say."""
_UNPICKLED = (
    "where the eval command unpickles `{}` (pickle, joblib, torch.load without weights_only), a training can put code "
    "there that writes its own figures; have it read weights alone, or serve the policy (adapter.policy)"
)
_FOLDER = (
    "where `{}` is a folder, the eval command may read settings out of it that a candidate shaped; one whose settings "
    "there are others than the baseline's, beyond hyperparameters, is not claimed: name the weights' file alone"
)
TOLD = 3
"""How many files are named; the others are counted."""
OTHER_TASK = "the task says something else now than when this was settled; look at it again"


@dataclass(frozen=True)
class Problem:
    """Why one of the eight points is not settled; `hint` is what settles it, where that is known a command."""

    point: Point
    says: str
    hint: str = ""

    @property
    def is_command(self) -> bool:
        """Whether the hint can be typed as it stands, and settles this."""
        return self.hint.startswith(("rlx study amend", "rlx task refresh", "git "))

    def __str__(self) -> str:
        return f"{POINTS[self.point]}: {self.says}" + (f" ({self.hint})" if self.hint else "")


def status(found: Sequence[Problem], *, is_approved: bool) -> Status:
    """Derive where a contract stands: blocked while a point is not settled, then ready, then approved."""
    return "blocked" if found else "approved" if is_approved else "ready"


def problems(contract: Contract, task: Task, *, root: Path) -> tuple[Problem, ...]:
    """Return why points are not settled: missing, wrong, at odds with task and repository, or not confirmed."""
    checks: dict[Point, Callable[[Contract, Task, Path], Iterator[str | Open]]] = {
        "task": _task,
        "metric": _metric,
        "scope": reach.problems,
        "budget": _budget,
        "hardware": _hardware,
        "baseline": _baseline,
        "evaluation": _evaluation,
        "automation": _automation,
    }
    found: list[Problem] = []
    for point, check in checks.items():
        if point != "task" and getattr(contract, point) is None:
            found.append(Problem(point, f"`{point}` is missing", _put_in(point, contract, task)))
            continue
        found += [_problem(point, one) for one in check(contract, task, root)]
        if point not in contract.confirmed:
            found.append(Problem(point, UNCONFIRMED))
    return tuple(_with_word(found, contract))


def _problem(point: Point, found: str | Open) -> Problem:
    return Problem(point, found) if isinstance(found, str) else Problem(point, found.says, found.command)


def _put_in(point: Point, contract: Contract, task: Task) -> str:
    level = contract.evaluation.level if contract.evaluation else remedy.level(task)
    return remedy.missing(point, contract, task, figures_of(task, level))


def _with_word(found: Sequence[Problem], contract: Contract) -> Iterator[Problem]:
    """Say how points are confirmed: all at once that lack nothing else, and those that are."""
    lacking = {one.point for one in found if one.says != UNCONFIRMED}
    points = [point for point in POINTS if point in contract.confirmed or point not in lacking]
    for one in found:
        is_all = one.says == UNCONFIRMED and one.point not in lacking
        yield Problem(one.point, one.says, remedy.amend(contract, "confirmed", points)) if is_all else one


def notes(contract: Contract, task: Task) -> tuple[Problem, ...]:
    """Return what is allowed and should be known: what makes every verdict provisional, what is not enforced."""
    return tuple(Problem(point, says) for point, says in _notes(contract, task))


def _notes(contract: Contract, task: Task) -> Iterator[tuple[Point, str]]:
    metric, evaluation, automation = contract.metric, contract.evaluation, contract.automation
    if not task.adapter.takes_steps:
        says = "the training command has no {steps}: trials and the rehearsal train as long as a full training"
        yield "budget", f"{says}; a rehearsal ends after {REHEARSAL_SECONDS / 60:g} minutes"
    if metric and metric.seeds < MINIMUM_SEEDS:
        yield "metric", f"{metric.seeds} seeds a side: every verdict is provisional and never moves an incumbent"
    for says in _whole_steps(contract, task):
        yield "scope", says
    if evaluation and evaluation.level == "reported":
        yield "evaluation", "level reported: scores come from the training's own logs and never move an incumbent"
    if evaluation and evaluation.level == "pinned" and task.adapter.checkpoint.endswith(PICKLED):
        yield "evaluation", _UNPICKLED.format(task.adapter.checkpoint)
    if (
        evaluation
        and evaluation.level == "pinned"
        and task.adapter.checkpoint
        and not Path(task.adapter.checkpoint).suffix
    ):
        yield "evaluation", f"not ruled out: {_FOLDER.format(task.adapter.checkpoint)}"
    if metric and metric.source == "training" and task.adapter.kind == "rlx":
        yield "metric", "source training: rlx evaluates this task itself; `source: evaluator` is stronger"
    if automation and automation.network:
        yield "automation", "jobs may use the network: they could fetch or send anything"
    if automation and automation.sandbox == "if available":
        yield "automation", "where the kernel has no sandbox, jobs run without one; evidence says so"
    if automation and automation.unattended and automation.approval == "asserted":
        yield "automation", "unattended, and an asserted approval is enough: anyone on this account could make one"


def _whole_steps(contract: Contract, task: Task) -> Iterator[str]:
    """Yield what a scope opens with a reward that an environment makes inside its `step`."""
    for path in allowed(contract.scope, task).paths if contract.scope else ():
        if (patterns.split(path)[1] or "").rpartition(".")[2] == "step":
            yield (
                f"`{path}` is all of `step`: beside the reward, a candidate may change there how the world moves, what "
                "is observed and when an episode ends, in training; scores come from the pinned copy. To open the "
                "reward alone, move it into a function of its own, commit, and write the task anew (task new --replace)"
            )


def _task(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    if contract.task != task.name:
        yield f"the contract is for task `{contract.task}`, this one is `{task.name}`"
    elif contract.task_sha256 != tasks.sha256(task):
        yield Open(OTHER_TASK, remedy.amend(contract, "task_sha256", tasks.sha256(task)))
    if not task.card.mission.strip():
        yield Open("the card has no mission: what should get better", remedy.mission(contract, task))
    outdated = set(tasks.stale(task, root))
    for says in tasks.problems(task, root):
        yield Open(says, remedy.task_mended(task, is_stale=says in outdated))


def _metric(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    metric, evaluation = contract.metric, contract.evaluation
    assert metric is not None
    level = evaluation.level if evaluation else "reported"
    if metric.source == "training" and evaluation and level != "reported":
        says = f"source training gives no more than level reported, and the evaluation asks for {level}"
        yield Open(says, remedy.amend(contract, "metric.source", "evaluator"))
    if evaluation is not None:
        yield from _unknown_metric(contract, task, "reported" if metric.source == "training" else level)
        for guardrail in contract.guardrails:
            for says, meant in misread(guardrail, known := guarded(task, level, root)):
                other = remedy.figure(task, guardrail, known)
                yield Open(says, remedy.guardrail(contract, guardrail, meant) if meant else other)
    if metric.name == "pass_rate" and level == "sealed":
        yield from _without_scenarios(contract, task, root)
    if metric.alpha > 0.2:
        says = f"alpha {metric.alpha:g} would call chance an improvement: at most 0.2"
        yield Open(says, remedy.amend(contract, "metric.alpha", 0.05))


def _unknown_metric(contract: Contract, task: Task, level: Level) -> Iterator[str | Open]:
    known = SEALED_METRICS if level == "sealed" else figures_of(task, level)
    name = contract.metric.name if contract.metric else ""
    if known and name not in known:
        near = did_you_mean(name, known)
        meant = f"did you mean `{near}`?" if near else f"there are: {', '.join(known)}"
        yield Open(f"the evaluation has no figure `{name}`; {meant}", remedy.metric(contract, near or known[0]))


def _without_scenarios(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    experiment = evaluator.experiment_of(task, root)
    if experiment and not any(one.passes for one in (experiment.eval.scenarios or {}).values()):
        says = "`pass_rate` needs scenarios with a `pass` in the config (eval.scenarios)"
        yield Open(says, remedy.metric(contract, "success_rate"))


def guarded(task: Task, level: Level, root: Path) -> tuple[str, ...]:
    """Return the figures that a guardrail may be about; none where that is only known once something was measured."""
    terms = evaluator.reward_terms(task, root) if level == "sealed" else ()
    return () if terms is None else (*figures_of(task, level), *terms)


def misread(guardrail: Guardrail, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a guardrail, each with the expression that was meant, where that is known."""
    text = guardrail.expression
    try:
        expression = Expression(text, known=known or None)
    except ValueError as error:
        yield f"guardrail `{text}` {error}", renamed(text, known) or ""
        return
    if expression.is_predicate:
        says = f"guardrail `{text}` says yes or no; write the number that must not fall below the baseline's"
        yield says, falling(text) or ""
    if guardrail.mode == "safety" and guardrail.margin == 0:
        yield f"guardrail `{text}`: safety within a margin of 0 can never be shown; set `margin`", ""


def _budget(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    budget = contract.budget
    assert budget is not None
    if budget.until is not None and not _is_time(budget.until):
        says = f"until `{budget.until}` is no time; write 07:00 or 2030-01-31T07:00"
        yield Open(says, remedy.amend(contract, "budget.until", "07:00"))
    if budget.per_seed_minutes > budget.hours * 60:
        says = f"one seed may take {budget.per_seed_minutes:g} min, all together only {budget.hours:g} h"
        yield Open(says, remedy.amend(contract, "budget.hours", math.ceil(budget.per_seed_minutes * budget.seeds / 60)))
    if contract.metric and budget.seeds < 2 * contract.metric.seeds and contract.metric.seeds >= MINIMUM_SEEDS:
        need = 2 * contract.metric.seeds
        says = f"{budget.seeds} seeds are fewer than one confirmation takes ({need}: {contract.metric.seeds} a side)"
        yield Open(says, remedy.amend(contract, "budget.seeds", need))


def overdue(contract: Contract, *, now: float) -> Iterator[Problem]:
    """Yield that the time after which no job starts is over: nobody should approve that."""
    until = contract.budget.until if contract.budget else None
    end = deadline(until, since=now) if until else None
    if end is not None and end <= now:
        yield Problem(
            "budget", f"until `{until}` is over: no job could start", remedy.amend(contract, "budget.until", "07:00")
        )


def _is_time(text: str) -> bool:
    if re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", text):
        return True
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _hardware(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    hardware = contract.hardware
    assert hardware is not None
    project = root.resolve()
    for name in hardware.reads:
        problem = _unreadable(Path(name), project)
        if problem:
            out = remedy.without(contract, "hardware.reads", hardware.reads, name)
            yield Open(f"reads `{name}` {problem}", out)


def _unreadable(path: Path, project: Path) -> str:
    """Say why jobs may not be given a folder to read; empty where they may."""
    if not path.is_absolute():
        return "is not absolute"
    if not path.exists():
        return "is not there"
    if project.is_relative_to(path.resolve()) or path.resolve().is_relative_to(project / ".rlx"):
        return "would show jobs the ledger and other candidates"
    return "would show jobs the keys that approvals are signed with" if _holds(path, Path.home() / ".ssh") else ""


def _holds(folder: Path, other: Path) -> bool:
    one, two = folder.resolve(), other.resolve()
    return one.is_relative_to(two) or two.is_relative_to(one)


def _baseline(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    baseline = contract.baseline
    assert baseline is not None
    if shutil.which("git") is None:
        yield "no git was found: install git"
        return
    if tools.git("rev-parse", "--git-dir", folder=root) is None:
        yield Open("the project is no git repository", f"git init && {remedy.COMMIT}")
        return
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", baseline.commit):
        yield Open(f"commit `{baseline.commit}` is not a whole hash", _commit_of(contract, root))
        return
    if tools.git("cat-file", "-e", f"{baseline.commit}^{{commit}}", folder=root) is None:
        yield Open(f"the repository has no commit {baseline.commit[:12]}", _commit_of(contract, root))
        return
    command = remedy.baseline_command(task)
    if baseline.command != command:
        says = f"the task trains by `{command}`" + (f", not by `{baseline.command}`" if baseline.command else "")
        yield Open(says, remedy.amend(contract, "baseline.command", command))
    if task.adapter.kind == "rlx":
        yield from _pinned_config(contract, baseline, task, root)
    yield from _pinned_files(contract, baseline, task, root)


def _pinned_files(contract: Contract, baseline: Baseline, task: Task, root: Path) -> Iterator[Open]:
    """Yield that the task was read from other files than those that are trained, and what pins these."""
    other = pinned.others(task, baseline.commit, root)
    if other:
        says = f"commit {baseline.commit[:12]} has {_listed(other)} otherwise than the task was read from"
        is_committed = not pinned.others(task, "HEAD", root)
        anew = _commit_of(contract, root) if is_committed else f"{remedy.COMMIT} && {remedy.pins_head(contract.study)}"
        yield Open(f"{says}; candidates would be measured against the old", anew)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
    return ", ".join(f"`{name}`" for name in names[:TOLD]) + more


def _commit_of(contract: Contract, root: Path) -> str:
    head = (tools.git("rev-parse", "HEAD", folder=root) or "").strip()
    return remedy.amend(contract, "baseline.commit", head) if head else remedy.COMMIT


def _pinned_config(contract: Contract, baseline: Baseline, task: Task, root: Path) -> Iterator[str | Open]:
    top = (tools.git("rev-parse", "--show-prefix", folder=root) or "").strip()
    text = tools.git("show", f"{baseline.commit}:{top}{task.adapter.config}", folder=root)
    if text is None:
        yield Open(f"commit {baseline.commit[:12]} has no `{task.adapter.config}`", remedy.COMMIT)
    elif baseline.config_sha256 != files.sha256(text.encode()):
        says = f"config_sha256 is not that of `{task.adapter.config}` in commit {baseline.commit[:12]}"
        yield Open(says, remedy.amend(contract, "baseline.config_sha256", files.sha256(text.encode())))


def _evaluation(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    evaluation, adapter = contract.evaluation, task.adapter
    assert evaluation is not None
    if evaluation.level == "sealed" and adapter.kind == "command" and not (adapter.env and adapter.policy):
        says = "level sealed needs adapter.env and adapter.policy, so that rlx can play the environment itself"
        yield Open(says, remedy.amend(contract, "evaluation.level", remedy.level(task)))
    if evaluation.level == "pinned" and adapter.kind == "rlx":
        says = "level pinned is for repositories with an eval command; an rlx config is evaluated sealed"
        yield Open(says, remedy.amend(contract, "evaluation.level", "sealed"))
    elif evaluation.level == "pinned" and not (adapter.eval and adapter.result):
        says = "level pinned needs adapter.eval and adapter.result"
        yield Open(says, remedy.amend(contract, "evaluation.level", remedy.level(task)))
    if evaluation.level != "sealed" and not evaluation.deterministic:
        says = f"level {evaluation.level}: its own program decides whether a policy explores, not this contract"
        yield Open(says, remedy.amend(contract, "evaluation.deterministic", True))


def _automation(contract: Contract, task: Task, root: Path) -> Iterator[str | Open]:
    automation = contract.automation
    assert automation is not None
    for rule in automation.stop:
        try:
            is_predicate = Expression(rule, known=STOP_NAMES).is_predicate
        except ValueError as error:
            meant = renamed(rule, STOP_NAMES) or USUAL_STOP
            command = remedy.mended(contract, "automation.stop", automation.stop, rule, meant)
            yield Open(f"stop rule `{rule}` {error}", command)
            continue
        if not is_predicate:
            command = remedy.mended(contract, "automation.stop", automation.stop, rule, f"{rule} >= 5")
            yield Open(f"stop rule `{rule}` does not say yes or no; write for example `{rule} >= 5`", command)
    if automation.unattended and not automation.stop:
        yield Open("unattended without a stop rule", remedy.amend(contract, "automation.stop", [USUAL_STOP]))
