"""The rulebook of a study: which moves are worth making, which of them are allowed, and why not; pure.

`refusals` judges one move. A launch asks it right before its process starts; `check`, `propose`, `approve`, `decide`
and the queue ask it too. `next_moves` lists the moves that are worth making, the most urgent first, without those
that are refused: `rlx next` recommends the first.

One launch needs no approval: the rehearsal. A smoke run of a candidate that changes nothing may start under a settled
contract, for at most five minutes, and an hour for all rehearsals together. Every other rule holds for it too.

Limits: rlx believes the facts it is given, and the clocks. A job that overruns its reservation overspends by as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rlx.command import Command, rlx
from rlx.compare.race_thresholds import RULE
from rlx.number_format import counted
from rlx.study.budget import Amount
from rlx.study.contract import fixes
from rlx.study.contract.contract import APPROVAL_LEVELS, POINTS, REHEARSAL_SECONDS, Contract
from rlx.study.ledger.lifecycle import BASELINE, LAUNCHES, NULL_LAUNCHES, REHEARSAL, CandidateState, Phase, seeds_for
from rlx.study.ledger.records import Standing
from rlx.study.ledger.state import State, next_seeds
from rlx.study.refusal import CODES, Refusal
from rlx.study.situation import Facts, Situation, explain_failure, head_phase, pool_size, race_opponent

ALL_REHEARSALS_SECONDS = 3600.0
"""How long all rehearsals before an approval may take together."""
CLOCK_SKEW_SECONDS = 300.0
"""How far the clocks of two machines may differ."""
SEARCH_PHASES: frozenset[Phase] = frozenset({"trial", "promotion"})
"""The phases that a stop rule ends. The claim of the head is still allowed."""
MoveKind = Literal["audit", "amend", "rehearse", "approve", "wait", "baseline", "launch", "measure", "verdict",
                   "decide", "check", "mend", "propose", "report", "done", "take over"]  # fmt: skip
_NOTHING = Amount()
Reason = Literal["", "proposed", "edited", "amended", "lost", "stopped", "refused", "changed", "failed", "streak"]


@dataclass(frozen=True)
class Move:
    """One thing that somebody may do in a study; `reason` says why it is worth doing, if there are several reasons."""

    kind: MoveKind
    candidate: str = ""
    phase: Phase = "trial"
    seeds: tuple[int, ...] = ()
    reserve: Amount = _NOTHING
    plan: str | None = None
    """The hash that `check` returned: what a launch says that it runs."""
    is_unattended: bool = False
    goes_on: bool = False
    """Whether an approval also lets a stopped study go on."""
    run: str = ""
    reason: Reason = ""


Refusals = Iterator[Refusal]
Rule = Callable[[Situation, Move], Refusals]


def refusals(state: State, contract: Contract, facts: Facts, move: Move) -> tuple[Refusal, ...]:
    """Return every refusal of a move, in the order of `CODES`; a move without any is allowed."""
    return judge(Situation(state, contract, facts), move)


def judge(at: Situation, move: Move) -> tuple[Refusal, ...]:
    """Return every refusal of a move in a situation."""
    return tuple(refusal for rule in _RULES.get(move.kind, ()) for refusal in rule(at, move))


def next_moves(at: Situation) -> tuple[Move, ...]:
    """Return the allowed moves, the recommended one first; the report can always be written."""
    allowed = [move for move in _worthwhile(at) if not judge(at, move)]
    return tuple(dict.fromkeys((*(allowed or _ending(at)), Move("report"))))


def blocking_refusals(at: Situation) -> tuple[Refusal, ...]:
    """Return what refuses the most urgent of the worthwhile moves; empty if that one is allowed or there is none."""
    return next((judge(at, move) for move in _worthwhile(at)), ())


# What is worth doing, the most urgent first.


def _worthwhile(at: Situation) -> Iterator[Move]:
    if at.state.violations:
        yield Move("audit")
        return
    if at.facts.contract_problems:
        yield Move("amend")
        return
    if any(unapproved(at)):
        yield from _before_approval(at)
        return
    for job in at.state.open_jobs:
        yield Move("wait", job.candidate, job.phase, run=str(job.run))
    if at.halted:
        yield Move("approve", goes_on=True)
    elif at.deadline:
        yield from (move for move in (*_unfinished(at), *_claim(at)) if move.kind == "decide")
    elif at.stop_rule:
        yield from _after_search(at)
    elif at.contract.hardware is None or len(at.state.slots) < at.contract.hardware.parallel:
        yield from _search(at)


def _before_approval(at: Situation) -> Iterator[Move]:
    """Yield a rehearsal and the approval. A study that has trained already has shown that its path works."""
    if at.halted:
        yield Move("approve", goes_on=True)
        return
    has_trained = any(job.phase != "smoke" and job.used_seeds for job in at.state.jobs.values())
    if has_trained and not at.is_rehearsal_failed:
        yield Move("approve")
    if not at.is_rehearsed:
        if at.rehearsal_fix:
            yield Move("rehearse", REHEARSAL, "smoke", reason="failed")
        yield Move("rehearse", REHEARSAL, "smoke")
    yield Move("approve")


def _search(at: Situation) -> Iterator[Move]:
    pool = Move("baseline", BASELINE, "baseline")
    if len(at.state.usable(BASELINE, "baseline")) < pool_size(at.contract) or _pool_lacks(at):
        yield pool
        if not judge(at, pool):
            return
    unfinished = tuple(_unfinished(at))
    promotion = tuple(_promotion(at))
    is_head_stuck = bool(promotion) and all(judge(at, move) for move in promotion)
    yield from promotion
    if promotion and not is_head_stuck:  # every race waits for the head's fresh scores
        yield from (move for move in unfinished if move.kind == "check")
        return
    yield from (move for move in unfinished if move.kind != "mend")
    claim = tuple(_claim(at))
    is_begun = at.may_claim and (any(job.phase == "confirmation" for job in at.state.open_jobs) or _is_side_trained(at))
    is_claim_first = is_begun or at.is_at_ceiling
    if is_claim_first:  # a claim that was begun comes before another idea, and so does one of a head without a rival
        yield from claim
    newest = max(at.state.candidates, default="")
    fixes_of_newest = [move for move in unfinished if move.kind == "mend" and move.candidate == newest]
    yield from fixes_of_newest
    if at.affords_trial and at.can_search and not is_head_stuck:  # against a stuck head, nothing can be raced
        yield Move("propose")
    if not is_claim_first:
        yield from claim
    yield from (move for move in unfinished if move.kind == "mend" and move not in fixes_of_newest)


def _pool_lacks(at: Situation) -> int:
    return at.state.lacks(BASELINE, "baseline", pool_size(at.contract))


def _is_side_trained(at: Situation) -> bool:
    return any(at.claim_lacks(side, at.state.head) == 0 for side in (BASELINE, at.state.head))


def _promotion(at: Situation) -> Iterator[Move]:
    """Yield what gives a raced head its fresh scores. The scores that it won with are biased upwards."""
    head = at.state.head
    if head == BASELINE or at.is_busy(head) or not (at.has_rivals and at.racers):
        return
    lacking = at.state.lacks(head, "promotion", RULE.head)
    if 0 < lacking <= at.spare_seeds:
        yield launch_move(at, head, "promotion", plan=at.facts.of(head).plan)
    elif len(at.state.usable(head, "promotion")) < RULE.head - lacking:
        yield Move("verdict", head, "promotion")


def _unfinished(at: Situation) -> Iterator[Move]:
    """Yield the moves that finish each candidate. Trained ones are decided; the others only while they may be raced."""
    for standing in at.state.candidates.values():
        if at.is_busy(standing.id):
            continue
        if standing.state == "completed":
            yield Move("decide", standing.id)
        elif standing.state == "inconclusive":
            if at.can_search and 0 < at.state.race_lacks(standing.id) <= at.spare_seeds:
                yield launch_move(at, standing.id, "trial", plan=at.facts.of(standing.id).plan)
        elif at.may_race(standing):
            yield from _preparation(at, standing)


def _preparation(at: Situation, standing: Standing) -> Iterator[Move]:
    """Yield what leads a candidate to its trial."""
    facts = at.facts.of(standing.id)
    if standing.state == "debug":
        yield from _repair(at, standing)
    elif at.is_checked(standing):
        yield launch_move(at, standing.id, "trial", plan=facts.plan)
    elif standing.state in ("draft", "validated") and standing.check_refusals:
        yield Move("mend", standing.id, reason="refused")
    elif standing.state == "draft":
        yield Move("check", standing.id, reason="proposed")
    elif standing.state == "validated":
        is_edited = standing.content not in (None, facts.content)
        yield Move("check", standing.id, reason="edited" if is_edited else "amended")


def _repair(at: Situation, standing: Standing) -> Iterator[Move]:
    """Yield what follows a failed trial: the same seeds again if it was cut off, else a fix of its code."""
    trial = at.state.jobs_of(standing.id, "trial")[-1]
    facts = at.facts.of(standing.id)
    if at.state.failed_trial(standing.id, facts.content):
        if facts.changes_code:
            yield Move("mend", standing.id, reason="failed")
    elif len(trial.again) < len(trial.seeds):
        yield Move("mend", standing.id, reason="changed")
    elif trial.outcome == "cancelled":
        yield Move("mend", standing.id, reason="stopped")
    else:
        yield Move("check", standing.id, reason="lost")


def _claim(at: Situation) -> Iterator[Move]:
    """Yield what claims the head: both sides on fresh seeds, then the decision."""
    if not at.may_claim or any(job.phase != "confirmation" for job in at.state.open_jobs):
        return
    head = at.state.head
    if at.is_claim_ready(head):
        yield Move("decide", head, "confirmation")
        return
    lacking = {side: at.claim_lacks(side, head) for side in (BASELINE, head) if not at.is_busy(side)}
    untrained = [side for side, count in lacking.items() if count]
    if untrained and sum(lacking.values()) <= at.seeds_left:
        yield launch_move(at, untrained[0], "confirmation", plan=at.facts.of(untrained[0]).plan)


def _after_search(at: Situation) -> Iterator[Move]:
    """Yield what a stop rule leaves: decisions, the claim, the report, and a person's permission to go on."""
    yield from (move for move in _unfinished(at) if move.kind == "decide")
    yield from _claim(at)
    yield from _ending(at)
    if at.stop_rule and at.stop_rule.counts_streak:
        yield Move("approve", goes_on=True, reason="streak")


