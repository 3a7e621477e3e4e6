"""What measuring and deciding rest on: the contract and the task that were approved, and no others.

An approval that has run out keeps jobs from starting; what they left may still be judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlx.launch import door
from rlx.launch.facts import unapproved
from rlx.study import points
from rlx.study import task as tasks
from rlx.study.gates import Reason
from rlx.study.study import Study


def require(study: Study, action: str, identity: str) -> None:
    """Refuse to measure or to judge by a contract or a task that nobody approved; that is one row of the ledger."""
    reasons = tuple(_reasons(study))
    if reasons:
        with study.ledger.held() as held:
            door.refuse(held, action, identity, reasons)


def _reasons(study: Study) -> Iterator[Reason]:
    contract = study.contract()
    for reason in unapproved(study, study.state(), contract):
        if reason.code != "APPROVAL_EXPIRED":
            yield reason
    if contract.task_sha256 != tasks.sha256(study.task()):
        yield Reason("BLOCKED", points.OTHER_TASK, f"put it back: {study.task_path.relative_to(study.root)}")
