"""What measuring and deciding rest on: the contract and the task that were approved, the code that was checked.

An approval that has run out keeps jobs from starting; what they left may still be judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlx import files
from rlx.errors import FileDamaged
from rlx.launch import door
from rlx.launch.facts import unapproved
from rlx.study import points
from rlx.study import task as tasks
from rlx.study.reason import Reason
from rlx.study.standing import Standing
from rlx.study.study import Study


def require(study: Study, action: str, identity: str) -> None:
    """Refuse to measure or to judge by a contract or a task that nobody approved, or code that nobody checked.

    That is one row of the ledger.
    """
    reasons = (*_reasons(study), *_of_code(study, identity))
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


def _of_code(study: Study, identity: str) -> Iterator[Reason]:
    standing = study.state().candidates.get(identity)
    for says in other_code(study, standing) if standing else ():
        yield Reason("CANDIDATE", says, "put the file back as it was")


def others(study: Study, standing: Standing) -> list[str]:
    """Return the files of a candidate that are not what the ledger has of it: reports and patches are made of them."""
    path = study.candidate_path(standing.id)
    try:
        is_same = files.sha256(files.read_bytes(path)) == standing.sha256
    except (OSError, FileDamaged):
        return [f"candidates/{path.name} is gone", *other_code(study, standing)]
    return [*([] if is_same else [f"candidates/{path.name} is not what was proposed"]), *other_code(study, standing)]


def other_code(study: Study, standing: Standing) -> list[str]:
    """Return that a candidate's patch is not the change of code that was checked."""
    path = study.patch_path(standing.id)
    if standing.patch is None:
        return []  # it was never checked
    try:
        is_same = files.sha256(files.read_bytes(path)) == standing.patch
    except (OSError, FileDamaged):
        return [f"candidates/{path.name} is gone"]
    return [] if is_same else [f"candidates/{path.name} is not what was checked"]