def _ending(at: Situation) -> Iterator[Move]:
    """Yield the last moves, if nothing has to be trained or decided."""
    if not at.facts.is_reported:
        yield Move("report")
        return
    yield Move("done")
    if at.facts.take_over:  # after the study: it changes the files that the study was approved on
        yield Move("take over")


def launch_move(
    at: Situation, candidate: str, phase: Phase, *, plan: str | None = None, count: int | None = None,
    is_unattended: bool = False,
) -> Move:  # fmt: skip
    """Return the launch of a candidate on fresh seeds; without a count, on as many as the phase needs."""
    purpose: Literal["search", "confirm"] = "confirm" if phase == "confirmation" else "search"
    seeds = next_seeds(at.state, candidate, purpose, count or _seed_count(at, candidate, phase))
    return Move("launch", candidate, phase, seeds, _reservation(at.contract, phase, len(seeds)), plan, is_unattended)


def _seed_count(at: Situation, candidate: str, phase: Phase) -> int:
    """Return how many seeds a phase trains: what its next look, its pool or its claim lacks."""
    lacking: dict[Phase, Callable[[], int]] = {
        "smoke": lambda: 1,
        "trial": lambda: at.state.race_lacks(candidate),
        "promotion": lambda: at.state.lacks(candidate, phase, RULE.head),
        "baseline": lambda: _pool_lacks(at),
        "confirmation": lambda: at.claim_lacks(candidate, at.state.head),
    }
    return max(1, lacking[phase]())


