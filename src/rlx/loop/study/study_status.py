"""The status of a study and its contract, read from disk alone, so that anybody takes the same next step."""

from __future__ import annotations

import math
from typing import Any

from rlx import files
from rlx.loop.study import confirmed_patch, verdict_notes
from rlx.loop.study.step_commands import next_steps, situation_of
from rlx.loop.study.verify import integrity
from rlx.number_format import deviation, plain
from rlx.study.approval import approval
from rlx.study.contract import baseline_commit, contract_checks
from rlx.study.contract import contract as contracts
from rlx.study.contract.budget_power import SeedTime, budget_power
from rlx.study.contract.contract import Contract
from rlx.study.contract.contract_view import point_rows
from rlx.study.hook_file import FILE as HOOK_FILE
from rlx.study.hook_file import hook_content
from rlx.study.ledger.lifecycle import BASELINE
from rlx.study.ledger.records import MOST_TOLD
from rlx.study.ledger.state import State
from rlx.study.moves import unapproved
from rlx.study.report import standing_of
from rlx.study.situation import Situation
from rlx.study.study_folder import Study, list_studies
from rlx.study.task.task import Task

RECENT = 5


def brief(study: Study) -> dict[str, Any]:
    """Return what somebody without context needs: the next step, the others, the latest candidates, the budget."""
    at = situation_of(study)
    state, contract = at.state, at.contract
    step, *others = next_steps(study, at)
    keys, paths = (), ()  # type: tuple[str, ...], tuple[str, ...]
    if contract.scope:
        scope = contracts.open_places(contract.scope, study.task())
        keys, paths = scope.keys, scope.paths
    known = list(state.candidates)
    recent = [name for name in known if name in (*known[-RECENT:], state.head, step.move.candidate)]
    return {
        "study": study.name,
        "task": study.task_name,
        "metric": _aim(contract),
        "status": status_of(at),
        "integrity": integrity(study),
        **step.document(),
        "also": [other.document() for other in others],
        "head": state.head,
        "incumbent": state.incumbent,
        "allowed": {"keys": list(keys), "paths": list(paths)},
        "recent": [_candidate(study, state, name) for name in recent],
        "findings": [*findings(state), *verdict_notes.flat(state, contract)],
        "left": {
            **_left(at),
            "candidates": at.candidates_left,
            "claims": max(0, (contract.metric.claims if contract.metric else 0) - len(state.claimed)),
        },
    }


def status(study: Study) -> dict[str, Any]:
    """Return the whole status of a study."""
    at = situation_of(study)
    state = at.state
    missing = "; ".join(refusal.message for refusal in unapproved(at))
    return {
        "study": study.name,
        "task": study.task_name,
        "metric": _aim(at.contract),
        "status": status_of(at),
        "missing": [problem.message for problem in at.facts.contract_problems],
        "approval": missing or approval_words(state),
        "head": state.head,
        "incumbent": state.incumbent,
        "spent": state.spent.document(),
        "reserved": state.reserved.document(),
        "left": _left(at),
        "jobs": [
            {"job": job.id, "run": job.run, "candidate": job.candidate, "phase": job.phase, "state": "open"}
            for job in state.open_jobs
        ],
        "candidates": [_candidate(study, state, name) for name in state.candidates],
        "violations": [str(violation) for violation in state.violations],
        "integrity": integrity(study),
        "warnings": list(verdict_notes.flat(state, at.contract)),
        "events": state.rows,
        "command": str(next_steps(study, at)[0].command),
    }


def status_of(at: Situation) -> contract_checks.Status:
    """Return whether the contract is blocked, ready or approved."""
    if at.facts.contract_problems:
        return "blocked"
    return "ready" if any(unapproved(at)) else "approved"


def approval_words(state: State) -> str:
    """Return who approved, and at which level. Only a touched key or another user counts as human."""
    approval = state.approval
    if approval is None:
        return "none"
    proof = "human" if approval.is_human else "not shown to be a human"
    return f"{approval.level} by {approval.by} ({proof})"


def _aim(contract: Contract) -> str:
    """Return the metric and the guardrails."""
    aim = f"{contract.metric.direction} {contract.metric.name}" if contract.metric else ""
    return "; ".join([aim, *(f"guarded: {guardrail.expression}" for guardrail in contract.guardrails)])


def _left(at: Situation) -> dict[str, Any]:
    """Return the rest of the budget, and how many seeds that pays for."""
    return {**at.left.document(), "payable_seeds": at.seeds_left}


def findings(state: State) -> list[str]:
    """Return the open matters: violations, halts, the last refusal, failed jobs and decisions.

    A failed job is left out if a later one of its candidate and phase completed.
    """
    lines = [f"ledger: {violation}" for violation in state.violations]
    if state.stop:
        lines.append(state.stop)
    if state.escalation:
        lines.append(f"a person must look: {state.escalation}")
    if state.open_refusal is not None:
        reasons = "; ".join(f"{reason.get('code')}: {reason.get('says')}" for reason in state.open_refusal["reasons"])
        subject = state.open_refusal.get("candidate") or state.open_refusal.get("action")
        lines.append(f"last refusal: {subject}: {reasons[:MOST_TOLD]}")
    last_outcome = {(job.candidate, job.phase): job.outcome for job in state.jobs.values()}
    failed = []
    for job in state.jobs.values():
        if not job.is_open and "completed" not in (job.outcome, last_outcome[job.candidate, job.phase]):
            failed.append(f"{job.candidate} ({job.phase}): {job.summary}")
    debug = [event for event in state.decisions if event["decision"] == "debug"]
    invalid = [f"{event['candidate']}: {event.get('says')}" for event in debug]
    return [*lines, *failed[-2:], *invalid[-2:]]


