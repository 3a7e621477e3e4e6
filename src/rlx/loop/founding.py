"""How a study comes into being: a task is written, a contract pre-filled and amended."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from rlx import files
from rlx.config import yaml_lines
from rlx.config.load import group_hash, read
from rlx.config.yaml_lines import Document
from rlx.errors import ConfigError, NotFound, Refused, UsageError
from rlx.launch import worktree
from rlx.launch.resources import available_cores, visible_gpus
from rlx.loop import handover, proceed, stale
from rlx.loop.asking import Ask, asked
from rlx.loop.asking import Wishes as Wishes
from rlx.loop.measures import refuse_others
from rlx.runs.project import runs_folder
from rlx.runs.run import Run, names
from rlx.runs.summary import costs
from rlx.study import approval, derive, points, remedy
from rlx.study import contract as contracts
from rlx.study import document as documents
from rlx.study import task as tasks
from rlx.study.afford import Cost, affords
from rlx.study.changes import laid
from rlx.study.contract import POINTS, Contract, Guardrail
from rlx.study.hook_view import FILE as HOOK_FILE
from rlx.study.hook_view import hook_view
from rlx.study.prefill import Known, prefill
from rlx.study.screen import Row, screen
from rlx.study.state import State, lawful
from rlx.study.study import Study, studies, task_folder, task_names, use, valid_name
from rlx.study.task import Surface, Task


def new_task(
    root: Path, name: str, *, config: Path | None = None, commands: derive.Commands | None = None,
    mission: str = "", replaces: bool = False,
) -> Task:  # fmt: skip
    """Write a task, derived from an rlx config or drafted from commands; one that is there only where it is replaced.

    Studies of a task that is replaced have its definition to look at again.
    """
    valid_name(name, kind="task")
    if name in task_names(root):
        _refuse_replacing(root, name, replaces=replaces)
    if config is not None:
        task = derive.task_of(config, root=root, name=name, mission=mission)
    else:
        assert commands is not None
        task = derive.task_from_commands(commands, root=root, name=name)
    _write_task(root, task)
    return task


def _refuse_replacing(root: Path, name: str, *, replaces: bool) -> None:
    if not replaces:
        hint = f"rlx task refresh {name} reads its files again; the same command with --replace writes it anew"
        raise Refused(f"task `{name}` is there already", hint=hint)
    _refuse_approved(root, name)


def _write_task(root: Path, task: Task) -> None:
    path = task_folder(root, task.name) / tasks.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    _ignore(root)
    files.write_atomic(path, tasks.dump(task).encode())


def _refuse_approved(root: Path, task: str) -> None:
    """Refuse to change a task that a study was approved on."""
    study = stale.approved(root, task)
    if study is not None:
        raise Refused(f"study `{study.name}` was approved on task `{task}` as it was", hint=stale.put_back(study))


def refresh_task(root: Path, name: str | None, *, mission: str | None = None, changes: Sequence[str] = ()) -> Task:
    """Read a task's facts again from the files as they are, unless a study of it was approved on the old ones.

    With a mission, that is what the task is about from now on; changes (`adapter.metrics.step=iteration`) are its keys.
    Studies whose point this settles have it confirmed.
    """
    task = _changed(root, find_task(root, name), changes)
    _refuse_approved(root, task.name)
    if task.adapter.config is not None:
        facts = derive.task_of(root / task.adapter.config, root=root, name=task.name).facts
    else:
        there = [one for one in task.facts if (root / one.file).is_file()]
        facts = tuple(derive.fact(one.what, one.file, root=root, line=one.line) for one in there)
        task = derive.told_anew(task, root)
    card = task.card if mission is None else task.card.model_copy(update={"mission": mission})
    task = task.model_copy(update={"facts": facts, "card": card})
    looked_at = [(one, _refreshed(one, task)) for one in studies(root) if one.task_name == task.name]
    _write_task(root, task)
    for study, contract in looked_at:
        files.write_atomic(study.contract_path, contracts.dump(contract).encode())
        noticed(study)
    return task


def _changed(root: Path, task: Task, changes: Sequence[str]) -> Task:
    """Return a task with other values of some keys."""
    if not changes:
        return task
    document = documents.load(task_folder(root, task.name) / tasks.FILE, sort=tasks.SORT)
    wanted = {key: value for text in changes for key, value in [_task_setting(text)]}
    changed = documents.build(Document(document.source, laid(document.data, wanted), document.places), Task)
    if changed.name != task.name:
        raise Refused("a task keeps its name", hint="rlx task new NAME")
    return changed


def _task_setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; a template such as `{out}/*/model_*.pt`, which is no YAML, is text as it is typed."""
    try:
        return setting(text)
    except ConfigError:
        key, _, value = text.partition("=")
        if not tasks.placeholders(value):
            raise
        return key.strip(), value


