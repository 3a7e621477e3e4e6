"""Where a study stands and what comes next, read from disk alone: whoever starts cold takes the same step."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rlx import files
from rlx.compare.race import RULE
from rlx.compare.stats import plain
from rlx.errors import FileDamaged
from rlx.launch import door
from rlx.launch.examined import changes_code, content_now, plan_of
from rlx.launch.facts import unapproved
from rlx.launch.reconcile import reconcile
from rlx.loop import handover, notes, scores, stale
from rlx.loop.agenda import PROPOSAL, Agenda, Position, Standing, Step, Waiting, agenda
from rlx.study import contract as contracts
from rlx.study import points, stops
from rlx.study.budget import Amount
from rlx.study.candidate import BASELINE
from rlx.study.contract import Contract
from rlx.study.report import standing_of
from rlx.study.standing import MOST_TOLD
from rlx.study.standing import Standing as Checked
from rlx.study.state import State
from rlx.study.study import Study

RECENT = 5


def next_step(study: Study) -> Step:
    """Return the one recommended thing to do."""
    return planned(study).next


def next_of(study: Study, candidate: str) -> Step:
    """Return what comes next of one candidate, else of its study."""
    plan = planned(study)
    return next((one for one in (plan.next, *plan.also) if one.candidate == candidate), plan.next)


def planned(study: Study) -> Agenda:
    """Return what to do now, and what else may be done; jobs whose processes are gone are closed first."""
    reconcile(study)
    return agenda(position(study))


def position(study: Study) -> Position:
    """Return where a study stands."""
    state, contract = study.state(), study.contract()
    problems = stale.settled(study, open_points(study, state, contract))
    left = left_of(state, contract)
    metric = contract.metric
    wanted, pool = metric.seeds if metric else 0, door.pool_seeds(contract)
    trained = pool - state.lacks(BASELINE, "baseline", pool)
    return Position(
        study=study.name,
        option=study.option,
        missing=tuple(map(str, problems)),
        unconfirmed=all(one.says == points.UNCONFIRMED for one in problems),
        settles=_settles(problems),
        is_rehearsed=is_rehearsed(study, state),
        **_rehearsal(state),
        has_trained=any(job.phase != "smoke" and job.used_seeds for job in state.jobs.values()),
        approval=_approval_missing(study, state, contract),
        level=contract.automation.approval if contract.automation else "asserted",
        has_proposal=_has_proposal(study),
        waiting=tuple(
            Waiting(job.id, str(job.run), job.candidate, job.phase, len(job.slots)) for job in state.open_jobs
        ),
        pool=min(len(state.usable(BASELINE, "baseline")), trained),
        pool_trained=trained,
        pool_wanted=pool,
        standings=tuple(_standings(study, state)),
        head=state.head,
        head_fresh=door.HEAD_SEEDS - state.lacks(state.head, "promotion", door.HEAD_SEEDS),
        head_measured=len(state.usable(state.head, "promotion")),
        plans=_plans(study, state),
        confirmed=frozenset(one for one in (BASELINE, state.head) if not state.claim_lacks(one, state.head, wanted)),
        claims_left=_claims_left(state, contract),
        searches=contract.metric is None or len(state.claimed) < contract.metric.claims,
        is_reported=is_reported(study),
        takes_over=handover.pending(study, state),
        seeds_left=seeds_left(left, contract),
        claim_seeds=2 * wanted,
        candidates_left=candidates_left(state, contract),
        deadline=stops.passed(state, contract, now=time.time()),
        halted=state.stop or state.escalation or "",
        stop_rule=stops.holding(state, contract),
        violations=tuple(str(one) for one in state.violations),
        parallel=contract.hardware.parallel if contract.hardware else 1,
    )


def _has_proposal(study: Study) -> bool:
    """Say whether a proposal was written down since the last one was put in."""
    path, known = study.root / PROPOSAL, study.candidates()
    made = study.candidate_path(known[-1].id).stat().st_mtime if known else 0.0
    return path.is_file() and path.stat().st_mtime > made


def open_points(study: Study, state: State, contract: Contract) -> tuple[points.Problem, ...]:
    """Return why points are not settled; until something was approved also that the time for all of it is over."""
    found = points.problems(contract, study.task(), root=study.root)
    return found if state.approval else (*found, *points.overdue(contract, now=time.time()))


def _is_decided(state: State) -> bool:
    return any(one["candidate"] == state.head and one.get("test") == "claim" for one in state.decisions)


def is_reported(study: Study) -> bool:
    """Say whether the report was written after the last row of the ledger."""
    try:
        return study.ledger.head()[:16].encode() in files.read_bytes(study.report_path)
    except (FileNotFoundError, FileDamaged):
        return False


def _settles(problems: Sequence[points.Problem]) -> str:
    """Return the command to begin with; a mission is put into words by the metric, so that is settled before."""
    commands = [one.hint for one in problems if one.is_command]
    return min(commands, key=lambda command: " --mission " in command, default="")


def _claims_left(state: State, contract: Contract) -> int:
    """Return how many claims may be made, the head's own among them unless it was decided."""
    allowed = contract.metric.claims if contract.metric else 0
    return 0 if _is_decided(state) else allowed - len(state.claimed - {state.head})


