"""Approve a contract: by whom, and how strongly; every refusal is a row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlx.errors import Refused
from rlx.launch.study_jobs.launch_facts import unapproved
from rlx.loop.study.amend import measures, refuse_other_measures
from rlx.loop.study.evaluator import StudyEvaluator
from rlx.loop.study.open_points import open_points
from rlx.loop.study.study_status import notice_amendment, overview, write_hook_file
from rlx.runs import project
from rlx.study.approval import approval
from rlx.study.approval.approval import Statement
from rlx.study.contract import fixes
from rlx.study.contract.contract import Contract
from rlx.study.moves import Move, refusals
from rlx.study.refusal import Refusal
from rlx.study.situation import Facts
from rlx.study.study_folder import Study


def approve(
    study: Study,
    *,
    by: str,
    key: Path | None = None,
    document: Path | None = None,
    goes_on: bool = False,
    shown: str | None = None,
) -> dict[str, Any]:
    """Approve the contract byte for byte; refused below the level that the contract requires.

    `shown` is the hash of the contract that the approver has read; another one is not approved. A stopped study goes on
    only with `goes_on`. A weaker approval never replaces a stronger one.
    """
    notice_amendment(study)
    (contract, sha256), task = study.contract_with_hash(), study.task()
    if shown not in (None, sha256):
        says = "the contract changed while it was read, so it is not approved"
        _refuse_approval(study, [says], code="APPROVAL_VOID")
        raise Refused(says, hint=f"read it again: {fixes.approve(contract, goes_on=goes_on)}")
    _refuse_copy(study, contract)
    refused = _liftable_refusals(study, contract, sha256)
    try:
        refuse_other_measures(study, contract, task)
    except Refused as error:
        _refuse_approval(study, [error.message], code="MEASURED")
        raise
    halted = "; ".join(refusal.message for refusal in refused)
    if halted and not goes_on:
        _refuse_approval(study, [halted], code="STOPPED")
        raise Refused(halted, hint=f"to let it go on: {fixes.approve(contract, goes_on=True)}")
    statement = Statement.of(
        contract,
        sha256,
        now=time.time(),
        evaluator=StudyEvaluator(study).fresh().sha256,
        folder=project.folder_identity(study.root),
    )
    fields = _approval_fields(study, statement, by=by, key=key, document=document)
    assert contract.automation is not None
    problems = approval.problems(fields, sha256, now=time.time(), minimum=contract.automation.approval, root=study.root)
    if problems:
        _refuse_approval(study, problems)
        way = _WAYS[contract.automation.approval]
        raise Refused("; ".join(problems), hint=f"{way}{fixes.approve(contract, goes_on=goes_on)}")
    _keep_stronger(study, contract, fields)
    fields["measures"] = measures(contract, task)
    if goes_on:
        fields["goes_on"] = True
    _record(study, fields)
    human = bool(fields["human"])
    return {
        **overview(study),
        "level": fields["level"],
        "by": fields["by"],
        "human": human,
        "expires": fields["expires"],
        "goes_on_after": halted,
        "forgeable": list(approval.forgery_risks(fields["level"], human=human)),
    }


def _record(study: Study, fields: dict[str, Any]) -> None:
    """Write the approval to the ledger, and trust what the approved files name."""
    study.ledger.append("approved", key=fields["nonce"], **fields)
    project.mark_own(study.root)  # somebody has looked at what the files name
    project.mark_made_here(study.folder)
    write_hook_file(study)


def _liftable_refusals(study: Study, contract: Contract, sha256: str) -> tuple[Refusal, ...]:
    """Raise if the contract has open points; return the refusals that an approval can lift."""
    facts = Facts(time.time(), sha256, contract_problems=open_points(study, study.state(), contract))
    refused = refusals(study.state(), contract, facts, Move("approve"))
    blocked = [refusal for refusal in refused if refusal.code == "BLOCKED"]
    if blocked:
        lines = "\n".join(f"  {refusal.message}" for refusal in blocked)
        raise Refused(f"the contract is not settled:\n{lines}", fix=blocked[0].fix)
    return refused


def _refuse_copy(study: Study, contract: Contract) -> None:
    """Refuse a study that is a copy of another: its claims are those of the other."""
    original, name = f"{contract.task}/{contract.study}", f"{study.task_name}/{study.name}"
    if original != name:
        message = f"the contract is that of {original}, and this is {name}: a copied study cannot be approved"
        _refuse_approval(study, [message])
        raise Refused(message, hint="restore the folder's name, or start another study: rlx study new NAME")


_WAYS = {"asserted": "", "signed": "sign it: ", "other user": "with a file that another account owns: "}
"""How an approval of each level is made."""


def _keep_stronger(study: Study, contract: Contract, fields: approval.Fields) -> None:
    """Refuse an approval that would replace a stronger one that still holds."""
    state = study.state()
    if state.approval is None or unapproved(study, state, contract):
        return
    known = state.approval
    if approval.strength(fields) < approval.strength(known.event):
        says = f"a stronger approval stands, {known.level} by {known.by}; {fields.get('level')} would take its place"
        _refuse_approval(study, [says])
        raise Refused(says, hint="nothing is to be approved: rlx next; or sign again: rlx study approve --key FILE")


def _refuse_approval(study: Study, problems: Sequence[str], *, code: str = "APPROVAL") -> None:
    study.ledger.append("refused", action="approve", reasons=[{"code": code, "says": one} for one in problems])


def _approval_fields(
    study: Study, statement: Statement, *, by: str, key: Path | None, document: Path | None
) -> dict[str, Any]:
    try:
        if key is not None:
            return approval.sign_approval(statement, key=key, root=study.root)
        if document is not None:
            return approval.read_approval_document(document)
        return approval.assert_approval(statement, by=by)
    except Refused as error:
        _refuse_approval(study, [error.message])
        raise