def _refreshed(study: Study, task: Task) -> Contract:
    """Return a study's contract for its task as it is now."""
    contract = study.contract().model_copy(update={"task_sha256": tasks.sha256(task)})
    return _looked_at(study, contract, {"task"}, task)


_NO_TASK = "rlx task new NAME --config FILE, or --train COMMAND for a repository that trains with its own"


def find_task(root: Path, name: str | None) -> Task:
    """Return the task that is named, else the only one."""
    known = task_names(root)
    if name is None and len(known) == 1:
        name = known[0]
    if name is None:
        hint = f"name one: {', '.join(known)}" if known else _NO_TASK
        raise UsageError("which task?", hint=hint) if known else NotFound("there is no task here", hint=hint)
    path = task_folder(root, name) / "task.yaml"
    if not path.is_file():
        hint = f"there are {', '.join(known)}" if known else _NO_TASK
        raise NotFound(f"no task `{name}`", hint=hint)
    return tasks.read(path)


def describe(root: Path, name: str | None) -> dict[str, Any]:
    """Return a task for people: what it is, and what of it is missing or stale."""
    task = find_task(root, name)
    adapter = task.adapter
    told = {
        "config": adapter.config,
        "train": shlex.join((*adapter.prefix, *adapter.train)),
        "eval": shlex.join((*adapter.prefix, *adapter.eval)) if adapter.eval else "",
        "metrics": f"{adapter.metrics.reader} {adapter.metrics.path}" if adapter.metrics else "",
        "checkpoint": adapter.checkpoint,
        "launcher": adapter.launcher.executor,
    }
    problems = tasks.problems(task, root)
    has_study = any(one.task_name == task.name for one in studies(root))
    return {
        "task": task.name,
        "kind": adapter.kind,
        "mission": task.card.mission,
        "adapter": {key: value for key, value in told.items() if value},
        "surfaces": {name: [*place.paths, *place.keys] for name, place in task.surfaces.items()},
        "facts": len(task.facts),
        "problems": list(problems),
        "file": (task_folder(root, task.name) / "task.yaml").relative_to(root).as_posix(),
        "command": _after_task(root, task, has_study=has_study),
    }


def _after_task(root: Path, task: Task, *, has_study: bool) -> str:
    """Return what follows a task: its study, and before that, what its facts are read from once more."""
    if has_study:
        return "rlx next"
    return f"rlx task refresh {task.name}" if any(tasks.stale(task, root)) else f"rlx study new NAME --task {task.name}"