def is_rehearsed(study: Study, state: State) -> bool:
    """Say whether the path was walked, and well, under the contract as it is."""
    rehearsal = state.rehearsal
    return rehearsal is not None and bool(rehearsal["ok"]) and rehearsal["contract"] == state.contract


def _rehearsal(state: State) -> dict[str, str]:
    """Return where a walk under the contract as it is failed, and what comes before another."""
    walked = state.rehearsal
    if walked is None or walked["ok"] or walked["contract"] != state.contract:
        return {}
    failed = walked["checks"][-1]
    hint = f" ({failed['hint']})" if failed.get("hint") else ""
    return {
        "rehearsal_failed": f"{failed['name']}: {' '.join(failed['says'].split())[:MOST_TOLD]}{hint}",
        "rehearsal_mends": mends(failed, str(walked.get("reads") or "")),
    }


def mends(failed: Mapping[str, Any], reads: str) -> str:
    """Return what comes before another rehearsal: the command that the failed step names, else what shows its log."""
    hint = str(failed.get("hint") or "")
    is_whole = hint.startswith("rlx ") and not re.search(r"\b[A-Z]{3,}\b", hint)
    return hint if is_whole else reads


def _approval_missing(study: Study, state: State, contract: Contract) -> str:
    return "; ".join(one.says for one in unapproved(study, state, contract))


def approval_words(state: State) -> str:
    """Say who approved, at which level; only a touched key or another user is called human."""
    if state.approval is None:
        return "none"
    one = state.approval
    return f"{one.level} by {one.by}" + (" (human)" if one.is_human else " (not shown to be a human)")


def _standings(study: Study, state: State) -> list[Standing]:
    found = []
    for one in state.candidates.values():
        trained = sum(len(job.counted_seeds) for job in scores.ended(state, one.id, "trial"))
        look = RULE.first if trained < RULE.first else RULE.last
        wants = max(0, look - trained) if one.state == "inconclusive" and trained else 0
        reasons = one.refusal["reasons"] if one.refusal else ()
        refused = "; ".join(str(reason.get("says")) for reason in reasons if reason.get("code") != "UNCHANGED")
        beside = notes.beside(study, one.id, state.head) if one.state in ("validated", "inconclusive") else ""
        is_edited = one.state == "validated" and _is_edited(study, one)
        standing = Standing(
            one.id, one.state, "" if is_edited else plan_now(study, one), trained, wants, one.id in state.launched,
            is_edited, refused=refused, beside=beside,
            worktree=_worktree(study, one.id) if is_edited or changes_code(study, one.id) else "",
        )  # fmt: skip
        found.append(_failed(study, standing, state) if one.state == "debug" else standing)
    return found


