"""Create a study: write its task, and pre-fill and amend its contract."""

from __future__ import annotations

import math
import re
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from rlx import files
from rlx.config.load import group_hash, read
from rlx.config.yaml_lines import Document
from rlx.errors import Refused, UsageError
from rlx.launch.executors import executor_settings
from rlx.launch.git import worktree
from rlx.launch.resources import available_cores, visible_gpus
from rlx.loop.study.amend import confirm, read_settings
from rlx.loop.study.describe_task import find_task, ignore, write_task
from rlx.loop.study.open_points import stale_task_hint
from rlx.loop.study.study_status import overview
from rlx.runs import project
from rlx.runs.run import Run, names
from rlx.runs.summary import costs
from rlx.study.approval import approval
from rlx.study.candidate.config_changes import apply_changes
from rlx.study.contract import contract as contracts
from rlx.study.contract import contract_checks, fixes
from rlx.study.contract import document as documents
from rlx.study.contract.contract import Contract, ContractGuardrail, Scope
from rlx.study.contract.prefill import PrefillInputs, Question, prefill
from rlx.study.ledger.state import lawful
from rlx.study.study_folder import Study, list_studies, set_active, task_names, valid_name
from rlx.study.task import infer_task, protected_files
from rlx.study.task import task as tasks
from rlx.study.task.task import Surface, Task


def pinned_commit(root: Path, *, is_snapshot: bool) -> str:
    """Return the commit to pin: HEAD, or with a snapshot, a commit of the files as they are."""
    head = worktree.head_commit(root)
    dirty = worktree.changed_paths(root)
    if dirty and not is_snapshot:
        more = f" and {len(dirty) - 1} more differ" if len(dirty) > 1 else " differs"
        raise Refused(
            f"{dirty[0]}{more} from the last commit", hint="commit first, or pin the files as they are with --snapshot"
        )
    return worktree.snapshot(root) if dirty else head


def new_study(
    root: Path,
    name: str,
    wishes: Wishes,
    *,
    task: str | None = None,
    config: Path | None = None,
    is_snapshot: bool = False,
    ask: Ask | None = None,
) -> dict[str, Any]:
    """Write a study's contract from what rlx infers, the options and the answers; complete points are confirmed.

    If the task does not exist yet, it is made from the config. If anything is refused, neither is written.
    """
    valid_name(name, kind="study")
    _sane(wishes)
    described = _described(root, task, config)
    study = Study(root, described.name, name)
    _refuse_known(study)
    for says in tasks.stale_facts(described, root):
        raise Refused(f"task `{described.name}` is stale: {says}", hint=stale_task_hint(root, described.name))
    commit = pinned_commit(root, is_snapshot=is_snapshot)
    settings = read_settings(wishes.settings)
    seconds = _seed_seconds(root, described)
    draft = prefill(described, _known(wishes, root=root, commit=commit, seed_seconds=seconds), study=name, root=root)
    _refuse_misread(draft.contract, described, root)
    questions = [one for one in draft.questions if one.point not in {key.partition(".")[0] for key in settings}]
    asked_for = {one.point for one in questions}
    _with(draft.contract, {key: value for key, value in settings.items() if key.partition(".")[0] not in asked_for})
    if ask is not None:
        described, wishes = asked(questions, ask, described, wishes, root)
    known = _known(wishes, root=root, commit=commit, seed_seconds=seconds)
    contract = _with(prefill(described, known, study=name, root=root).contract, settings)
    contract = confirm(contract, described, root)
    if not study.task_path.is_file() or described != study.task():
        write_task(root, described)
    found(study, contract)
    return overview(study)


def _described(root: Path, name: str | None, config: Path | None) -> Task:
    """Return the task of a study; with a config, the task made from it, whether or not it is written yet."""
    if config is None:
        return find_task(root, name)
    name = name or config.stem.replace(".", "_").lower()
    made = infer_task.task_from_config(config, root=root, name=valid_name(name, kind="task"))
    if name not in task_names(root):
        return made
    known = find_task(root, name)
    if known.adapter.config != made.adapter.config:
        says = f"task `{name}` exists already, for {known.adapter.config or 'commands of its own'}"
        raise Refused(says, hint=f"use another name: --task NAME --config {made.adapter.config}")
    return known