def _reservation(contract: Contract, phase: Phase, seeds: int) -> Amount:
    """Return the most that a job can use: it is killed when it has used that. A smoke run uses no seed."""
    assert contract.budget is not None
    if phase == "smoke":
        return Amount(0, REHEARSAL_SECONDS)
    return Amount(seeds, seeds * contract.budget.per_seed_minutes * 60)


# What refuses a launch, in the order of the codes.


def _ledger(at: Situation, move: Move) -> Refusals:
    broken = at.state.violations
    if broken:
        more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
        yield Refusal("LEDGER", f"rlx did not write this ledger: {broken[0]}{more}", rlx("study", "audit"))


def _halt(at: Situation, move: Move) -> Refusals:
    go_on = fixes.approve(at.contract, goes_on=True)
    if at.state.stop is not None:
        yield Refusal("STOPPED", f"the study has stopped: {at.state.stop}", go_on)
    if at.state.escalation is not None:
        yield Refusal("ESCALATED", f"the study waits for a person: {at.state.escalation}", go_on)


def _stop_rule(at: Situation, move: Move) -> Refusals:
    rule = at.stop_rule if move.phase in SEARCH_PHASES else None
    if rule:
        fix = fixes.approve(at.contract, goes_on=True) if rule.counts_streak else rlx("next")
        yield Refusal("STOPPED", f"a stop rule ended the search: {rule.text}", fix)


