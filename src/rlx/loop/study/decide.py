"""The verdict on a candidate, and the decision that the contract's rule makes; the caller never decides.

A candidate races the head on the search's episodes. The head is claimed against the original baseline, both on fresh
training seeds and on episodes that are drawn after the weights of both sides are in the ledger. Only a claim moves the
incumbent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlx.compare.guardrails import GuardrailResult
from rlx.compare.race import Complexity, Confirmation, Race
from rlx.errors import EvidenceInvalid
from rlx.launch.study_jobs import launch_candidate, outside_runs
from rlx.launch.study_jobs.reconcile import reconcile
from rlx.launch.study_jobs.training_checks import first_results
from rlx.loop.study import measure_scores, verdict_notes
from rlx.loop.study.evidence_checks import (
    compare_settings,
    evidence_situation,
    objections,
    require_measurable,
    training_sides,
)
from rlx.loop.study.judge_scores import (
    Sides,
    claim_sides,
    complexity_of,
    judge_claim,
    judge_race,
    race_guardrails,
    race_sides,
)
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.step_commands import next_step
from rlx.loop.study.study_status import approval_words
from rlx.loop.study.verify import integrity
from rlx.loop.study.write_report import promise
from rlx.study.candidate.candidate import BASELINE
from rlx.study.ledger.lifecycle import CandidateState, Phase
from rlx.study.ledger.state import State, replay
from rlx.study.moves import Move, judge
from rlx.study.situation import Situation, head_phase, race_opponent
from rlx.study.stop_rules import holding_rule
from rlx.study.study_folder import Study
from rlx.study.verdict_words import verdict_words

DEBUG_LIMIT = 3
"""After so many candidates in a row that did not run, a person must look."""
NARROW_LIMIT = 5
"""After so many rejected candidates in a row, the scope is probably the wrong one."""
MOST_REASONS = 20
MOST_SAID = 500
VERDICTS = {
    "advance": "better", "drop": "not better", "more": "undecided", "invalid": "invalid",
    "confirmed": "better", "not shown": "inconclusive", "harmful": "worse", "provisional": "provisional",
}  # fmt: skip
DECISIONS: dict[str, CandidateState] = {
    "advance": "advanced", "drop": "rejected", "more": "inconclusive", "invalid": "debug",
    "confirmed": "confirmed", "not shown": "inconclusive", "harmful": "rejected", "provisional": "inconclusive",
}  # fmt: skip


@dataclass(frozen=True)
class Judgement:
    """A candidate's evidence and the rule's answer."""

    candidate: str
    against: str
    result: Race | Confirmation
    sides: Sides
    complexity: Complexity
    guardrails: Mapping[str, GuardrailResult]
    seconds: tuple[float | None, float | None]
    """How long a seed of each side took, on average."""
    notes: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The rule's answer. A candidate that would become head but harms a guardrail is `harmful`, as in a claim."""
        if self.objections:
            return "invalid"
        if self._is_only_reported:
            return "provisional"
        if isinstance(self.result, Confirmation):
            return self.result.answer
        if self.result.step == "advance" and self._harmed:
            return "harmful"
        return self.result.step

    @property
    def verdict(self) -> str:
        """The answer in one word. A candidate that harms a guardrail may have a better metric."""
        return "harmful" if self.answer == "harmful" and self._harmed else VERDICTS[self.answer]

    @property
    def reason(self) -> str:
        """Why the rule answers so."""
        if self._is_only_reported:
            return f"{self.result.reason}, but the trainings reported it themselves, which moves no incumbent"
        if isinstance(self.result, Race) and self.answer == "harmful":
            return f"{self.result.reason}, but it harms {', '.join(self._harmed)}"
        return self.result.reason

    @property
    def _is_only_reported(self) -> bool:
        is_confirmed = isinstance(self.result, Confirmation) and self.result.answer == "confirmed"
        return is_confirmed and self.level == "reported"

    @property
    def _harmed(self) -> list[str]:
        return [f"{name} ({guard.reason})" for name, guard in self.guardrails.items() if guard.answer == "harm"]

    @property
    def level(self) -> str:
        """The weakest level among the scores."""
        levels = {seed.level for side in self.sides for seed in side if seed.level}
        return next((level for level in ("reported", "pinned", "sealed") if level in levels), "none")

    @property
    def compared(self) -> Sides:
        """The seeds of both sides that the result is computed from: a crashed one counts for the candidate only."""
        baseline = [seed for seed in self.sides[0] if seed.score is not None]
        return baseline[: self.result.n[0]], self.sides[1][: self.result.n[1]]

    @property
    def means(self) -> list[float | None]:
        """The means behind the effect. The candidate's has a value for every crashed seed, as the effect has."""
        scores = [seed.score for seed in self.compared[0] if seed.score is not None]
        if not scores or not math.isfinite(self.result.effect):
            return [None, None]
        mean = sum(scores) / len(scores)
        return [mean, mean + self.result.effect]

    def figures(self) -> dict[str, Any]:
        """Return what both the ledger's row and the verdict say about means, guardrails, notes and level."""
        return {
            "means": self.means,
            "seeds": [[seed.seed for seed in side] for side in self.compared],
            "guardrails": {name: guard.document() for name, guard in self.guardrails.items()},
            "notes": list(self.notes),
            "level": self.level,
            "against": self.against,
            "candidate": self.candidate,
        }