def pinned_commit(root: Path, *, is_snapshot: bool) -> str:
    """Return the commit to pin: the one the project stands at, or with a snapshot one of the files as they lie."""
    head = worktree.head(root)
    dirty = worktree.dirty(root)
    if dirty and not is_snapshot:
        more = f" and {len(dirty) - 1} more differ" if len(dirty) > 1 else " differs"
        raise Refused(f"{dirty[0]}{more} from the last commit", hint="commit first, or pin as it lies with --snapshot")
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
    """Write a study's contract: inferred, as wished, answered; every point that is complete counts as confirmed.

    A task that is not there yet is made of the config; where anything is refused, neither is written.
    """
    valid_name(name, kind="study")
    _sane(wishes)
    described = _described(root, task, config)
    study = Study(root, described.name, name)
    _refuse_known(study)
    for says in tasks.stale(described, root):
        raise Refused(f"task `{described.name}` is stale: {says}", hint=stale.helps(root, described.name))
    commit = pinned_commit(root, is_snapshot=is_snapshot)
    settings = {key: value for text in wishes.settings for key, value in [setting(text)]}
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
    contract = _confirmed(contract, described, root)
    if not study.task_path.is_file() or described != study.task():
        _write_task(root, described)
    found(study, contract)
    return overview(study)


def _described(root: Path, name: str | None, config: Path | None) -> Task:
    """Return the task that a study is about; with a config the one that is made of it, written or not yet."""
    if config is None:
        return find_task(root, name)
    name = name or config.stem.replace(".", "_").lower()
    made = derive.task_of(config, root=root, name=valid_name(name, kind="task"))
    if name not in task_names(root):
        return made
    known = find_task(root, name)
    if known.adapter.config != made.adapter.config:
        says = f"task `{name}` is there already, of {known.adapter.config or 'commands of its own'}"
        raise Refused(says, hint=f"call this one otherwise: --task NAME --config {made.adapter.config}")
    return known


def _sane(wishes: Wishes) -> None:
    """Refuse amounts that no study can have."""
    if wishes.seeds is not None and wishes.seeds < 1:
        raise UsageError(f"--seeds {wishes.seeds}: a study trains at least one seed", hint="for example --seeds 60")
    if wishes.hours is not None and not 0 < wishes.hours < math.inf:
        raise UsageError(f"--hours {wishes.hours:g}: no number of hours above 0", hint="for example --hours 4")


def _known(wishes: Wishes, *, root: Path, commit: str, seed_seconds: float | None) -> Known:
    metric, _, direction = (wishes.metric or "").partition(":")
    words = {"max": "maximize", "min": "minimize", "": None}
    if direction not in words:
        raise UsageError(f"--metric {wishes.metric}: `{direction}` is no direction", hint="NAME:max or NAME:min")
    for surface in wishes.surfaces:
        if surface not in get_args(Surface):
            raise UsageError(f"`{surface}` is no surface", hint=f"there are {', '.join(get_args(Surface))}")
    return Known(
        commit=commit, cores=available_cores(), gpus=float(len(visible_gpus())), seed_seconds=seed_seconds,
        metric=metric or None, direction=words[direction], guardrails=tuple(map(_guardrail, wishes.guards)),
        surfaces=wishes.surfaces, paths=wishes.paths, keys=wishes.keys,  # type: ignore[arg-type]
        hours=wishes.hours, seeds=wishes.seeds, until=wishes.until, unattended=wishes.is_unattended,
        has_signers=approval.has_signers(root),
    )  # fmt: skip


def _guardrail(text: str) -> Guardrail:
    expression, sign, margin = text.rpartition(":")
    if not sign:
        return Guardrail(expression=text)
    try:
        return Guardrail(expression=expression, margin=float(margin))
    except ValueError:
        raise UsageError(f"--guard {text}: `{margin}` is no margin", hint="--guard success_rate:0.02") from None


def _seed_seconds(root: Path, task: Task) -> float | None:
    """Return what a seed of this task took in the project's newest run of the same config; None where none ran."""
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
    """Refuse guardrails that the evaluation cannot work out, before anything is written."""
    assert contract.evaluation is not None
    known = points.guarded(task, contract.evaluation.level, root)
    for guardrail in contract.guardrails:
        for says, meant in points.misread(guardrail, known):
            margin = f":{guardrail.margin:g}" if guardrail.margin else ""
            other = remedy.figure(task, guardrail, known) or "for example --guard success_rate:0.02"
            hint = f"--guard {shlex.quote(meant + margin)}" if meant else other
            raise UsageError(says, hint=hint)