def _blocked(at: Situation, move: Move) -> Refusals:
    show = rlx("study", "show")
    for problem in at.facts.contract_problems:
        yield Refusal("BLOCKED", problem.message, show, problem.point)
    named = {problem.point for problem in at.facts.contract_problems}
    for point, title in POINTS.items():
        is_settled = point in at.contract.confirmed and getattr(at.contract, point, None) is not None
        if not is_settled and point not in named:
            yield Refusal("BLOCKED", f"{title}: not confirmed", show, point)


def unapproved(at: Situation) -> Refusals:
    """Yield why no approval of the contract holds now."""
    approval, approve = at.state.approval, fixes.approve(at.contract)
    if approval is None:
        yield Refusal("NOT_APPROVED", "the contract has no approval", approve)
        return
    if not approval.contract == at.facts.contract_sha256 == at.state.contract:
        yield Refusal("APPROVAL_VOID", f"the contract changed after {approval.by} approved it", approve)
    if approval.event.time > at.facts.now + CLOCK_SKEW_SECONDS:
        message = f"the approval is dated {_moment(approval.event.time)}, which is in the future: a clock is wrong"
        yield Refusal("APPROVAL", message, approve)
    if not at.now < approval.expires:
        yield Refusal("APPROVAL_EXPIRED", f"the approval expired at {_moment(approval.expires)}", approve)
    required = at.contract.automation.approval if at.contract.automation else APPROVAL_LEVELS[0]
    if APPROVAL_LEVELS.index(approval.level) < APPROVAL_LEVELS.index(required):
        message = f"the approval is {approval.level}, and the contract requires {required}"
        yield Refusal("APPROVAL_LEVEL", message, approve)
    for problem in at.facts.approval_problems:
        yield Refusal("APPROVAL", problem, approve)


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).isoformat(" ", "minutes")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"


def _approval(at: Situation, move: Move) -> Refusals:
    missing = tuple(unapproved(at))
    if not (missing and _is_unchanged(move) and move.phase == "smoke"):
        yield from missing
        return
    rehearsals = [job for job in at.state.jobs.values() if job.candidate in NULL_LAUNCHES and job.phase == "smoke"]
    used = sum((job.spent or job.reserve).seconds for job in rehearsals)
    seconds = move.reserve.seconds
    if not (seconds <= REHEARSAL_SECONDS and used + seconds <= ALL_REHEARSALS_SECONDS):
        yield from missing
        message = (
            f"before an approval, a rehearsal may take {REHEARSAL_SECONDS:.0f} s and all of them "
            f"{ALL_REHEARSALS_SECONDS:.0f} s; this one reserves {seconds:.0f} s after {used:.0f} s"
        )
        yield Refusal("REHEARSAL", message, fixes.approve(at.contract))


def _is_unchanged(move: Move) -> bool:
    """Whether a move is about the baseline or the rehearsal, which change nothing."""
    return move.candidate in NULL_LAUNCHES


def _unattended(at: Situation, move: Move) -> Refusals:
    automation = at.contract.automation
    if move.is_unattended and not (automation and automation.unattended):
        allow = rlx("study", "amend", at.contract.study, "-s", "automation.unattended=true", needs_person=True)
        yield Refusal("UNATTENDED", "the contract does not allow jobs to start without a person", allow)


def _task(at: Situation, move: Move) -> Refusals:
    for problem in at.facts.task_problems:
        yield Refusal("TASK_STALE", f"{problem}; restore that file", rlx("task", "show"))


def _candidate(at: Situation, move: Move) -> Refusals:
    if not _is_unchanged(move) and move.candidate not in at.state.candidates:
        yield Refusal("CANDIDATE", f"unknown candidate {move.candidate}", rlx("propose", "--help"))
    facts = at.facts.of(move.candidate)
    where = f"; edit the files in {facts.worktree}" if facts.worktree else ""
    for problem in sorted(facts.problems, key=lambda problem: list(CODES).index(problem.code)):
        fix = _check_command(move)
        if not facts.changes_code:  # its keys cannot be edited: another check would say the same
            fix = problem.fix or rlx("next")
        if _is_unchanged(move):  # the pinned commit itself fails, and it stays pinned once it is approved
            fix = rlx("study", "new", "NAME", is_complete=False)
        yield Refusal(problem.code, f"{problem.message}{where}", fix)