def _is_edited(study: Study, one: Checked) -> bool:
    """Say whether a candidate is no longer what was checked: a launch of it would be refused."""
    return one.content is not None and content_now(study, one.id) not in (None, one.content)


def _worktree(study: Study, identity: str) -> str:
    """Return where a candidate's code is changed, from the project's folder; empty where it has no worktree yet."""
    folder = study.worktree(identity)
    return folder.relative_to(study.root).as_posix() if folder.is_dir() else ""


def _failed(study: Study, standing: Standing, state: State) -> Standing:
    """Say why a candidate is to be mended, whether its last trial was only cut off, and whether it is as it failed."""
    last = state.jobs_of(standing.id, "trial")[-1]
    is_cut_off = len(last.again) == len(last.seeds)
    how: Literal["lost", "stopped"] = "stopped" if last.outcome == "cancelled" else "lost"
    now = content_now(study, standing.id)
    is_same = state.failed_trial(standing.id, now) is not None
    is_amended = now == state.candidates[standing.id].content
    return replace(
        standing,
        ended=_ended(state, standing.id),
        cut_off=how if is_cut_off else "",
        look=door.look_at(last) if is_same else "",
        since="the contract was amended since:" if is_amended else standing.since,
        is_mendable=changes_code(study, standing.id),
    )


def _ended(state: State, identity: str) -> str:
    """Say why nothing came of a candidate's last trial: its own end, or the decision about it."""
    last, decisions = state.jobs_of(identity, "trial")[-1], state.candidates[identity].decisions
    return last.told if last.outcome != "completed" or not decisions else str(decisions[-1].get("says", ""))


def plan_now(study: Study, one: Checked) -> str:
    """Return the plan that a launch names: what was checked, under the contract as it is; empty: check it (again)."""
    if one.content is None:
        return one.plan or ""
    now = plan_of(study, one.content)
    return "" if one.state == "validated" and now != one.plan else now


def _plans(study: Study, state: State) -> dict[str, str]:
    """Return the plan of the head."""
    standing = state.candidates.get(state.head)
    return {standing.id: plan_now(study, standing)} if standing is not None and standing.plan else {}


def left_of(state: State, contract: Contract) -> Amount:
    """Return what of the budget is neither spent nor reserved."""
    budget = contract.budget
    if budget is None:
        return Amount()
    used = state.spent + state.reserved
    return Amount(max(0, budget.seeds - used.seeds), max(0.0, budget.hours * 3600 - used.seconds))


def seeds_left(left: Amount, contract: Contract) -> int:
    """Return how many further seeds can be paid for: each reserves the longest that it may take."""
    if contract.budget is None:
        return 0
    return min(left.seeds, math.floor(left.seconds / (contract.budget.per_seed_minutes * 60) + 1e-9))


def candidates_left(state: State, contract: Contract) -> int:
    """Return how many further candidates the contract allows to be tried."""
    return max(0, (contract.budget.candidates if contract.budget else 0) - len(state.launched))


def brief(study: Study) -> dict[str, Any]:
    """Return all that somebody who starts cold needs: what to do, what else, what was tried, what is left."""
    plan = planned(study)
    state, contract = study.state(), study.contract()
    scope = contracts.allowed(contract.scope, study.task()) if contract.scope else None
    left = left_of(state, contract)
    return {
        "study": study.name,
        "task": study.task_name,
        "metric": _aim(contract),
        "status": status_of(study, state, contract),
        "action": plan.next.action,
        "command": plan.next.command,
        "why": plan.next.why,
        "also": [one.document() for one in plan.also],
        "head": state.head,
        "incumbent": state.incumbent,
        "allowed": {"keys": list(scope.keys) if scope else [], "paths": list(scope.paths) if scope else []},
        "recent": [_tried(study, state, one) for one in _recent(state, plan.next.candidate)],
        "findings": [*findings(state), *notes.flat(state, contract)],
        "left": {
            **_left(left, contract),
            "candidates": candidates_left(state, contract),
            "claims": max(0, (contract.metric.claims if contract.metric else 0) - state.claims),
        },
    }


