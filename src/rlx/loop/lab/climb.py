"""Climb one rung: a new study at the higher budget, in which the baseline and the accepted candidate run again.

The lower study is stopped, so that the lab makes its claims at one rung at a time. Claims that were begun below are
gone: the new study gets the rest, and the rest of the error that they share.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlx.command import rlx
from rlx.errors import Refused
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch import launch as plain
from rlx.launch.study_jobs.launch_candidate import refused_error
from rlx.launch.study_jobs.launch_facts import unapproved
from rlx.loop.lab.attempt import Attempt, rung_attempts
from rlx.loop.lab.lab_config import Rung
from rlx.loop.lab.lab_folder import APPROVE_HINT, Lab
from rlx.loop.lab.rung_study import found_rung
from rlx.loop.lab.try_attempt import continue_attempt, find_attempt
from rlx.loop.study import baseline
from rlx.loop.study.agent.try_candidate import SECONDS
from rlx.loop.study.approve import approve
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.propose import propose
from rlx.study.candidate.candidate import BASELINE
from rlx.study.candidate.candidate_experiment import changes_of
from rlx.study.refusal import Refusal
from rlx.study.situation import pool_size
from rlx.study.study_folder import Study

CLIMBED = "climbed to"


def climb(
    lab: Lab, *, say: Say, seconds: float = SECONDS, follow: Callable[..., object] = plain.wait
) -> Attempt | None:
    """Go to the next rung, and run both sides again there; return the accepted candidate's new attempt, if any.

    Calling it again after a crash goes on: a rung whose baseline or candidate is missing is finished first.
    """
    refuse_foreign_program("the training of the lab", root=lab.root, item=lab.study.folder, hint=APPROVE_HINT)
    unfinished = _carried_from(lab)
    if unfinished is None:
        refusals = climb_refusals(lab)
        if refusals:
            raise refused_error("the lab stays at its rung", refusals)
        lower = lab.rung
        _found_above(lab, lower)
    else:
        lower = unfinished
    below = lab.study_at(lower)
    if below.state().stop is None:
        below.ledger.append("stopped", rule=f"{CLIMBED} {lab.rung.name}")
    study = lab.study
    if study.state().approval is None and not _approve_like(study, below):
        raise Refused(
            f"rung {lab.rung.name} needs an approval like the one below",
            hint=f"rlx study approve {study.name}",
        )
    say(f"rung {lab.rung.name}: the baseline runs again")
    baseline.fill(study, say=say, follow=follow)
    if below.state().head == BASELINE:
        return None
    return continue_attempt(lab, _carry(lab, below, lower), say=say, seconds=seconds, follow=follow)


def is_cut_off(lab: Lab) -> bool:
    """Say whether a climb to the current rung was cut off; `climb` then goes on with it."""
    return _carried_from(lab) is not None


def climb_refusals(lab: Lab) -> list[Refusal]:
    """Return why the lab cannot climb now."""
    state = lab.study.state()
    metric = lab.study.contract().metric
    status = rlx("lab", "brief")
    found = []
    if lab.next_rung is None:
        found.append(Refusal("RUNG", f"{lab.rung.name} is the highest rung of lab.yaml", status))
    if state.open_jobs:
        found.append(Refusal("RUNG", f"{state.open_jobs[0].run} still trains at {lab.rung.name}", status))
    if metric is not None and state.claims >= metric.claims:
        found.append(Refusal("CLAIMS", f"all claims of the lab were made, the last at {lab.rung.name}", status))
    if state.approval is None:
        found.append(Refusal("NOT_APPROVED", f"the study of {lab.rung.name} is not approved", rlx("lab", "approve")))
    return found


def _found_above(lab: Lab, lower: Rung) -> None:
    """Write the study above, with the claims and the error that are left."""
    below = lab.study_at(lower)
    contract = below.contract()
    state = below.state()
    above = lab.next_rung
    assert above is not None
    assert contract.baseline is not None
    assert contract.metric is not None
    left = contract.metric.claims - state.claims
    alpha = contract.metric.alpha * left / contract.metric.claims
    found_rung(lab, above, commit=contract.baseline.commit, claims=left, alpha=alpha)


def _approve_like(study: Study, below: Study) -> bool:
    """Approve a study by the person whose approval of the one below holds, if the rules ask for no more than a name."""
    automation = study.contract().automation
    state = below.state()
    if automation is None or state.approval is None or automation.approval != "asserted":
        return False
    if unapproved(below, state, below.contract()):
        return False
    approve(study, by=state.approval.by)
    return True


def _carried_from(lab: Lab) -> Rung | None:
    """Return the rung below, if the climb from there was cut off: a side did not run here to its end yet."""
    begun = lab.begun
    if len(begun) < 2:
        return None
    below = lab.study_at(begun[-2]).state()
    state = lab.study.state()
    is_cut_off = below.stop is None or state.approval is None
    if not is_cut_off and below.head == BASELINE:
        is_cut_off = state.lacks(BASELINE, "baseline", pool_size(lab.study.contract())) > 0
    elif not is_cut_off:
        carried = _carried(lab)
        is_cut_off = carried is None or find_attempt(lab, carried).status == "open"
    return begun[-2] if is_cut_off else None


def _carried(lab: Lab) -> str | None:
    """Return the candidate of this rung that was proposed as the accepted one of the rung below."""
    names = (attempt.candidate for attempt in rung_attempts(lab.study, lab.rung) if attempt.candidate)
    return next((name for name in names if lab.study.candidate(name).carries), None)


def _carry(lab: Lab, below: Study, lower: Rung) -> str:
    """Propose the accepted candidate of the rung below at this rung, once; its whole change is one candidate."""
    name = _carried(lab)
    if name is None:
        name = _propose_again(lab, below)
    if not find_attempt(lab, name).notes.get("carried"):
        carries = list(lab.study.candidate(name).carries)
        note = {"carried": carries, "from_rung": lower.name, "parts": [f"{below.name}/{below.state().head}"]}
        lab.study.ledger.append("noted", candidate=name, note=note)
    return name


def _propose_again(lab: Lab, below: Study) -> str:
    head = below.state().head
    chain = [candidate for candidate in below.chain(head) if candidate.id != BASELINE]
    proposal: dict[str, Any] = {"kind": "code", "hypothesis": f"holds at {lab.rung.name}: {chain[-1].hypothesis}"}
    keys = changes_of(chain)
    if keys:
        proposal["changes"] = keys
    with tempfile.TemporaryDirectory(prefix="rlx-climb-") as folder:
        patch = Path(folder) / "change.patch"
        patch.write_bytes(below.patch(head) or b"")
        carries = tuple(f"{below.name}/{candidate.id}" for candidate in chain)
        return str(propose(lab.study, proposal, patch=patch, carries=carries)["candidate"])