def _scope(at: Situation, move: Move) -> Refusals:
    facts = at.facts.of(move.candidate)
    known = {problem.message for problem in facts.problems}
    for breach in facts.breaches:
        if breach not in known:
            yield Refusal("SCOPE", f"{breach}; undo that in the worktree", _check_command(move))


def _check_command(move: Move) -> Command:
    return rlx("check", "candidate", move.candidate)


def _plan(at: Situation, move: Move) -> Refusals:
    facts, standing, check = at.facts.of(move.candidate), at.state.candidates.get(move.candidate), _check_command(move)
    if move.plan is None and not _is_unchanged(move):
        yield Refusal("PLAN", "the launch names no plan", check)
    elif move.plan is not None and move.plan != facts.plan:
        yield Refusal("PLAN", f"the plan is now {facts.plan}, not {move.plan}", check)
    if standing is None or standing.plan is None:
        return
    is_same_contract = standing.contract == at.state.contract
    if is_same_contract and move.plan not in (None, standing.plan):
        yield Refusal("PLAN", f"the checked plan is {standing.plan}, not {move.plan}", check)
    elif not is_same_contract and standing.state == "validated":
        yield Refusal("PLAN", "the candidate was checked under another contract", check)
    if standing.content is not None and facts.content != standing.content:
        message = "the candidate changed after it was checked; propose the change as another candidate"
        yield Refusal("PLAN", message, rlx("propose", "--help"))


def _state(at: Situation, move: Move) -> Refusals:
    standing = at.state.candidates.get(move.candidate)
    if standing is None or standing.state in LAUNCHES[move.phase] or move.phase == "baseline":
        return
    steps = {"draft": _check_command(move), "debug": _check_command(move), "launched": rlx("status"),
             "completed": rlx("decide", standing.id)}  # fmt: skip
    message = f"{standing.id} {STATE_WORDS[standing.state]}: rlx starts no {move.phase} of it now"
    yield Refusal("STATE", message, steps.get(standing.state, rlx("next")))


STATE_WORDS: dict[CandidateState, str] = {
    "draft": "is not checked",
    "validated": "is checked and has no trial yet",
    "launched": "is in its trial",
    "completed": "is trained and not decided",
    "advanced": "has advanced",
    "rejected": "was rejected",
    "inconclusive": "is undecided",
    "debug": "failed",
    "confirmed": "is confirmed",
    "reverted": "was reverted",
    "withdrawn": "was withdrawn",
}


def _phase(at: Situation, move: Move) -> Refusals:
    name, phase, head = move.candidate, move.phase, at.state.head
    if _is_unchanged(move):
        if phase not in NULL_LAUNCHES[name]:
            yield Refusal("PHASE", f"the {name} has no {phase} jobs", rlx("next"))
            return
    elif phase == "baseline":
        yield Refusal("PHASE", f"{name} is not the baseline", rlx("study", "baseline"))
    elif phase in ("promotion", "confirmation") and name != head:
        yield Refusal("PHASE", f"only the head, {head}, can be launched for {phase}", rlx("next"))
        return
    if phase == "confirmation" and head == BASELINE:
        yield Refusal("PHASE", "there is nothing to confirm: the head is the baseline", rlx("next"))
    elif phase == "confirmation" and at.state.claim_of(head):
        yield Refusal("PHASE", f"the claim of {head} was made: its episodes are drawn", rlx("verdict", head))
    elif phase == "trial":
        yield from _head_scores(at)


def _head_scores(at: Situation) -> Refusals:
    """Refuse a race while the head has too few scores that it did not win with."""
    head, scores = at.state.head, len(at.fresh_scores)
    if scores < RULE.head:
        fix = rlx("study", "baseline") if head == BASELINE else rlx("next")
        yield Refusal("PHASE", f"the head {head} has {scores} fresh scores, and a race needs {RULE.head}", fix)


def _claims(at: Situation, move: Move) -> Refusals:
    metric, claimed = at.contract.metric, at.state.claimed
    if move.phase != "confirmation" or metric is None or at.state.head in claimed or len(claimed) < metric.claims:
        return
    message = f"{len(claimed)} of {counted(metric.claims, 'claim')} were made ({', '.join(sorted(claimed))})"
    yield Refusal("CLAIMS", message, rlx("study", "new", "NAME", is_complete=False))