def verdict(study: Study, candidate: str, *, say: Say) -> dict[str, Any]:
    """Measure what is not measured yet, and return where a candidate stands."""
    return _document(study, _judge(study, Move("verdict", candidate), say=say))


def decide(study: Study, candidate: str, *, say: Say) -> dict[str, Any]:
    """Let the rule decide about a candidate, and write it into the ledger. To ask again changes nothing."""
    judgement = _judge(study, Move("decide", candidate), say=say)
    _require_intact(study, judgement)
    recorded, decision, about_study = _record(study, judgement)
    rule = holding_rule(study.state(), study.contract())
    return {
        **_document(study, judgement),
        "decision": decision,
        "study_decision": about_study,
        "stop_rule": rule.text if rule else "",
        "recorded": recorded,
    }


def _require_intact(study: Study, judgement: Judgement) -> None:
    """Refuse to decide on scores, weights or proposals that were changed after rlx recorded them: one refusal row."""
    problems = integrity(study, {judgement.candidate, judgement.against})
    if problems:
        reasons = [{"code": "EVIDENCE", "says": problem[:MOST_SAID]} for problem in problems[:MOST_REASONS]]
        study.ledger.append("refused", action="decide", candidate=judgement.candidate, reasons=reasons)
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        message = f"{judgement.candidate} is not decided: {problems[0]}{more}"
        raise EvidenceInvalid(message, hint=f"restore the files, then: rlx study verify {study.name}")


def _judge(study: Study, move: Move, *, say: Say) -> Judgement:
    reconcile(study)
    name = move.candidate
    if name not in study.state().candidates:
        study.candidate(name)  # raises an error that names the known ones
    at = require_measurable(study, "judge", name)
    _require_allowed(at, move)
    if at.state.candidates[name].state in ("advanced", "confirmed") and at.is_claim_ready(name):
        return _judge_claim(study, name, say=say)
    opponent = race_opponent(at.state, name)
    if at.state.head == name:
        measure_scores.measure(study, [name], "promotion", say=say)
    measure_scores.measure(study, [opponent], head_phase(opponent), say=say)
    state = measure_scores.measure(study, [name], "trial", say=say)
    _require_allowed(evidence_situation(study, state, name), move)  # a score that is NaN leaves the head with too few
    return _judge_race(study, state, name, opponent)


def _require_allowed(at: Situation, move: Move) -> None:
    refusals = judge(at, move)
    if refusals:
        raise launch_candidate.refused_error(f"{move.candidate} is refused", refusals)


def _judge_race(study: Study, state: State, name: str, opponent: str) -> Judgement:
    phases: dict[str, Phase] = {opponent: head_phase(opponent), name: "trial"}
    sides = race_sides(state, phases)
    result = judge_race(study, state, sides, (opponent, name))
    settings, seconds = compare_settings(study, phases), _seconds(state, phases)
    against = [*objections(study, phases), *settings.objections]
    if all(seed.score is None for seed in sides[1]):
        against += measure_scores.failures(state, name, "trial")
    notes = [
        verdict_notes.other_base(study, name, opponent), *verdict_notes.longer(*seconds, against=opponent),
        *verdict_notes.retrained(state, name, "trial"), *settings.notes,
    ]  # fmt: skip
    guards, complexity = race_guardrails(study, state, result, sides[1]), complexity_of(study, state, name)
    return Judgement(
        name, opponent, result, sides, complexity, guards, seconds, tuple(filter(None, notes)), tuple(against)
    )


def _judge_claim(study: Study, name: str, *, say: Say) -> Judgement:
    state = measure_scores.measure(study, [BASELINE, name], "confirmation", say=say)
    sides = claim_sides(state, name)
    result = judge_claim(study, sides)
    phases: dict[str, Phase] = {BASELINE: "confirmation", name: "confirmation"}
    settings, seconds = compare_settings(study, phases), _seconds(state, phases)
    retrained = [note for side in phases for note in verdict_notes.retrained(state, side, "confirmation")]
    notes = (
        *verdict_notes.longer(*seconds, against=BASELINE), *retrained, *verdict_notes.other_claims(study),
        *outside_runs.notes(study), *verdict_notes.unobserved(study, state, name), *settings.notes,
        *first_results(study, *training_sides(study, phases)),
    )  # fmt: skip
    against = (*objections(study, phases), *settings.objections)
    complexity = complexity_of(study, state, name)
    return Judgement(name, BASELINE, result, sides, complexity, result.guardrails, seconds, notes, against)


