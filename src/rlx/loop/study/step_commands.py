"""The next steps of a study: gather the facts, ask `study/moves.py`, and give each move a command and a reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rlx import files
from rlx.command import Command, rlx
from rlx.compare.race_thresholds import RULE
from rlx.errors import FileDamaged
from rlx.launch.study_jobs.candidate_check import changes_code, content_hash, plan_hash
from rlx.launch.study_jobs.launch_facts import approval_problems
from rlx.launch.study_jobs.reconcile import reconcile
from rlx.loop.study import confirmed_patch, verdict_notes
from rlx.loop.study.evidence_checks import altered_code
from rlx.loop.study.open_points import open_points
from rlx.number_format import counted
from rlx.study.contract import contract as contracts
from rlx.study.contract import fixes
from rlx.study.contract.contract import Contract
from rlx.study.ledger.lifecycle import BASELINE
from rlx.study.ledger.records import MOST_TOLD, Standing
from rlx.study.ledger.state import State
from rlx.study.moves import Move, blocking_refusals, next_moves, unapproved
from rlx.study.situation import UNDECIDED, CandidateFacts, Facts, Situation, explain_failure, pool_size
from rlx.study.study_folder import Study
from rlx.study.task import task as tasks

PROPOSAL = "candidate.json"
"""The file in the project's folder in which a proposal is written down."""


@dataclass(frozen=True)
class Step:
    """A move as a person reads it: the command to type, and why."""

    move: Move
    command: Command
    why: str

    def document(self) -> dict[str, str]:
        """Return this as JSON-able data."""
        return {"action": self.move.kind, "command": str(self.command), "why": self.why}


def next_step(study: Study) -> Step:
    """Return the one recommended thing to do."""
    return next_steps(study, situation_of(study))[0]


def next_step_of(study: Study, candidate: str) -> Step:
    """Return what comes next for one candidate; if nothing does, what comes next in its study."""
    steps = next_steps(study, situation_of(study))
    return next((step for step in steps if step.move.candidate == candidate), steps[0])


def next_steps(study: Study, at: Situation) -> tuple[Step, ...]:
    """Return the recommended step, then the other allowed ones."""
    writer = StepWriter(at, study.option_words, has_proposal=_has_proposal(study), build_notes=_build_notes(study, at))
    return writer.steps()


def situation_of(study: Study) -> Situation:
    """Return a study's situation after closing jobs whose processes are gone; it replays the ledger once."""
    state = study.state()
    if reconcile(study, state):
        state = study.state()
    contract = study.contract()
    return Situation(state, contract, gather_facts(study, state, contract))


def gather_facts(study: Study, state: State, contract: Contract) -> Facts:
    """Look at everything outside the ledger that the next move depends on.

    The machine is not looked at: its free cores and disk change by the minute, and the launch judges them.
    """
    relevant = [one for one in state.candidates.values() if one.state in UNDECIDED or one.id == state.head]
    return Facts(
        now=time.time(),
        contract_sha256=contracts.sha256(study.contract_path),
        contract_problems=open_points(study, state, contract),
        is_other_task=contract.task_sha256 != tasks.sha256(study.task()),
        approval_problems=approval_problems(study, state),
        candidates={standing.id: _candidate_facts(study, standing) for standing in relevant},
        is_reported=is_reported(study),
        take_over=confirmed_patch.pending(study, state),
    )


def _candidate_facts(study: Study, standing: Standing) -> CandidateFacts:
    content, plan = standing.content, standing.plan
    if standing.state not in ("draft", "launched", "completed"):
        content = content_hash(study, standing.id) or content
    if content is not None:
        plan = plan_hash(study, content)
    is_code = changes_code(study, standing.id)
    folder = study.worktree(standing.id)
    worktree = ""
    if folder.is_dir() and (is_code or content != standing.content):
        worktree = folder.relative_to(study.root).as_posix()
    altered = tuple(altered_code(study, standing))
    return CandidateFacts(plan, content, altered_files=altered, changes_code=is_code, worktree=worktree)


def is_reported(study: Study) -> bool:
    """Whether the report was written after the last row of the ledger."""
    try:
        return study.ledger.head()[:16].encode() in files.read_bytes(study.report_path)
    except (FileNotFoundError, FileDamaged):
        return False


def _has_proposal(study: Study) -> bool:
    """Whether a proposal was written down since the last one was made."""
    path, known = study.root / PROPOSAL, study.candidates()
    proposed = study.candidate_path(known[-1].id).stat().st_mtime if known else 0.0
    return path.is_file() and path.stat().st_mtime > proposed


def _build_notes(study: Study, at: Situation) -> dict[str, str]:
    waiting = [one.id for one in at.state.candidates.values() if one.state in ("validated", "inconclusive")]
    return {name: verdict_notes.other_base(study, name, at.state.head) for name in waiting}