def _seeds(at: Situation, move: Move) -> Refusals:
    allowed, fix = seeds_for(move.phase), _launch_command(move)
    wrong = [str(seed) for seed in move.seeds if type(seed) is not int or seed not in allowed]
    if wrong or not move.seeds or len(set(move.seeds)) != len(move.seeds):
        named = ", ".join(wrong) or list(move.seeds)
        message = f"{move.phase} takes distinct seeds from {allowed.start} to {allowed.stop - 1}, not {named}"
        yield Refusal("SEEDS_RANGE", message, fix)
    used = sorted(set(move.seeds) & at.state.used_seeds(move.candidate))
    if used and move.phase != "smoke":
        yield Refusal("SEEDS_USED", f"{move.candidate} has used the seeds {', '.join(map(str, used))}", fix)


def _launch_command(move: Move) -> Command:
    """Return the launch as it is typed; rlx takes fresh seeds."""
    command = rlx("launch", move.candidate, "--phase", move.phase)
    return command.plus("--plan", move.plan) if move.plan else command


def _budget(at: Situation, move: Move) -> Refusals:
    budget, reserve = at.contract.budget, move.reserve
    seeds = 0 if move.phase == "smoke" else reserve.seeds
    needed = 0 if move.phase == "smoke" else len(move.seeds)
    if not reserve.is_sane or reserve.seeds < needed or reserve.seconds == 0:
        message = f"{needed} seeds need more than {reserve.seeds} seeds and {reserve.seconds:g} s reserved"
        yield Refusal("RESERVE", message, rlx("next"))
    if budget is None:
        return
    used = at.state.spent + at.state.reserved
    if used.seeds + seeds > budget.seeds:
        message = f"{seeds} seeds after {used.seeds} exceed the budget of {budget.seeds}"
        yield Refusal("BUDGET_SEEDS", message, _raise_budget(at, "seeds"))
    if not used.seconds + reserve.seconds <= budget.hours * 3600:
        message = (
            f"{reserve.seconds / 3600:.2f} h after {used.seconds / 3600:.2f} h exceed the budget of {budget.hours:g} h"
        )
        yield Refusal("BUDGET_HOURS", message, _raise_budget(at, "hours"))
    if move.phase == "trial":
        yield from _candidate_budget(at, move)


def _raise_budget(at: Situation, key: str) -> Command:
    """Return the command with which a person raises a limit; the contract is approved again after it."""
    return rlx("study", "amend", at.contract.study, "-s", f"budget.{key}=N", is_complete=False, needs_person=True)


def _candidate_budget(at: Situation, move: Move) -> Refusals:
    budget, others = at.contract.budget, len(at.state.launched - {move.candidate})
    if budget is not None and others >= budget.candidates:
        message = f"{others} of {counted(budget.candidates, 'candidate')} were launched"
        yield Refusal("BUDGET_CANDIDATES", message, _raise_budget(at, "candidates"))


def _deadline(at: Situation, move: Move) -> Refusals:
    if at.deadline:
        yield Refusal("DEADLINE", f"no job starts after {at.deadline}", _raise_budget(at, "until"))


def _room(at: Situation, move: Move) -> Refusals:
    hardware, machine, taken = at.contract.hardware, at.facts.machine, len(at.state.slots)
    if hardware is None:
        return
    fix = rlx("status") if taken else rlx("doctor")
    if taken >= hardware.parallel:
        yield Refusal("PARALLEL", f"{taken} of {counted(hardware.parallel, 'place')} for seeds are taken", fix)
    needs = {
        "CORES": (machine.core_places, counted(hardware.cores, "core")),
        "GPUS": (machine.gpu_places if hardware.gpus else math.inf, f"{hardware.gpus:g} GPUs"),
        "MEMORY": (machine.memory_places, f"{hardware.memory_gb or 0:g} GB of memory"),
    }
    for code, (places, need) in needs.items():
        if not taken < places:
            yield Refusal(code, f"a seed needs {need}: there is room for {places:g} seeds, and {taken} train", fix)
    if not machine.free_disk_gb >= hardware.disk_gb:
        message = f"{machine.free_disk_gb:.1f} GB are free, and the contract asks for {hardware.disk_gb:g} GB"
        yield Refusal("DISK", message, rlx("ls"))