def _seconds(state: State, phases: Mapping[str, Phase]) -> tuple[float | None, float | None]:
    first, second = (verdict_notes.seconds_per_seed(state, name, phase) for name, phase in phases.items())
    return first, second


def _record(study: Study, judgement: Judgement) -> tuple[str, str, str]:
    """Write the decision, once; return the event's id, the decision, and what it means for the study."""
    with study.ledger.held() as held:
        state = replay(held.events)
        name, result, answer = judgement.candidate, judgement.result, judgement.answer
        standing, decision = state.candidates[name], DECISIONS[answer]
        if standing.state == decision or standing.state not in ("completed", "advanced"):
            return "", standing.state, "continue"
        if isinstance(result, Race) and standing.state == "advanced":
            return "", "advanced", "continue"
        if isinstance(result, Confirmation) and state.is_claim_decided(name):
            return "", str(standing.decisions[-1]["decision"]), "continue"
        if answer == "invalid":
            reasons = [{"code": "EVIDENCE", "says": text} for text in judgement.objections or (judgement.reason,)]
            held.append("refused", action="decide", candidate=name, reasons=reasons)
            if standing.state == "advanced":
                decision = "rejected"
        about_study = study_decision(state, decision)
        interval, complexity = result.interval, judgement.complexity
        event = held.append(
            "decided", decision=decision, p=result.p, effect=result.effect, interval=[interval.low, interval.high],
            coverage=interval.level, n=list(result.n), provisional=answer == "provisional", study=about_study,
            says="; ".join(judgement.objections) or judgement.reason, seconds=list(judgement.seconds),
            test="race" if isinstance(result, Race) else "claim", lines=complexity.lines,
            parameters=complexity.parameters, contract=state.contract, approval=approval_words(state),
            terms=list(promise(study)), **judgement.figures(),
        )  # fmt: skip
        return event.id, decision, about_study


def study_decision(state: State, decision: CandidateState) -> str:
    """Return what a decision means for the study: continue, rollback, narrow or escalate."""
    if decision == "debug" and state.debug_in_a_row + 1 >= DEBUG_LIMIT:
        return "escalate"
    if decision != "rejected":
        return "continue"
    if state.head != BASELINE and state.candidates[state.head].state == "advanced":
        is_head = bool(state.decisions) and state.decisions[-1].get("candidate") == state.head
        return "rollback" if is_head else "continue"
    return "narrow" if state.rejected_in_a_row + 1 >= NARROW_LIMIT else "continue"


def _document(study: Study, judgement: Judgement) -> dict[str, Any]:
    contract = study.contract()
    assert contract.metric is not None
    result = judgement.result.document()
    complexity = judgement.complexity
    return {
        **judgement.figures(),
        "test": "race" if isinstance(judgement.result, Race) else "claim on fresh seeds",
        "verdict": judgement.verdict,
        "answer": judgement.answer,
        "metric": contract.metric.name,
        **{key: result[key] for key in ("effect", "interval", "p", "n", "crashed", "replaced")},
        "reason": judgement.reason,
        "words": _words(judgement),
        "objections": list(judgement.objections),
        "seconds_a_seed": list(judgement.seconds),
        "complexity": {"lines": complexity.lines, "parameters": complexity.parameters},
        "approval": approval_words(study.state()),
        "enforced": _enforced(study, judgement.sides),
        "command": str(next_step(study).command),
    }


def _words(judgement: Judgement) -> str:
    """Return the verdict in a sentence for people, without p-values."""
    if judgement.objections:
        return "; ".join(judgement.objections)
    test = "race" if isinstance(judgement.result, Race) else "claim"
    fields = {**judgement.result.document(), **judgement.figures(), "test": test, "answer": judgement.answer,
              "reason": judgement.reason}  # fmt: skip
    return verdict_words(DECISIONS[judgement.answer], fields)


def _enforced(study: Study, sides: Sides) -> str:
    """Return which sandbox was enforced while the scores were made, from their own documents."""
    mechanisms = set()
    for seed in (seed for side in sides for seed in side if seed.file):
        document = measure_scores.document_of(study, seed)
        mechanisms.add(str((document.get("enforced") or {}).get("mechanism", "none")))
    return ", ".join(sorted(mechanisms)) or "nothing"
