"""The verdict on a candidate, and the decision that the contract's rule makes of it: never the caller's.

A candidate races the head on the search's episodes. The head is claimed against the original baseline, both on fresh
training seeds and on episodes drawn after both sides' weights were in the ledger; only that moves the incumbent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.compare.guardrails import Better, Guard, Guardrail
from rlx.compare.race import LEAST_SEEDS, Complexity, Confirmation, Race, confirm, race
from rlx.config.expression import Expression
from rlx.errors import Refused
from rlx.evaluate.tally import RATES
from rlx.figures import counted
from rlx.launch.examined import changed_lines
from rlx.launch.reconcile import reconcile
from rlx.loop import notes, proceed, scores, warrant
from rlx.loop.enclosed import enclosed
from rlx.loop.objections import objections
from rlx.loop.scores import Measured, Say
from rlx.study import stops
from rlx.study.candidate import BASELINE
from rlx.study.contract import Contract
from rlx.study.ledger import Event
from rlx.study.lifecycle import CandidateState, Phase
from rlx.study.state import State, replay
from rlx.study.study import NULL, Study

DEBUG_LIMIT = 3
"""So many candidates in a row that did not run call for a person."""
NARROW_LIMIT = 5
"""So many rejected in a row say that the scope is searched in the wrong place."""
VERDICTS = {
    "advance": "better", "drop": "not better", "more": "undecided", "invalid": "invalid",
    "confirmed": "better", "not shown": "inconclusive", "harmful": "worse", "provisional": "provisional",
}  # fmt: skip
DECISIONS: dict[str, CandidateState] = {
    "advance": "advanced", "drop": "rejected", "more": "inconclusive",
    "confirmed": "confirmed", "not shown": "inconclusive", "harmful": "rejected", "provisional": "inconclusive",
}  # fmt: skip


Sides = tuple[Sequence[Measured], Sequence[Measured]]


@dataclass(frozen=True)
class Judged:
    """A candidate's evidence and what the rule says of it."""

    candidate: str
    against: str
    result: Race | Confirmation
    sides: Sides
    complexity: Complexity
    guardrails: Mapping[str, Guardrail]
    seconds: tuple[float | None, float | None]
    """How long a seed of each side took, on average."""
    notes: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """What the rule says: what would take the head's place and harms a guarded figure does not, as in a claim."""
        if self.objections:
            return "invalid"
        if isinstance(self.result, Confirmation):
            return "provisional" if self._is_only_reported else self.result.answer
        return "harmful" if self.result.step == "advance" and self._harmed else self.result.step

    @property
    def verdict(self) -> str:
        """The answer in a word: what harms a guarded figure need not be worse."""
        return "harmful" if self.answer == "harmful" and self._harmed else VERDICTS[self.answer]

    @property
    def reason(self) -> str:
        if self._is_only_reported:
            return f"{self.result.reason}, but by the trainings' own word (reported), which moves no incumbent"
        is_stopped = isinstance(self.result, Race) and self.answer == "harmful"
        return f"{self.result.reason}, but it harms {', '.join(self._harmed)}" if is_stopped else self.result.reason

    @property
    def _is_only_reported(self) -> bool:
        is_shown = isinstance(self.result, Confirmation) and self.result.answer == "confirmed"
        return is_shown and self.level == "reported"

    @property
    def _harmed(self) -> list[str]:
        return [f"{name} ({one.reason})" for name, one in self.guardrails.items() if one.answer == "harm"]

    @property
    def level(self) -> str:
        """The weakest level among the scores."""
        levels = {one.level for side in self.sides for one in side if one.level}
        return next((level for level in ("reported", "pinned", "sealed") if level in levels), "none")


def verdict(study: Study, identity: str, *, say: Say) -> dict[str, Any]:
    """Measure what is not measured, and return where a candidate stands."""
    return _document(study, _judged(study, identity, say=say))


def decide(study: Study, identity: str, *, say: Say) -> dict[str, Any]:
    """Let the rule decide about a candidate, and write it into the ledger; asking again changes nothing."""
    judged = _judged(study, identity, say=say)
    if isinstance(judged.result, Race) and judged.result.need_head:
        raise Refused(judged.result.reason, hint="rlx next")
    recorded, decision, about_study = _record(study, judged)
    return {
        **_document(study, judged),
        "decision": decision,
        "study_decision": about_study,
        "stop_rule": stops.holding(study.state(), study.contract()),
        "recorded": recorded,
        "command": proceed.next_step(study).command,
    }


