"""Amend a contract: keys are set, and a point whose keys were set counts as confirmed.

Metric and evaluation are frozen once a study has scores, so that all its scores are comparable. Alpha, seeds,
guardrails and margins are not frozen: a person may approve other ones after scores were seen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config import yaml_lines
from rlx.config.yaml_lines import Document
from rlx.errors import Refused, UsageError
from rlx.loop.study.study_status import notice_amendment
from rlx.number_format import counted
from rlx.study.candidate.config_changes import apply_changes
from rlx.study.contract import contract as contracts
from rlx.study.contract import contract_checks
from rlx.study.contract import document as documents
from rlx.study.contract.contract import POINTS, Contract
from rlx.study.study_folder import Study
from rlx.study.task.task import Task

_ADAPTER_KEYS = {"config", "prefix", "eval", "result", "checkpoint", "python_path", "policy", "policy_files"}
_POINT_OF = {"guardrails": "metric", "task_sha256": "task"}
"""The points of the contract's sections that have another name."""


def amend(study: Study, changes: Sequence[str]) -> dict[str, Any]:
    """Change keys of the contract (`budget.seeds=80`), all or none of them. This voids an approval."""
    with files.locked(study.contract_path):  # two amendments at once must not lose one
        _amend(study, changes)
    return notice_amendment(study)


def _amend(study: Study, changes: Sequence[str]) -> None:
    document = documents.load(study.contract_path, kind=contracts.FILE_KIND)
    settings = read_settings(changes)
    changed = apply_changes(document.data, settings)
    contract = documents.build(Document(document.source, changed, document.places), Contract)
    if contract.study != study.name or contract.task != study.task_name:
        raise Refused("a study keeps its name and its task", hint="rlx study new NAME")
    refuse_other_measures(study, contract, study.task())
    if "confirmed" not in settings:
        contract = confirm_changed(study, contract, {key.partition(".")[0] for key in settings}, study.task())
    files.write_atomic(study.contract_path, contracts.dump(contract).encode())


def confirm_changed(study: Study, contract: Contract, changed: Collection[str], task: Task) -> Contract:
    """Confirm the points whose keys were changed, or that were open and are complete now."""
    before = study.contract().model_copy(update={"confirmed": tuple(POINTS)})
    seen = _open_points(before, task, study.root) | {_POINT_OF.get(key, key) for key in changed}
    complete = confirm(contract, task, study.root).confirmed
    confirmed = [point for point in POINTS if point in contract.confirmed or (point in complete and point in seen)]
    return contract.model_copy(update={"confirmed": tuple(confirmed)})


def confirm(contract: Contract, task: Task, root: Path) -> Contract:
    """Confirm every point that is complete: a person looks at all of them before the approval."""
    confirmed = contract.model_copy(update={"confirmed": tuple(POINTS)})
    lacking = _open_points(confirmed, task, root)
    return contract.model_copy(update={"confirmed": tuple(point for point in POINTS if point not in lacking)})


def _open_points(confirmed: Contract, task: Task, root: Path) -> set[str]:
    """Return the points of a contract, all confirmed, that lack something."""
    return {problem.point for problem in contract_checks.problems(confirmed, task, root=root)}


def measures(contract: Contract, task: Task) -> dict[str, str]:
    """Return, by key, everything in a settled contract and its task that decides what a score means."""
    assert contract.metric is not None
    assert contract.evaluation is not None
    assert contract.baseline is not None
    adapter = task.adapter.model_dump(mode="json", include=_ADAPTER_KEYS)
    return {
        "metric.name": contract.metric.name,
        "metric.source": contract.metric.source,
        "metric.direction": contract.metric.direction,
        "evaluation.level": contract.evaluation.level,
        "evaluation.deterministic": str(contract.evaluation.deterministic),
        "baseline.commit": contract.baseline.commit,
        "the task's evaluation": files.sha256(files.encode(adapter))[:12],
    }


def refuse_other_measures(study: Study, contract: Contract, task: Task) -> None:
    """Raise if a contract measures something else than what the study's scores were made by."""
    state = study.state()
    scores = sum(map(len, state.evaluations.values()))
    if not scores or state.approval is None or None in (contract.metric, contract.evaluation, contract.baseline):
        return
    after = measures(contract, task)
    for key, before in (state.approval.event.get("measures") or {}).items():
        if after.get(key) != before:
            message = f"{counted(scores, 'score')} were made with {key} `{before}`: it cannot become `{after.get(key)}`"
            raise Refused(message, hint="restore it, or measure it in a study of its own: rlx study new NAME")


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Read several `key=value`."""
    return dict(map(setting, texts))


def setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; the value is YAML."""
    key, sign, value = text.partition("=")
    if not sign or not all(key.strip().split(".")):
        raise UsageError(f"`{text}` is not KEY=VALUE", hint="for example -s budget.seeds=80")
    return key.strip(), yaml_lines.value(value, source=f"-s {key}")
