"""Try one idea in one call: propose, check, launch, wait and decide, as far as the time allows.

The steps are those of the rulebook, in its order, by the functions of the single commands. If the time is up, the same
call goes on from there: the ledger knows how far the candidate is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.command import rlx
from rlx.config.yaml_lines import Document
from rlx.errors import Refused
from rlx.launch import launch as plain
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.launch_candidate import LaunchOrder
from rlx.loop.study import decide, measure_scores
from rlx.loop.study.agent.answer_size import TEXT_LENGTHS, does_fit, with_short_texts
from rlx.loop.study.agent.history import change_text, mean_score, rounded
from rlx.loop.study.agent.ideas import best_idea
from rlx.loop.study.agent.short_command import short_command
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.propose import propose, withdraw
from rlx.loop.study.step_commands import Step, next_steps, situation_of
from rlx.runs.run import Run
from rlx.study.candidate.candidate import BASELINE, Candidate
from rlx.study.ledger.state import State
from rlx.study.moves import Move
from rlx.study.refusal import Refusal
from rlx.study.situation import UNDECIDED, Situation, pool_size
from rlx.study.study_folder import Study
from rlx.study.verdict_words import verdict_words

SECONDS = 600.0
"""How long one call waits if nobody says otherwise."""
ROOM_CODES = frozenset({"PARALLEL", "CORES", "GPUS", "MEMORY"})
"""The refusals of a launch that pass when another job ends."""
OWN_MOVES = ("check", "launch", "decide")
"""The moves that bring one candidate to its decision."""
OWN_FIELDS = ("kind", "hypothesis", "predicts", "changes", "records")


@dataclass
class CandidateTrial:
    """One candidate on its way to a decision, until a deadline on the monotonic clock."""

    study: Study
    candidate: str
    say: Say
    deadline: float
    follow: Callable[..., object] = plain.wait
    is_claim: bool = False
    """Whether the candidate is the head, and is claimed against the original baseline on fresh seeds."""

    def go(self) -> Situation:
        """Take the steps that lead to this candidate's decision; return the situation of the study after them."""
        while True:
            at = situation_of(self.study)
            if self._is_decided(at):
                return at
            move = self._next_move(next_steps(self.study, at))
            if move is None or self._seconds_left <= 0:
                return at
            try:
                self._act(move)
            except Refused:
                if _steps_taken(self.study.state()) == _steps_taken(at.state):
                    self._give_up(move)
                    raise
                # another process took a step meanwhile: look again

    def _is_decided(self, at: Situation) -> bool:
        if self.is_claim:
            return at.state.is_claim_decided(self.candidate)
        return at.state.candidates[self.candidate].state not in UNDECIDED

    @property
    def _seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def _next_move(self, steps: Sequence[Step]) -> Move | None:
        """Return what brings this candidate further: its own step, the head's fresh seeds, or to wait."""
        moves = [step.move for step in steps]
        for move in moves:
            if self._is_useful(move):
                return move
        waits = [move for move in moves if move.kind == "wait"]
        own_first = sorted(waits, key=lambda move: move.candidate != self.candidate)
        return own_first[0] if own_first else None

    def _is_useful(self, move: Move) -> bool:
        """Say whether a move leads to the decision: a claim takes its own moves, a candidate never takes those."""
        is_of_claim = move.kind in ("launch", "decide") and move.phase == "confirmation"
        if self.is_claim or is_of_claim:
            return self.is_claim and is_of_claim
        if move.candidate == self.candidate and move.kind in OWN_MOVES:
            return True
        # what the candidate is measured against: the baseline's pool, or the head's fresh seeds
        return move.kind == "baseline" or (move.phase == "promotion" and move.kind in ("launch", "verdict"))

    def _act(self, move: Move) -> None:
        if move.kind == "wait":
            self.follow(Run(self.study.root / "runs" / move.run), timeout_seconds=max(0.0, self._seconds_left))
        elif move.kind == "check":
            launch_candidate.check(self.study, move.candidate)
        elif move.kind == "launch":
            self._launch(LaunchOrder(move.candidate, move.phase, plan=move.plan))
        elif move.kind == "baseline":
            self._fill_pool()
        elif move.kind == "verdict":
            measure_scores.measure(self.study, [move.candidate], "promotion", say=self.say)
        else:
            decide.decide(self.study, move.candidate, say=self.say)

    def _give_up(self, move: Move) -> None:
        """Withdraw a candidate of config keys whose check was refused: no edit can fix it."""
        if move.kind == "check" and not self.study.candidate(move.candidate).is_code:
            withdraw(self.study, move.candidate, why="its check was refused")

    def _launch(self, order: LaunchOrder) -> None:
        try:
            launched = launch_candidate.launch(self.study, order)
        except Refused as error:
            self._wait_for_room(error)
            return
        self.say(f"{launched.run}: {len(launched.seeds)} seeds of {order.candidate} ({order.phase})")

    def _wait_for_room(self, error: Refused) -> None:
        """Wait for another candidate's job if only the room on this machine is missing; else the refusal stands."""
        jobs = self.study.state().open_jobs
        if not jobs or not {str(reason["code"]) for reason in error.reasons} <= ROOM_CODES:
            raise error
        self.say(f"{jobs[0].run} has the room; {self.candidate} waits")
        self.follow(Run(self.study.root / "runs" / str(jobs[0].run)), timeout_seconds=max(0.0, self._seconds_left))

    def _fill_pool(self) -> None:
        """Train or measure the baseline's pool."""
        state = self.study.state()
        if state.lacks(BASELINE, "baseline", pool_size(self.study.contract())):
            self._launch(LaunchOrder(BASELINE, "baseline"))
        else:
            measure_scores.measure(self.study, [BASELINE], "baseline", say=self.say)