@dataclass(frozen=True)
class StepWriter:
    """Puts the moves of a situation into commands and reasons."""

    at: Situation
    study_words: tuple[str, ...] = ()
    """`--study NAME` for commands that otherwise mean the active study; empty if this is the active one."""
    has_proposal: bool = False
    build_notes: Mapping[str, str] = field(default_factory=dict)
    """For a candidate that does not build on the head: a sentence that says so."""

    def steps(self) -> tuple[Step, ...]:
        """Return the allowed moves as steps, the recommended one first."""
        return tuple(Step(move, *self._words(move)) for move in next_moves(self.at))

    def _words(self, move: Move) -> tuple[Command, str]:
        writers: dict[str, Callable[[Move], tuple[Command, str]]] = {
            "audit": self._audit,
            "amend": self._amend,
            "rehearse": self._rehearse,
            "approve": self._approve,
            "wait": self._wait,
            "baseline": self._baseline,
            "launch": self._launch,
            "verdict": self._verdict,
            "decide": self._decide,
            "check": self._check,
            "mend": self._mend,
            "propose": self._propose,
            "report": self._report,
            "done": self._done,
            "take over": self._take_over,
        }
        return writers[move.kind](move)

    @property
    def _name(self) -> str:
        return self.at.contract.study

    def _study(self, *words: str) -> Command:
        return rlx("study", *words, self._name)

    def _audit(self, move: Move) -> tuple[Command, str]:
        return self._study("audit"), f"the ledger is not sound: {self.at.state.violations[0]}"

    def _amend(self, move: Move) -> tuple[Command, str]:
        problems = self.at.facts.contract_problems
        listed = "; ".join(problem.message for problem in problems)
        commands = [problem.fix for problem in problems if problem.fix and problem.fix.is_complete]
        if commands:  # the mission is put into words by the metric, so the metric is settled first
            command = min(commands, key=lambda fix: "--mission" in fix.argv)
            return command, f"the contract is not settled: {listed}"
        amend = self._study("amend").plus("-s", "KEY=VALUE")
        return self._study("show"), f"the contract is not settled; edit it, or type {amend}: {listed}"

    def _rehearse(self, move: Move) -> tuple[Command, str]:
        command = self._study("rehearse")
        if not self.at.is_rehearsal_failed or self.at.state.rehearsal is None:
            return command, "this contract has not been rehearsed yet"
        check = self.at.state.rehearsal["checks"][-1]
        hint = f" ({check['hint']})" if check.get("hint") else ""
        failed = f"the rehearsal failed: {check['name']}: {' '.join(check['says'].split())[:MOST_TOLD]}{hint}"
        if move.reason == "failed" and self.at.rehearsal_fix:
            pin = fixes.pins_head(self._name)
            fix = f"fix that (commit changed files, and pin the commit: {pin}), then {command}"
            return self.at.rehearsal_fix, f"{failed}; {fix}"
        return command, f"{failed}; rehearse again when that is fixed"

    def _approve(self, move: Move) -> tuple[Command, str]:
        command = fixes.approve(self.at.contract, goes_on=move.goes_on)
        reasons = [refusal.message for refusal in unapproved(self.at)]
        if self.at.halted:
            reasons.append(f"the study has stopped: {self.at.halted}")
        if move.reason == "streak" and self.at.stop_rule:
            reasons = [f"stop rule: {self.at.stop_rule.text}"]
        if move.goes_on:
            return command, f"{'; '.join(reasons)}; a person decides whether it goes on"
        return command, f"{'; '.join(reasons)}; a person does this, an agent cannot"

    def _wait(self, move: Move) -> tuple[Command, str]:
        return rlx("wait", move.run, "--timeout", "300"), f"{move.candidate} trains ({move.phase})"

    def _baseline(self, move: Move) -> tuple[Command, str]:
        size, state = pool_size(self.at.contract), self.at.state
        scores = len(state.usable(BASELINE, "baseline"))
        trained = size - state.lacks(BASELINE, "baseline", size)
        more = f", and {trained} are trained" if trained > scores else ""
        return self._study("baseline"), f"{scores} of the {size} seeds of the baseline have a score{more}"

    def _launch(self, move: Move) -> tuple[Command, str]:
        command = rlx("launch", move.candidate, "--phase", move.phase)
        if move.plan:
            command = command.plus("--plan", move.plan)
        return command.plus(*self.study_words), self._launch_reason(move)

    def _launch_reason(self, move: Move) -> str:
        if move.phase == "promotion":
            return f"the new head needs {RULE.head} fresh seeds: the seeds it won with are biased upwards"
        if move.phase == "confirmation":
            return f"the claim trains the head {self.at.state.head} and the original baseline on fresh seeds"
        name = move.candidate
        reason = f"{name} was checked"
        if self.at.state.candidates[name].state == "inconclusive":
            trained = sum(len(job.counted_seeds) for job in self.at.state.ended_jobs(name, "trial"))
            lead = "leads so far" if trained >= RULE.first else f"has {trained} of {RULE.first} seeds"
            reason = f"{name} {lead}: {counted(len(move.seeds), 'further seed')}"
        return "; ".join(filter(None, (reason, self.build_notes.get(name))))

    def _verdict(self, move: Move) -> tuple[Command, str]:
        command = rlx("verdict", move.candidate, *self.study_words)
        return command, "the head's fresh seeds are trained and not measured"

    def _decide(self, move: Move) -> tuple[Command, str]:
        why = f"the seeds of {move.candidate} are trained"
        if move.phase == "confirmation":
            why = "both sides of the claim are trained"
        return rlx("decide", move.candidate, *self.study_words), why

    def _check(self, move: Move) -> tuple[Command, str]:
        name, place = move.candidate, self._place(move)
        if move.reason == "lost":
            why = f"{name} was lost{self._failure(name)}: check it, and rlx trains the same seeds again"
        elif move.reason == "edited":
            why = f"{name} was edited{place} after it was checked"
        elif move.reason == "amended":
            why = f"{name} was checked under another contract"
        else:
            why = f"{name} was proposed or edited"
            why += f"; its code is changed{place} first" if place else ""
        return self._check_command(name), why

    def _check_command(self, name: str) -> Command:
        return rlx("check", "candidate", name, *self.study_words)

    def _place(self, move: Move) -> str:
        folder = self.at.facts.of(move.candidate).worktree
        return f" in {folder}" if folder else ""

    def _failure(self, name: str) -> str:
        """Return why nothing came of a candidate's last trial, in brackets: its own end, or the decision about it."""
        trial, decisions = self.at.state.jobs_of(name, "trial")[-1], self.at.state.candidates[name].decisions
        if trial.outcome == "completed" and decisions:
            return f" ({decisions[-1].get('says', '')})"
        return f" ({trial.summary})"

    def _mend(self, move: Move) -> tuple[Command, str]:
        name, place, check = move.candidate, self._place(move), self._check_command(move.candidate)
        standing = self.at.state.candidates[name]
        refused = "; ".join(str(reason.get("says")) for reason in standing.check_refusals)
        if move.reason == "refused":
            return check, f"{name} was refused ({refused}): fix it{place} and check it again, or propose another"
        failed = f"{name} failed{self._failure(name)}"
        if move.reason == "failed":
            command = explain_failure(self.at.state.jobs_of(name, "trial")[-1])
            return command, f"{failed}: see why, fix it{place}, then {check}; or propose another"
        if move.reason == "stopped":
            return check, f"{name} was stopped{self._failure(name)}: check it, and rlx trains the same seeds again"
        since = "was changed since: when it is fixed, check it"
        if refused:
            since = f"was refused since ({refused}): fix it{place} and check it"
        elif standing.content == self.at.facts.of(name).content:
            since = "the contract was amended since: check it"
        return check, f"{failed} and {since}"

    def _propose(self, move: Move) -> tuple[Command, str]:
        """Write the proposal's command; without a proposal file, the command shows its schema."""
        kept = f"{self.at.seeds_left} seeds left, {self.at.claim_seeds} of them kept for the claim"
        why = f"the head is {self.at.state.head}; {kept}"
        command = rlx("propose", "--file", PROPOSAL, *self.study_words)
        if self.has_proposal:
            return command, f"{why}; {PROPOSAL} is there"
        how = f"write {PROPOSAL} like this, then {command}; or name the change by options (rlx propose --help)"
        return rlx("schema", "candidate"), f"{why}; {how}"

    def _report(self, move: Move) -> tuple[Command, str]:
        why = "lists every candidate, its cost, and the verdicts"
        if next_moves(self.at)[0] == move:
            why = self._over()
        return self._study("report"), why

    def _done(self, move: Move) -> tuple[Command, str]:
        return self._study("verify"), f"{self._over()}; the report is written"

    def _take_over(self, move: Move) -> tuple[Command, str]:
        assert self.at.facts.take_over is not None
        return self.at.facts.take_over, "this applies the confirmed change to your files; a person does it"

    def _over(self) -> str:
        """Return why a study is over."""
        at = self.at
        if at.deadline:
            return f"no job starts after {at.deadline}"
        if at.stop_rule:
            return f"stop rule: {at.stop_rule.text}"
        for refusal in blocking_refusals(at):
            return refusal.message
        if at.may_claim:
            lacking = sum(at.claim_lacks(side, at.state.head) for side in (BASELINE, at.state.head))
            if not lacking:
                return f"no confirmation seed of {at.state.head} completed, so it cannot be claimed"
            return f"too few seeds for the claim of {at.state.head}: {at.seeds_left} left, {lacking} needed"
        if not at.can_search:
            return f"the contract's claims are made, {self._claimed()}"
        if at.candidates_left <= 0:
            return "the contract's candidates are tried"
        return (
            f"too few seeds: {at.seeds_left} left, {at.claim_seeds} kept for the claim, "
            f"and {RULE.first + RULE.head} needed for a trial and a new head"
        )

    def _claimed(self) -> str:
        """Return what became of the claims."""
        names = {"confirmed": [], "reverted": []}  # type: dict[str, list[str]]
        for standing in self.at.state.candidates.values():
            names.setdefault(standing.state, []).append(standing.id)
        if names["confirmed"]:
            return f"{', '.join(names['confirmed'])} confirmed"
        if names["reverted"]:
            return f"none stands ({', '.join(names['reverted'])} reverted)"
        return "none was confirmed"