def _sane(wishes: Wishes) -> None:
    """Refuse impossible amounts."""
    if wishes.seeds is not None and wishes.seeds < 1:
        raise UsageError(f"--seeds {wishes.seeds}: a study trains at least one seed", hint="for example --seeds 60")
    if wishes.hours is not None and not 0 < wishes.hours < math.inf:
        raise UsageError(f"--hours {wishes.hours:g}: not a number of hours above 0", hint="for example --hours 4")


def _known(wishes: Wishes, *, root: Path, commit: str, seed_seconds: float | None) -> PrefillInputs:
    metric, _, direction = (wishes.metric or "").partition(":")
    words = {"max": "maximize", "min": "minimize", "": None}
    if direction not in words:
        raise UsageError(f"--metric {wishes.metric}: `{direction}` is not a direction", hint="NAME:max or NAME:min")
    for surface in wishes.surfaces:
        if surface not in get_args(Surface):
            raise UsageError(f"`{surface}` is not a surface", hint=f"there are {', '.join(get_args(Surface))}")
    return PrefillInputs(
        commit=commit, cores=available_cores(), gpus=float(len(visible_gpus())), seed_seconds=seed_seconds,
        metric=metric or None, direction=words[direction], guardrails=tuple(map(_guardrail, wishes.guards)),
        scope=Scope(surfaces=wishes.surfaces, paths=wishes.paths, keys=wishes.keys),
        hours=wishes.hours, seeds=wishes.seeds, until=wishes.until, unattended=wishes.is_unattended,
        has_signers=approval.has_signers(root), executor=executor_settings.chosen_name(root),
    )  # fmt: skip


def _guardrail(text: str) -> ContractGuardrail:
    expression, sign, margin = text.rpartition(":")
    if not sign:
        return ContractGuardrail(expression=text)
    try:
        return ContractGuardrail(expression=expression, margin=float(margin))
    except ValueError:
        raise UsageError(f"--guard {text}: `{margin}` is not a margin", hint="--guard success_rate:0.02") from None


def _seed_seconds(root: Path, task: Task) -> float | None:
    """Return how long a seed took in the newest run of the same config; None if there was none."""
    config = task.adapter.config
    if config is None:
        return None
    wanted = group_hash(read(root / config))
    for name in reversed(names(root)):
        run = Run(root / "runs" / name)
        if run.metadata.get("group_hash") == wanted:
            known = [cost.seconds for cost in costs(run).values() if cost.seconds]
            if known:
                return max(known)
    return None


def _refuse_misread(contract: Contract, task: Task, root: Path) -> None:
    """Refuse guardrails that the evaluation cannot compute, before anything is written."""
    assert contract.evaluation is not None
    known = contract_checks.guarded(task, contract.evaluation.level, root)
    for guardrail in contract.guardrails:
        for says, meant in contract_checks.misread(guardrail, known):
            margin = f":{guardrail.margin:g}" if guardrail.margin else ""
            other: object = fixes.figure(task, guardrail, known) or "for example --guard success_rate:0.02"
            if meant:
                other = f"--guard {shlex.quote(meant + margin)}"
            raise UsageError(says, hint=str(other))


def _with(contract: Contract, settings: Mapping[str, Any]) -> Contract:
    data = contract.model_dump(mode="json", by_alias=True, exclude_none=True)
    return documents.build(Document("contract", apply_changes(data, settings)), Contract)


def _refuse_known(study: Study) -> None:
    if study.contract_path.exists():
        raise Refused(f"study `{study.name}` exists already", hint=f"rlx study show {study.name}")
    if any(one.name == study.name for one in list_studies(study.root)):
        raise Refused(f"another task has a study `{study.name}`", hint="take another name")


