"""How a study comes into being: a task is written, a contract pre-filled and amended."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from rlx import files
from rlx.config.load import group_hash, read
from rlx.config.yaml_lines import Document
from rlx.errors import Refused, UsageError
from rlx.launch import worktree
from rlx.launch.resources import available_cores, visible_gpus
from rlx.loop import stale
from rlx.loop.amending import confirm, setting
from rlx.loop.asking import Ask, asked
from rlx.loop.asking import Wishes as Wishes
from rlx.loop.describing import find_task, ignore, write_task
from rlx.loop.overview import overview
from rlx.runs.run import Run, names
from rlx.runs.summary import costs
from rlx.study import approval, derive, points, remedy
from rlx.study import contract as contracts
from rlx.study import document as documents
from rlx.study import task as tasks
from rlx.study.changes import laid
from rlx.study.contract import Contract, Guardrail
from rlx.study.prefill import Known, prefill
from rlx.study.state import lawful
from rlx.study.study import Study, studies, task_names, use, valid_name
from rlx.study.task import Surface, Task


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
    contract = confirm(contract, described, root)
    if not study.task_path.is_file() or described != study.task():
        write_task(root, described)
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


def _refuse_known(study: Study) -> None:
    if study.contract_path.exists():
        raise Refused(f"study `{study.name}` is there already", hint=f"rlx study show {study.name}")
    if any(one.name == study.name for one in studies(study.root)):
        raise Refused(f"another task has a study `{study.name}`", hint="take another name")


def found(study: Study, contract: Contract) -> None:
    """Write a new study's contract and the first row of its ledger, whole or not at all, and make it the one in use."""
    _refuse_known(study)
    study.folder.parent.mkdir(parents=True, exist_ok=True)
    ignore(study.root)
    with tempfile.TemporaryDirectory(prefix=".founding-", dir=study.folder.parent.parent) as place:
        new = Path(place) / study.name
        (new / "candidates").mkdir(parents=True)
        files.write_atomic(new / "contract.yaml", contracts.dump(contract).encode())
        lawful(new / "ledger.jsonl").append("created", key="created", contract=contracts.sha256(new / "contract.yaml"))
        new.rename(study.folder)
    files.sync_folder(study.folder.parent)
    use(study)