def _judged(study: Study, identity: str, *, say: Say) -> Judged:
    reconcile(study)
    state = study.state()
    standing = state.candidates.get(identity)
    if standing is None:
        study.candidate(identity)  # says which there are
        raise Refused(f"{identity} is measured, not judged", hint="rlx next")
    warrant.require(study, "judge", identity)
    if standing.state in ("advanced", "confirmed") and _is_claim_ready(study, state, identity):
        return _claimed(study, identity, say=say)
    if state.head == identity:
        scores.measure(study, [identity], "promotion", say=say)
    if not scores.ended(state, identity, "trial"):
        raise Refused(f"{identity} has trained nothing yet ({standing.state})", hint="rlx next")
    return _raced(study, identity, say=say)


def _is_claim_ready(study: Study, state: State, identity: str) -> bool:
    """Say whether a claim's episodes may be drawn, which ends its training: both sides have all the seeds they can."""
    if state.claim_of(identity) is not None:
        return True
    if any(job.phase == "confirmation" for job in state.open_jobs):
        return False
    sides, metric = (BASELINE, identity), study.contract().metric
    missing = sum(state.claim_lacks(side, identity, metric.seeds if metric else 0) for side in sides)
    is_begun = all(state.claim_size(side, identity) for side in sides)
    return is_begun and (not missing or missing > proceed.left_of(state, study.contract()).seeds)


def _raced(study: Study, identity: str, *, say: Say) -> Judged:
    head = head_for(study.state(), identity)
    phase = _head_phase(head)
    cut = study.state().cut_off(head, phase)
    if cut:
        raise Refused(f"{counted(len(cut), 'seed')} of {head} cut off: to be trained again first", hint="rlx next")
    scores.measure(study, [head], phase, say=say)
    state = scores.measure(study, [identity], "trial", say=say)
    sides = scores.measured(state, head, phase), scores.measured(state, identity, "trial")
    complexity = _complexity(study, state, head), _complexity(study, state, identity)
    result = _race(study.contract(), sides, complexity)
    is_scoreless = all(one.score is None for one in sides[1])
    phases: dict[str, Phase] = {head: phase, identity: "trial"}
    found, differ = objections(study, phases), enclosed(study, phases)
    told = scores.failures(state, identity, "trial") if is_scoreless else []
    guards, seconds = _race_guards(study, state, result, sides[1]), _seconds(state, (head, phase), (identity, "trial"))
    said = (*filter(None, [notes.beside(study, identity, head)]), *notes.longer(*seconds, against=head))
    said += (*notes.begun_anew(state, identity, "trial"), *differ.notes)
    against = (*found, *differ.objections, *told)
    return Judged(identity, head, result, sides, complexity[1], guards, seconds, said, against)


def _seconds(state: State, *sides: tuple[str, Phase]) -> tuple[float | None, float | None]:
    ours, theirs = (notes.seconds_a_seed(state, name, phase) for name, phase in sides)
    return ours, theirs


def _race_guards(study: Study, state: State, result: Race, theirs: Sequence[Measured]) -> dict[str, Guardrail]:
    """Test what is guarded on a race's seeds against the original baseline's: that is what a claim will test."""
    pool = scores.measured(state, BASELINE, "baseline")
    return _guardrails(study, study.contract(), (pool, theirs), result.n) if result.n[1] else {}


def _head_phase(head: str) -> Phase:
    """Return the seeds that stand for a head: the pool, or those trained after it had moved."""
    return "baseline" if head == BASELINE else "promotion"


def _race(contract: Contract, sides: Sides, complexity: tuple[Complexity, Complexity]) -> Race:
    metric = contract.metric
    assert metric is not None
    return race(
        *([one.score for one in side] for side in sides),
        better=_better(contract), min_effect=metric.min_effect, complexity=complexity, floor=worst_of(contract),
    )  # fmt: skip


def _better(contract: Contract) -> Better:
    return "lower" if contract.metric and contract.metric.direction == "minimize" else "higher"