def _recent(state: State, candidate: str) -> list[str]:
    """Return the last candidates, the head and the one that the next step is about, in the order proposed."""
    known = list(state.candidates)
    return [one for one in known if one in (*known[-RECENT:], state.head, candidate)]


def _aim(contract: Contract) -> str:
    """Say what is to be improved, and what is guarded."""
    aim = f"{contract.metric.direction} {contract.metric.name}" if contract.metric else ""
    return "; ".join([aim, *(f"guarded: {one.expression}" for one in contract.guardrails)])


def _left(left: Amount, contract: Contract) -> dict[str, Any]:
    """Return what is left of the budget, and of its seeds how many its time pays for."""
    return {**left.document(), "payable_seeds": seeds_left(left, contract)}


def status_of(study: Study, state: State, contract: Contract) -> str:
    """Return blocked, ready or approved."""
    found = open_points(study, state, contract)
    return points.status(found, is_approved=not _approval_missing(study, state, contract))


def findings(state: State) -> list[str]:
    """Return what is open: violations, what a person must look at, the last refusal, jobs that failed.

    A job that failed is history when a later one of its candidate and phase went well.
    """
    found = [f"ledger: {one}" for one in state.violations]
    found += [state.stop] if state.stop else []
    found += [f"a person must look: {state.escalation}"] if state.escalation else []
    if state.open_refusal is not None:
        reasons = "; ".join(f"{one.get('code')}: {one.get('says')}" for one in state.open_refusal["reasons"])
        who = state.open_refusal.get("candidate") or state.open_refusal.get("action")
        found.append(f"last refusal: {who}: {reasons[:MOST_TOLD]}")
    done = {(job.candidate, job.phase): job.outcome for job in state.jobs.values()}
    failed = [f"{job.candidate} ({job.phase}): {job.told}" for job in state.jobs.values()
              if job.outcome not in (None, "completed") and done[job.candidate, job.phase] != "completed"]  # fmt: skip
    unusable = [f"{one['candidate']}: {one.get('says')}" for one in state.decisions if one["decision"] == "debug"]
    return [*found, *failed[-2:], *unusable[-2:]]


def _tried(study: Study, state: State, identity: str) -> dict[str, Any]:
    standing, candidate = state.candidates[identity], study.candidate(identity)
    last = standing.decisions[-1] if standing.decisions else None
    return {
        "candidate": identity,
        "kind": candidate.kind,
        "state": standing.state,
        "effect": plain(files.number(last.get("effect", math.nan))) if last else None,
        "p": plain(files.number(last.get("p", math.nan))) if last else None,
        "against": str(last.get("against", "")) if last else "",
        "standing": standing_of(state, standing),
        "hypothesis": candidate.hypothesis,
        "says": str(last.get("says", "")) if last else "",
    }


def status(study: Study) -> dict[str, Any]:
    """Return everything about where a study stands."""
    plan = planned(study)
    state, contract = study.state(), study.contract()
    missing = [str(one) for one in open_points(study, state, contract)]
    return {
        "study": study.name,
        "task": study.task_name,
        "metric": _aim(contract),
        "status": status_of(study, state, contract),
        "missing": missing,
        "approval": _approval_missing(study, state, contract) or approval_words(state),
        "head": state.head,
        "incumbent": state.incumbent,
        "spent": state.spent.document(),
        "reserved": state.reserved.document(),
        "left": _left(left_of(state, contract), contract),
        "jobs": [
            {"job": job.id, "run": job.run, "candidate": job.candidate, "phase": job.phase, "state": "open"}
            for job in state.open_jobs
        ],
        "candidates": [_tried(study, state, one) for one in state.candidates],
        "violations": [str(one) for one in state.violations],
        "warnings": list(notes.flat(state, contract)),
        "events": state.rows,
        "command": plan.next.command,
    }