def found(study: Study, contract: Contract) -> None:
    """Write a new study's contract and the first row of its ledger, both or neither, and make it active."""
    _refuse_known(study)
    study.folder.parent.mkdir(parents=True, exist_ok=True)
    ignore(study.root)
    project.mark_own(study.root)
    with tempfile.TemporaryDirectory(prefix=".founding-", dir=study.folder.parent.parent) as place:
        new = Path(place) / study.name
        (new / "candidates").mkdir(parents=True)
        project.mark_made_here(new)
        files.write_atomic(new / "contract.yaml", contracts.dump(contract).encode())
        lawful(new / "ledger.jsonl").append("created", key="created", contract=contracts.sha256(new / "contract.yaml"))
        new.rename(study.folder)
    files.sync_folder(study.folder.parent)
    set_active(study)


@dataclass(frozen=True)
class Wishes:
    """The options that a person gave for a new study; rlx infers the rest, or asks."""

    metric: str | None = None
    guards: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    seeds: int | None = None
    hours: float | None = None
    until: str | None = None
    is_unattended: bool = False
    settings: tuple[str, ...] = ()


Ask = Callable[[str], str]
"""Asks a person a question and returns the answer, which may be empty."""


def asked(questions: Sequence[Question], ask: Ask, task: Task, wishes: Wishes, root: Path) -> tuple[Task, Wishes]:
    """Ask each question until its answer is valid; a question without an answer stays open."""
    for question in questions:
        choices = f" ({', '.join(question.choices)})" if question.choices else ""
        text = f"{question.text}{choices}"
        while answer := ask(text):
            try:
                task, wishes = _answered(question, answer, task, wishes, root)
            except UsageError as error:
                text = f"{error.message}; {error.hint}"
            else:
                break
    return task, wishes


def _answered(question: Question, answer: str, task: Task, wishes: Wishes, root: Path) -> tuple[Task, Wishes]:
    """Return task and options with an answer applied."""
    if question.point == "task":
        return _with_mission(task, answer), wishes
    if question.point == "scope":
        return task, _opened(re.split(r"[,\s]+", answer), task, wishes, root)
    if question.point == "budget":
        return task, replace(wishes, hours=_hours(answer))
    name = answer.partition(":")[0]
    if question.choices and name not in question.choices:
        raise UsageError(f"unknown figure `{name}`", hint=f"one of {', '.join(question.choices)}")
    return task, replace(wishes, metric=answer)


def _hours(answer: str) -> float:
    try:
        hours = float(answer)
    except ValueError:
        hours = math.nan
    if not 0 < hours < math.inf:
        raise UsageError(f"`{answer}` is not a number of hours", hint="for example 4, or 0.5")
    return hours


def _opened(words: Sequence[str], task: Task, wishes: Wishes, root: Path) -> Wishes:
    """Return the options with the named surfaces, paths and config keys opened."""
    known = protected_files.known_keys(task, root)
    for word in filter(None, words):
        problem = tasks.pattern_problem(word, root)
        is_key = protected_files.unknown_key(word, known) is None if known else "/" not in word and "::" not in word
        if word in task.surfaces and word != "evaluator":
            wishes = replace(wishes, surfaces=(*wishes.surfaces, word))
        elif problem is None:
            wishes = replace(wishes, paths=(*wishes.paths, word))
        elif is_key and _takes_keys(task):
            wishes = replace(wishes, keys=(*wishes.keys, word))
        else:
            near = tasks.similar_pattern(word, root) or protected_files.unknown_key(word, known)
            hint = f"did you mean `{near}`?" if near else "a path, file.py::Class, a config key or a surface"
            raise UsageError(f"`{word}` {problem}, and is not a key", hint=hint)
    return wishes


def _takes_keys(task: Task) -> bool:
    return task.adapter.kind == "rlx" or any("{overrides}" in word for word in task.adapter.train)


def _with_mission(task: Task, mission: str) -> Task:
    return task.model_copy(update={"card": task.card.model_copy(update={"mission": mission})}) if mission else task