def worst_of(contract: Contract) -> float | None:
    """Return the worst that the contract's metric can be, where rlx measures it and it has an end."""
    is_ours = contract.evaluation is not None and contract.evaluation.level == "sealed"
    if not is_ours or contract.metric is None or contract.metric.name not in RATES:
        return None
    return 0.0 if _better(contract) == "higher" else 1.0


def head_for(state: State, identity: str) -> str:
    """Return what a candidate is raced against: the head, or the one before where it has become the head itself."""
    history = [one for one in state.head_history if one != identity]
    return state.head if state.head != identity else history[-1] if history else BASELINE


def _claimed(study: Study, identity: str, *, say: Say) -> Judged:
    state = scores.measure(study, [BASELINE, identity], "confirmation", say=say)
    sides = claim_sides(state, identity)
    result = _confirmation(study, sides)
    phases: dict[str, Phase] = {BASELINE: "confirmation", identity: "confirmation"}
    differ = enclosed(study, phases)
    found = (*objections(study, phases), *differ.objections)
    complexity = _complexity(study, state, identity)
    seconds = _seconds(state, (BASELINE, "confirmation"), (identity, "confirmation"))
    anew = [says for side in (BASELINE, identity) for says in notes.begun_anew(state, side, "confirmation")]
    said = (*notes.longer(*seconds, against=BASELINE), *anew, *notes.elsewhere(study), *differ.notes)
    return Judged(identity, BASELINE, result, sides, complexity, result.guardrails, seconds, said, found)


def claim_sides(state: State, identity: str) -> Sides:
    """Return both sides on the seeds that this claim is about: the baseline of an earlier one is another pool.

    They count in their own order, whenever trained, and up to one that was cut off and not trained again.
    """
    return _claim_side(state, BASELINE, identity), _claim_side(state, identity, identity)


def _claim_side(state: State, side: str, identity: str) -> list[Measured]:
    seeds = state.claim_seeds(side, identity)
    end = min(state.cut_off(side, "confirmation"), default=math.inf)
    return [one for one in scores.measured(state, side, "confirmation") if one.seed in seeds and one.seed < end]


def _confirmation(study: Study, sides: Sides) -> Confirmation:
    contract = study.contract()
    metric = contract.metric
    assert metric is not None
    most = max(metric.seeds, LEAST_SEEDS)
    return confirm(
        *([one.score for one in side] for side in sides),
        better=_better(contract), alpha=metric.alpha, claims=metric.claims, min_effect=metric.min_effect,
        seeds=metric.seeds, guardrails=_guardrails(study, contract, sides, (most, most)), floor=worst_of(contract),
    )  # fmt: skip


def judged_again(study: Study, event: Event) -> tuple[Race | Confirmation, Mapping[str, Guardrail]]:
    """Judge a decision once more, from what the ledger has now: the same figures and guards, if all is sound."""
    state, identity, against = study.state(), str(event["candidate"]), str(event["against"])
    if event["test"] == "claim":
        claim = _confirmation(study, claim_sides(state, identity))
        return claim, claim.guardrails
    ours = scores.measured(state, against, _head_phase(against))
    theirs = scores.measured(state, identity, "trial")[: event["n"][1]]
    complexity = _complexity(study, state, against), _complexity(study, state, identity)
    result = _race(study.contract(), (ours, theirs), complexity)
    return result, _race_guards(study, state, result, theirs)


def _guardrails(study: Study, contract: Contract, sides: Sides, sizes: tuple[int, int]) -> dict[str, Guardrail]:
    """Test every guarded expression, one value a seed, on the seeds that are compared: so many of each side at most."""
    ours, theirs = [one for one in sides[0] if one.score is not None][: sizes[0]], sides[1][: sizes[1]]
    found = {}
    for guard in contract.guardrails:
        expression = Expression(guard.expression)
        values = [[_value(study, expression, one) for one in side] for side in (ours, theirs)]
        test = Guard(guard.expression, guard.margin, must_be_shown=guard.mode == "safety")
        found[guard.expression] = test.test(values[0], values[1])
    return found


def _value(study: Study, expression: Expression, one: Measured) -> float:
    """Work out a guarded expression; NaN for a seed that failed, or that has no such figure."""
    known = scores.figures(study, one)
    return expression.value(known) if known and expression.names <= known.keys() else math.nan


