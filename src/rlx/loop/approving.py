"""How a contract is approved: by whom, how strongly, and what does not count; every refusal is a row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlx.errors import Refused
from rlx.launch.facts import unapproved
from rlx.loop import proceed
from rlx.loop.evaluator import Evaluator
from rlx.loop.measures import measures, refuse_others
from rlx.loop.overview import noticed, overview, tell_hooks
from rlx.study import approval, remedy
from rlx.study.approval import Statement
from rlx.study.contract import Contract
from rlx.study.study import Study


def approve(
    study: Study,
    *,
    by: str,
    key: Path | None = None,
    document: Path | None = None,
    goes_on: bool = False,
    shown: str | None = None,
) -> dict[str, Any]:
    """Approve the contract as it is, byte for byte, at the level that is asked for; refused below its minimum.

    `shown` is the hash of what whoever approves has read: another contract is none of theirs. A study that has stopped
    goes on only where that is said, and no approval takes the place of a stronger one.
    """
    noticed(study)
    (contract, sha256), task = study.contract_with_hash(), study.task()
    if shown not in (None, sha256):
        says = "the contract was changed while it was read: what was shown is not approved"
        _refuse_approval(study, [says], code="APPROVAL_VOID")
        raise Refused(says, hint=f"read it again: {remedy.approved(contract, goes_on=goes_on)}")
    _refuse_copy(study, contract)
    found = proceed.open_points(study, study.state(), contract)
    if found:
        raise Refused("the contract is not settled:\n" + "\n".join(f"  {one}" for one in found), hint="rlx study show")
    try:
        refuse_others(study, contract, task)
    except Refused as error:
        _refuse_approval(study, [error.message], code="MEASURED")
        raise
    halted = _halted(study)
    if halted and not goes_on:
        _refuse_approval(study, [halted], code="STOPPED")
        raise Refused(halted, hint=f"if it shall go on: {remedy.approved(contract, goes_on=True)}")
    statement = Statement.of(contract, sha256, now=time.time(), evaluator=Evaluator(study).fresh().sha256)
    try:
        fields = _approval_fields(study, statement, by=by, key=key, document=document)
    except Refused as error:
        _refuse_approval(study, [error.message])
        raise
    assert contract.automation is not None
    problems = approval.problems(fields, sha256, now=time.time(), minimum=contract.automation.approval, root=study.root)
    if problems:
        _refuse_approval(study, problems)
        way = _WAYS[contract.automation.approval]
        raise Refused("; ".join(problems), hint=f"{way}{remedy.approved(contract, goes_on=goes_on)}")
    _keep_stronger(study, contract, fields)
    told = {"measures": measures(contract, task), **({"goes_on": True} if goes_on else {})}
    study.ledger.append("approved", key=fields["nonce"], **fields, **told)
    tell_hooks(study)
    human = bool(fields["human"])
    return {
        **overview(study),
        "level": fields["level"],
        "by": fields["by"],
        "human": human,
        "expires": fields["expires"],
        "goes_on_after": halted,
        "forgeable": list(approval.forgeable(fields["level"], human=human)),
    }


def _refuse_copy(study: Study, contract: Contract) -> None:
    """Refuse a study in whose folder the contract of another lies: its claims are that one's."""
    theirs, own = f"{contract.task}/{contract.study}", f"{study.task_name}/{study.name}"
    if theirs != own:
        says = f"the contract is that of {theirs}, and this is {own}: a copy is no study of its own"
        _refuse_approval(study, [says])
        raise Refused(says, hint="rename its folder as it was, or begin another: rlx study new NAME")


_WAYS = {"asserted": "", "signed": "sign it: ", "other user": "with a file that another account owns: "}
"""How an approval of each level is made."""


def _halted(study: Study) -> str:
    """Say why a study does nothing more; empty where it does."""
    state = study.state()
    told = {"the study has stopped": state.stop, "the study waits for a person": state.escalation}
    return "; ".join(f"{what}: {why}" for what, why in told.items() if why)


def _keep_stronger(study: Study, contract: Contract, fields: approval.Fields) -> None:
    """Refuse an approval that would take the place of one that shows more and still stands."""
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
    if key is not None:
        return approval.signed(statement, key=key, root=study.root)
    if document is not None:
        return approval.by_other_user(document)
    return approval.asserted(statement, by=by)