def _with(contract: Contract, settings: Mapping[str, Any]) -> Contract:
    data = contract.model_dump(mode="json", by_alias=True, exclude_none=True)
    return documents.build(Document("contract", laid(data, settings)), Contract)


def _confirmed(contract: Contract, task: Task, root: Path) -> Contract:
    """Confirm every point that is complete: approving the contract is what says that somebody has looked at them."""
    whole = contract.model_copy(update={"confirmed": tuple(POINTS)})
    open_points = {one.point for one in points.problems(whole, task, root=root)}
    return contract.model_copy(update={"confirmed": tuple(point for point in POINTS if point not in open_points)})


def _refuse_known(study: Study) -> None:
    if study.contract_path.exists():
        raise Refused(f"study `{study.name}` is there already", hint=f"rlx study show {study.name}")
    if any(one.name == study.name for one in studies(study.root)):
        raise Refused(f"another task has a study `{study.name}`", hint="take another name")


def found(study: Study, contract: Contract) -> None:
    """Write a new study's contract and the first row of its ledger, whole or not at all, and make it the one in use."""
    _refuse_known(study)
    study.folder.parent.mkdir(parents=True, exist_ok=True)
    _ignore(study.root)
    with tempfile.TemporaryDirectory(prefix=".founding-", dir=study.folder.parent.parent) as place:
        new = Path(place) / study.name
        (new / "candidates").mkdir(parents=True)
        files.write_atomic(new / "contract.yaml", contracts.dump(contract).encode())
        lawful(new / "ledger.jsonl").append("created", key="created", contract=contracts.sha256(new / "contract.yaml"))
        new.rename(study.folder)
    files.sync_folder(study.folder.parent)
    use(study)


def _ignore(root: Path) -> None:
    """Keep what rlx writes out of the project's own git; a `runs` that is there already may be somebody else's."""
    for folder in (root / ".rlx", runs_folder(root)):
        is_ours = folder.name == ".rlx" or not folder.exists()
        if is_ours and not (folder / ".gitignore").exists():
            folder.mkdir(exist_ok=True)
            files.write_atomic(folder / ".gitignore", b"*\n")


def amend(study: Study, changes: Sequence[str]) -> dict[str, Any]:
    """Change keys of the contract (`budget.seeds=80`), whole or not at all; an approval is void from then on."""
    with files.locked(study.contract_path):  # of two at once none is lost
        _amend(study, changes)
    return noticed(study)


def _amend(study: Study, changes: Sequence[str]) -> None:
    document = documents.load(study.contract_path, sort=contracts.SORT)
    wanted = {key: value for text in changes for key, value in [setting(text)]}
    contract = documents.build(Document(document.source, laid(document.data, wanted), document.places), Contract)
    if contract.study != study.name or contract.task != study.task_name:
        raise Refused("a study keeps its name and its task", hint="rlx study new NAME")
    refuse_others(study, contract, study.task())
    if "confirmed" not in wanted:
        contract = _looked_at(study, contract, {key.partition(".")[0] for key in wanted}, study.task())
    files.write_atomic(study.contract_path, contracts.dump(contract).encode())


def _looked_at(study: Study, contract: Contract, changed: Collection[str], task: Task) -> Contract:
    """Count points as confirmed whose keys were changed, or which lack nothing since: somebody has looked at them."""
    lacked = {one.point for one in points.problems(study.contract(), task, root=study.root)
              if one.says != points.UNCONFIRMED}  # fmt: skip
    complete = _confirmed(contract, task, study.root).confirmed
    seen = {point for point in complete if point in lacked or point in {_POINT_OF.get(key, key) for key in changed}}
    confirmed = tuple(point for point in POINTS if point in contract.confirmed or point in seen)
    return contract.model_copy(update={"confirmed": confirmed})


_POINT_OF = {"guardrails": "metric", "task_sha256": "task"}
"""The points of the contract's sections that are not called like them."""


def setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; the value is YAML."""
    key, sign, value = text.partition("=")
    if not sign or not all(key.strip().split(".")):
        raise UsageError(f"`{text}` is not KEY=VALUE", hint="for example -s budget.seeds=80")
    return key.strip(), yaml_lines.value(value, source=f"-s {key}")


def noticed(study: Study) -> dict[str, Any]:
    """Write into the ledger that the contract is another now, whoever edited it; return how it stands."""
    now = contracts.sha256(study.contract_path)
    if study.state().contract != now:
        study.ledger.append("amended", contract=now)
    tell_hooks(study)
    return overview(study)


def tell_hooks(study: Study) -> None:
    """Write what the hosts' hooks read."""
    files.write_json(study.folder / HOOK_FILE, hook_view(study.task(), study.contract(), study.state()))


def overview(study: Study) -> dict[str, Any]:
    """Return the contract's eight points as they stand, what the budget affords, and what is missing."""
    contract, task, state = study.contract(), study.task(), study.state()
    found = points.problems(contract, task, root=study.root)
    return {
        "study": study.name,
        "task": study.task_name,
        "status": proceed.status_of(study, state, contract),
        "missing": [str(one) for one in found],
        "notes": [str(one) for one in _notes(study, contract, task)],
        "points": [row.document() for row in _screen(study, contract, task, found)],
        "affords": list(_affords(study, contract)),
        "rehearsal": _rehearsal(study, state),
        "sha256": contracts.sha256(study.contract_path),
        "file": study.contract_path.relative_to(study.root).as_posix(),
        "command": proceed.next_step(study).command,
    }


def _rehearsal(study: Study, state: State) -> str:
    """Say how the last rehearsal went, and whether it was one of the contract as it is."""
    rehearse = f"rlx study rehearse {study.name}"
    if state.rehearsal is None:
        return f"none yet; to walk the whole path before anything is spent: {rehearse}"
    failed = [one for one in state.rehearsal["checks"] if not one["ok"]]
    went = f"failed: {failed[0]['name']}: {failed[0]['says']}" if failed else "the whole path works"
    is_of_this = state.rehearsal["contract"] == state.contract
    return went if is_of_this else f"none of this contract, which was amended since: {rehearse} (before it {went})"


def _screen(study: Study, contract: Contract, task: Task, problems: Sequence[points.Problem]) -> tuple[Row, ...]:
    level = contract.automation.approval if contract.automation else "asserted"
    return screen(
        contract, task, problems=problems, notes=_notes(study, contract, task), affords=_affords(study, contract),
        forgeable=approval.forgeable(level),
    )  # fmt: skip


def _notes(study: Study, contract: Contract, task: Task) -> tuple[points.Problem, ...]:
    """Return what should be known of a contract, also that its baseline lacks what was confirmed before on its task."""
    others = [one for one in studies(study.root) if one.task_name == study.task_name and one != study]
    lacking = [(one, handover.pending(one, one.state())) for one in others]
    says = [f"what `{one.name}` confirmed is not in it; to begin with that: {how}" for one, how in lacking if how]
    return (*points.notes(contract, task), *(points.Problem("baseline", one) for one in says))


def _affords(study: Study, contract: Contract) -> tuple[str, ...]:
    """Say what the budget pays for, with what a seed of the baseline has cost where that is known."""
    if contract.budget is None or contract.metric is None:
        return ()
    measured = [job.spent for job in study.state().jobs_of("baseline", "baseline") if job.spent and job.spent.seeds]
    seconds = sum(one.seconds for one in measured) / sum(one.seeds for one in measured) if measured else None
    cost = Cost.of(contract.budget, seconds)
    told = affords(contract.budget, contract.metric, cost=cost, baseline_sd=_baseline_sd(study))
    return told.lines(contract.metric.name)


def _baseline_sd(study: Study) -> float | None:
    """Return the spread of the pool, where it is measured."""
    values = [score for score in study.state().scores("baseline", "baseline").values() if score == score]
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