def _steps_taken(state: State) -> int:
    """Return how many rows the ledger has, without refusals."""
    return state.rows - state.refusals


def try_proposal(
    study: Study,
    proposal: Document | Mapping[str, Any],
    *,
    seconds: float = SECONDS,
    say: Say,
    patch: Path | None = None,
    follow: Callable[..., object] = plain.wait,
) -> dict[str, Any]:
    """Propose a candidate, or find the one that this proposal made before, and try it."""
    candidate, proposed = _find_or_propose(study, proposal, patch=patch)
    notes = proposed.get("notes", ())
    if proposed.get("worktree") and patch is None:
        return _answer(study, candidate, situation_of(study), notes=notes, is_to_edit=True)
    return try_candidate(study, candidate, seconds=seconds, say=say, notes=notes, follow=follow)


def _find_or_propose(
    study: Study, proposal: Document | Mapping[str, Any], *, patch: Path | None
) -> tuple[str, Mapping[str, Any]]:
    """Return the candidate of a proposal, and the answer of `propose` if the candidate is new, else an empty one."""
    if patch is not None:
        proposed = propose(study, proposal, patch=patch)
        return str(proposed["candidate"]), proposed
    data = proposal.data if isinstance(proposal, Document) else proposal
    known = _same_candidate(study, data)
    if known is not None:
        return known, {}
    try:
        proposed = propose(study, proposal)
    except Refused:
        known = _same_candidate(study, data)  # another process may have proposed the same meanwhile
        if known is None:
            raise
        return known, {}
    return str(proposed["candidate"]), proposed


def try_candidate(
    study: Study,
    identity: str,
    *,
    seconds: float = SECONDS,
    say: Say,
    notes: Sequence[str] = (),
    follow: Callable[..., object] = plain.wait,
) -> dict[str, Any]:
    """Bring a candidate as far as the time allows; return what was measured and decided, and what is next."""
    study.candidate(identity)  # raises an error that names the known ones
    at = CandidateTrial(study, identity, say, time.monotonic() + seconds, follow).go()
    return _answer(study, identity, at, notes=notes)