def _complexity(study: Study, state: State, identity: str) -> Complexity:
    """Return what a candidate adds to the baseline, changed lines and keys as one line each, and its parameters."""
    keys = {key for one in study.chain(identity) for key in one.changes} if identity not in NULL else set()
    lines = changed_lines(study.patch(identity) or b"") + len(keys)
    return Complexity(lines, state.parameters(identity))


def _record(study: Study, judged: Judged) -> tuple[str, str, str]:
    """Write the decision, once; return the event's id, the decision and what it means for the study."""
    with study.ledger.held() as held:
        state = replay(held.events)
        standing = state.candidates[judged.candidate]
        decision: CandidateState = "debug" if judged.answer == "invalid" else DECISIONS[judged.answer]
        if standing.state == decision or standing.state not in ("completed", "advanced"):
            return "", standing.state, "continue"
        if isinstance(judged.result, Race) and standing.state == "advanced":
            return "", "advanced", "continue"
        if isinstance(judged.result, Confirmation) and is_claimed(state, judged.candidate):
            return "", str(standing.decisions[-1]["decision"]), "continue"
        if judged.answer == "invalid":
            reasons = [{"code": "EVIDENCE", "says": one} for one in judged.objections or (judged.reason,)]
            held.append("refused", action="decide", candidate=judged.candidate, reasons=reasons)
            decision = "debug" if standing.state == "completed" else "rejected"
        about_study = study_decision(state, decision)
        result = judged.result
        event = held.append(
            "decided", candidate=judged.candidate, decision=decision, p=result.p, effect=result.effect,
            interval=[result.interval.low, result.interval.high], coverage=result.interval.level, n=list(result.n),
            provisional=judged.answer == "provisional", against=judged.against, level=judged.level,
            study=about_study, says="; ".join(judged.objections) or judged.reason,
            guardrails={name: one.document() for name, one in judged.guardrails.items()},
            seconds=list(judged.seconds), notes=list(judged.notes),
            test="race" if isinstance(result, Race) else "claim",
            lines=judged.complexity.lines, parameters=judged.complexity.parameters,
        )  # fmt: skip
        return event.id, decision, about_study


def is_claimed(state: State, identity: str) -> bool:
    """Say whether a claim of this candidate was decided, whichever way: there is no second one."""
    return any(one["candidate"] == identity and one.get("test") == "claim" for one in state.decisions)


def study_decision(state: State, decision: CandidateState) -> str:
    """Return what a decision means for the study: continue, stop, rollback, narrow or escalate."""
    if decision == "debug" and state.debug_in_a_row + 1 >= DEBUG_LIMIT:
        return "escalate"
    if decision == "rejected" and state.head != BASELINE and state.candidates[state.head].state == "advanced":
        is_head = state.decisions and state.decisions[-1].get("candidate") == state.head
        return "rollback" if is_head and decision == "rejected" else "continue"
    if decision == "rejected" and state.rejected_in_a_row + 1 >= NARROW_LIMIT:
        return "narrow"
    return "continue"


def _document(study: Study, judged: Judged) -> dict[str, Any]:
    state, contract = study.state(), study.contract()
    assert contract.metric is not None
    told = judged.result.document()
    return {
        "candidate": judged.candidate,
        "against": judged.against,
        "test": "race" if isinstance(judged.result, Race) else "claim on fresh seeds",
        "verdict": judged.verdict,
        "answer": judged.answer,
        "metric": contract.metric.name,
        "effect": told["effect"],
        "interval": told["interval"],
        "p": told["p"],
        "n": told["n"],
        "crashed": told["crashed"],
        "replaced": told["replaced"],
        "reason": judged.reason,
        "guardrails": {name: one.document() for name, one in judged.guardrails.items()},
        "objections": list(judged.objections),
        "notes": list(judged.notes),
        "seconds_a_seed": list(judged.seconds),
        "complexity": {"lines": judged.complexity.lines, "parameters": judged.complexity.parameters},
        "level": judged.level,
        "approval": proceed.approval_words(state),
        "enforced": _enforced(study, judged.sides),
        "command": proceed.next_step(study).command,
    }


def _enforced(study: Study, sides: Sequence[Sequence[Measured]]) -> str:
    """Say what was in force while the scores were made, from their own documents."""
    said = []
    for one in (one for side in sides for one in side if one.file):
        document = scores.document_of(study, one)
        said.append(str((document.get("enforced") or {}).get("mechanism", "none")))
    return ", ".join(sorted(set(said))) or "nothing"
