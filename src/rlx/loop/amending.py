"""How a contract is amended: keys are set, and a point whose keys were set was looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.config import yaml_lines
from rlx.config.yaml_lines import Document
from rlx.errors import Refused, UsageError
from rlx.loop.measures import refuse_others
from rlx.loop.overview import noticed
from rlx.study import contract as contracts
from rlx.study import document as documents
from rlx.study import points
from rlx.study.changes import laid
from rlx.study.contract import POINTS, Contract
from rlx.study.study import Study
from rlx.study.task import Task


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
        contract = looked_at(study, contract, {key.partition(".")[0] for key in wanted}, study.task())
    files.write_atomic(study.contract_path, contracts.dump(contract).encode())


def looked_at(study: Study, contract: Contract, changed: Collection[str], task: Task) -> Contract:
    """Count points as confirmed whose keys were changed, or which lack nothing since: somebody has looked at them."""
    lacked = {one.point for one in points.problems(study.contract(), task, root=study.root)
              if one.says != points.UNCONFIRMED}  # fmt: skip
    complete = confirm(contract, task, study.root).confirmed
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


def confirm(contract: Contract, task: Task, root: Path) -> Contract:
    """Confirm every point that is complete: approving the contract is what says that somebody has looked at them."""
    whole = contract.model_copy(update={"confirmed": tuple(POINTS)})
    open_points = {one.point for one in points.problems(whole, task, root=root)}
    return contract.model_copy(update={"confirmed": tuple(point for point in POINTS if point not in open_points)})