def try_claim(
    study: Study, *, seconds: float = SECONDS, say: Say, follow: Callable[..., object] = plain.wait
) -> dict[str, Any]:
    """Claim the head against the original baseline on fresh seeds, as far as the time allows."""
    before = situation_of(study)
    head = before.state.head
    if not before.may_claim and not before.state.is_claim_decided(head):
        message = f"{head} cannot be claimed now"
        if head == BASELINE:
            message = "there is nothing to claim: no candidate has won a race yet"
        refusal = Refusal("CLAIMS", message, rlx("next"))
        raise launch_candidate.refused_error("nothing is claimed", [refusal])
    at = CandidateTrial(study, head, say, time.monotonic() + seconds, follow, is_claim=True).go()
    return _answer(study, head, at, is_claim=True)


def _same_candidate(study: Study, data: Mapping[str, Any]) -> str | None:
    """Return the candidate that this very proposal made, if it is undecided or was tried on the head as it is."""
    state = study.state()
    own = {name: data.get(name) for name in OWN_FIELDS if data.get(name)}
    for standing in reversed(list(state.candidates.values())):
        candidate = study.candidate(standing.id)
        if _own_fields(candidate) != own or standing.state == "withdrawn":
            continue
        if standing.state in UNDECIDED or standing.id == state.head or candidate.builds_on == state.head:
            return standing.id
    return None


def _own_fields(candidate: Candidate) -> dict[str, Any]:
    document = candidate.model_dump(mode="json", exclude_none=True, include=set(OWN_FIELDS))
    return {name: value for name, value in document.items() if value}


def _answer(
    study: Study, identity: str, at: Situation, *, notes: Sequence[str] = (), is_to_edit: bool = False,
    is_claim: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the answer of one try: at most 1 kB as JSON."""
    state = at.state
    standing = state.candidates[identity]
    candidate = study.candidate(identity)
    steps = next_steps(study, at)
    step = steps[0]
    is_open = standing.state in UNDECIDED
    if is_claim:
        is_open = not state.is_claim_decided(identity)
    elif is_open:
        step = next((step for step in steps if step.move.candidate == identity), steps[0])
    is_running = is_open and bool(state.open_jobs)
    why = step.why
    measured: dict[str, Any] = {}
    if standing.decisions:
        last = standing.decisions[-1]
        why = verdict_words(str(last["decision"]), last.fields)
        measured = _measured(at, identity, str(last.get("against", BASELINE)), last.get("effect"), last.get("n"))
        notes = (*notes, *map(str, last.get("notes") or ()))
    elif standing.state == "debug":
        why = f"it failed: {state.jobs_of(identity, 'trial')[-1].summary}"
    worktree = ""
    if is_to_edit:
        worktree = study.worktree(identity).relative_to(study.root).as_posix()
        why = f"edit the code in {worktree}, then try it"
    goes_on = is_open and step.move.candidate == identity and step.move.kind in OWN_MOVES
    command = step.command
    if is_running or is_to_edit or goes_on:
        command = rlx("try", identity, *study.option_words)
        if is_claim:
            command = rlx("try", "--claim", *study.option_words)
    elif not is_open:
        command = short_command(step, study.option_words, idea=best_idea(study, at, step), racers=at.racers)
    whole = {
        "study": study.name,
        "candidate": identity,
        "change": change_text(candidate),
        "builds_on": candidate.builds_on,
        "decision": standing.state,
        "is_running": is_running,
        "measured": measured,
        "why": _one_line(why),
        "notes": [_one_line(note) for note in notes][:2],
        "left": {"seeds": at.seeds_left, "candidates": at.candidates_left},
        "head": state.head,
        "worktree": worktree,
        "command": str(command),
    }
    return short_answer(whole)


def short_answer(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer with its texts shortened until it fits; notes are left out last."""
    for most in TEXT_LENGTHS:
        answer = with_short_texts(whole, most)
        if does_fit(answer):
            return answer
    return {**answer, "notes": []}


def _measured(at: Situation, identity: str, against: str, effect: Any, sizes: Any) -> dict[str, Any]:
    metric = at.contract.metric.name if at.contract.metric else ""
    scores = {name: rounded(mean_score(at.state, name)) for name in (against, identity)}
    return {"metric": metric, "scores": scores, "effect": rounded(effect), "seeds": list(reversed(sizes or ()))}


def _one_line(text: str) -> str:
    return " ".join(text.split())