def _candidate(study: Study, state: State, name: str) -> dict[str, Any]:
    standing, candidate = state.candidates[name], study.candidate(name)
    last: dict[str, Any] = {}
    if standing.decisions:
        last = dict(standing.decisions[-1].fields)
    return {
        "candidate": name,
        "kind": candidate.kind,
        "state": standing.state,
        "effect": plain(files.number(last.get("effect", math.nan))),
        "p": plain(files.number(last.get("p", math.nan))),
        "against": str(last.get("against", "")),
        "standing": standing_of(state, standing),
        "hypothesis": candidate.hypothesis,
        "says": str(last.get("says", "")),
    }


def notice_amendment(study: Study) -> dict[str, Any]:
    """Write a row if somebody edited the contract; return how the contract stands."""
    now = contracts.sha256(study.contract_path)
    if study.state().contract != now:
        study.ledger.append("amended", contract=now)
    write_hook_file(study)
    return overview(study)


def write_hook_file(study: Study) -> None:
    """Write the file that the hooks of agent hosts read."""
    files.write_json(study.folder / HOOK_FILE, hook_content(study.task(), study.contract(), study.state()))


def overview(study: Study) -> dict[str, Any]:
    """Return the contract's eight points as they stand, what the budget affords, and the open points."""
    contract, sha256 = study.contract_with_hash()
    at, task = situation_of(study), study.task()
    notes, affords = _notes(study, contract, task), _affords(contract, at.state)
    level = contract.automation.approval if contract.automation else "asserted"
    problems = contract_checks.problems(contract, task, root=study.root)
    if at.state.approval is None:
        problems += tuple(contract_checks.overdue(contract, now=at.facts.now))
    points = point_rows(
        contract,
        task,
        problems=problems,
        notes=notes,
        budget_lines=affords,
        forgery_risks=approval.forgery_risks(level),
    )
    return {
        "study": study.name,
        "task": study.task_name,
        "status": status_of(at),
        "missing": [problem.message for problem in at.facts.contract_problems],
        "notes": [str(note) for note in notes],
        "points": [row.document() for row in points],
        "affords": list(affords),
        "rehearsal": _rehearsal(study, at.state),
        "sha256": sha256,
        "file": study.contract_path.relative_to(study.root).as_posix(),
        "command": str(next_steps(study, at)[0].command),
    }


def _rehearsal(study: Study, state: State) -> str:
    """Return how the last rehearsal went, and whether it was of the contract as it is."""
    rehearse = f"rlx study rehearse {study.name}"
    if state.rehearsal is None:
        return f"none yet; to try the whole path before anything is spent: {rehearse}"
    failed = [check for check in state.rehearsal["checks"] if not check["ok"]]
    result = f"failed: {failed[0]['name']}: {failed[0]['says']}" if failed else "the whole path works"
    if state.rehearsal["contract"] == state.contract:
        return result
    return f"none of this contract, which was amended since: {rehearse} (before that: {result})"


def _notes(study: Study, contract: Contract, task: Task) -> tuple[contract_checks.OpenPoint, ...]:
    """Return what should be known about a contract, also if its baseline lacks an earlier confirmed change."""
    messages = list(baseline_commit.notes(contract, task, study.root))
    for other in list_studies(study.root):
        apply = None
        if other.task_name == study.task_name and other != study:
            apply = confirmed_patch.pending(other, other.state())
        if apply:
            messages.insert(0, f"the change that `{other.name}` confirmed is not in it; to start with that: {apply}")
    return (
        *contract_checks.notes(contract, task),
        *(contract_checks.OpenPoint("baseline", message) for message in messages),
    )


def _affords(contract: Contract, state: State) -> tuple[str, ...]:
    """Return what the budget pays for, with the measured cost of a baseline's seed if that is known."""
    if contract.budget is None or contract.metric is None:
        return ()
    spent = [job.spent for job in state.jobs_of(BASELINE, "baseline") if job.spent and job.spent.seeds]
    seconds = rehearsed = spread = None
    if spent:
        seconds = sum(amount.seconds for amount in spent) / sum(amount.seeds for amount in spent)
    if state.rehearsal:
        rehearsed = state.rehearsal.get("seed_seconds")
    scores = [score for score in state.scores(BASELINE, "baseline").values() if not math.isnan(score)]
    if len(scores) > 1:
        spread = deviation(scores)
    seed_time = SeedTime.of(contract.budget, seconds, rehearsed)
    power = budget_power(contract.budget, contract.metric, seed_time=seed_time, baseline_sd=spread)
    return power.lines(contract.metric.name)