def _sandbox(at: Situation, move: Move) -> Refusals:
    automation = at.contract.automation
    if automation is None or automation.sandbox == "required":
        for problem in at.facts.sandbox_problems:
            yield Refusal("SANDBOX", problem, rlx("doctor"))


# What refuses the other moves.


def _rehearsal(at: Situation, move: Move) -> Refusals:
    yield from judge(at, launch_move(at, REHEARSAL, "smoke"))


def _fill_pool(at: Situation, move: Move) -> Refusals:
    """Judge the baseline as the launch that it makes; if all its seeds are trained, only measuring is left."""
    is_trained = not _pool_lacks(at)
    yield from judge(at, Move("measure", BASELINE) if is_trained else launch_move(at, BASELINE, "baseline"))


def _silent_approval(at: Situation, move: Move) -> Refusals:
    """Refuse an approval of a halted study that does not say that the study goes on."""
    if not move.goes_on:
        yield from _halt(at, move)


def _unchanged(at: Situation, move: Move) -> Refusals:
    """Refuse to check what would only fail again: the same content, after a trial that failed by its own fault."""
    facts = at.facts.of(move.candidate)
    failed = at.state.failed_trial(move.candidate, facts.content)
    if failed is None:
        return
    ways = "fix its worktree, or propose another candidate"
    if not facts.changes_code:
        ways = (
            "propose another candidate. If the machine was at fault, which rlx cannot verify, propose the same change "
            "with a value that differs by more than 1 %"
        )
    message = f"nothing changed since {move.candidate} failed ({failed.summary}); see why, then {ways}"
    yield Refusal("UNCHANGED", message, explain_failure(failed))


def _unfixable(at: Situation, move: Move) -> Refusals:
    standing = at.state.candidates.get(move.candidate)
    if standing is None or standing.state not in ("draft", "validated", "debug"):
        words = STATE_WORDS[standing.state] if standing else "is unknown"
        yield Refusal("STATE", f"{move.candidate} {words}: it cannot be edited any more", rlx("next"))


def _measurable(at: Situation, move: Move) -> Refusals:
    """Refuse to measure under a contract or task without an approval. An expired approval is enough."""
    yield from (refusal for refusal in unapproved(at) if refusal.code != "APPROVAL_EXPIRED")
    if at.facts.is_other_task:
        message = "the task changed after the contract was settled; restore its task.yaml"
        yield Refusal("BLOCKED", message, rlx("task", "show"), "task")
    for problem in at.facts.of(move.candidate).altered_files:
        yield Refusal("CANDIDATE", f"{problem}; restore the file", rlx("study", "verify", at.contract.study))


def _judgeable(at: Situation, move: Move) -> Refusals:
    """Refuse a verdict without a trained trial, or against a head whose own seeds are not trained."""
    state, name = at.state, move.candidate
    if name not in state.candidates:
        yield Refusal("CANDIDATE", f"{name} is measured, not judged", rlx("next"))
        return
    if at.is_claim_ready(name) and state.candidates[name].state in ("advanced", "confirmed"):
        return
    if not state.ended_jobs(name, "trial"):
        yield Refusal(
            "STATE", f"{name} {STATE_WORDS[state.candidates[name].state]}: it has no trained seed", rlx("next")
        )
    if name == state.head:
        return
    opponent = race_opponent(state, name)
    lacking = len(state.cut_off(opponent, head_phase(opponent)))
    if move.kind == "decide":
        lacking = state.lacks(opponent, head_phase(opponent), RULE.head)
    if lacking:
        yield Refusal("PHASE", f"{counted(lacking, 'seed')} of {opponent} must be trained first", rlx("next"))


_LAUNCH: tuple[Rule, ...] = (
    _ledger, _halt, _stop_rule, _blocked, _approval, _unattended, _task, _candidate, _scope, _plan, _state, _phase,
    _claims, _seeds, _budget, _deadline, _room, _sandbox,
)  # fmt: skip
_RULES: dict[MoveKind, tuple[Rule, ...]] = {
    "launch": _LAUNCH,
    "rehearse": (_rehearsal,),
    "baseline": (_fill_pool,),
    "approve": (_blocked, _silent_approval),
    "check": (_candidate, _scope, _unchanged),
    "mend": (_unfixable,),
    "measure": (_measurable,),
    "verdict": (_measurable, _judgeable),
    "decide": (_measurable, _judgeable),
    "propose": (_candidate_budget,),
}
"""What can refuse each kind of move; the other kinds are always allowed."""
