"""`rlx next` in at most 1 kB: where the study stands as scores, the best ideas, what was learned, and the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlx.command import Command
from rlx.loop.study import verdict_notes
from rlx.loop.study.agent.answer_size import TEXT_LENGTHS, does_fit, with_short_texts
from rlx.loop.study.agent.history import lessons, mean_score, rounded, told_lines
from rlx.loop.study.agent.ideas import SHOWN, Idea, best_ideas
from rlx.loop.study.agent.short_command import proposes_from_file, short_command
from rlx.loop.study.step_commands import PROPOSAL, Step, next_steps, situation_of
from rlx.loop.study.study_status import brief, findings, status_of
from rlx.loop.study.verify import integrity
from rlx.study.candidate.candidate import BASELINE
from rlx.study.situation import Situation
from rlx.study.study_folder import Study


def compact(study: Study) -> tuple[dict[str, Any], Command]:
    """Return what an agent needs to take the recommended step, in at most 1 kB, and the command of that step."""
    at = situation_of(study)
    step, *others = next_steps(study, at)
    ideas: list[Idea] = []
    if at.state.approval is not None and at.can_search:
        ideas = best_ideas(study, at)
    words = study.option_words
    step, *others = [in_short(known, words, ideas, racers=at.racers) for known in (step, *others)]
    parts = {
        "study": study.name,
        "integrity": integrity(study)[:1],
        "ideas": [idea.document() for idea in ideas[:SHOWN]],
        "history": told_lines(lessons(study, at.state)),
    }
    return next_answer(at, step, others, parts), step.command


def full(study: Study) -> dict[str, Any]:
    """Return everything: the whole step with all legal ones, every idea and the whole history."""
    at = situation_of(study)
    ideas = best_ideas(study, at) if at.state.approval is not None else []
    known = lessons(study, at.state)
    return {
        **brief(study),
        "scores": scores(at),
        "ideas": [idea.document() for idea in ideas],
        "history": told_lines(known, most=len(known)),
    }


def in_short(step: Step, study: tuple[str, ...], ideas: Sequence[Idea], *, racers: Sequence[str] = ()) -> Step:
    """Return a step with its shortest command, and why in a few words; the best ideas come first."""
    if step.move.kind != "propose":
        return Step(step.move, short_command(step, study, racers=racers), step.why)
    fresh = [idea.name for idea in ideas if not idea.has_failed]
    command = short_command(step, study, idea=fresh[0] if fresh else "")
    written = f"write {PROPOSAL}, then rlx try -f {PROPOSAL}"
    if proposes_from_file(step):
        why = f"{PROPOSAL} is there and was not tried yet"
    elif fresh:
        why = f"an idea is needed: take one of these, or {written}"
    elif ideas:
        why = f"another idea is needed, for those shown have failed: {written}"
    else:
        why = f"an idea of your own is needed: {written}"
    return Step(step.move, command, why)


def next_answer(at: Situation, step: Step, others: Sequence[Step], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of `rlx next`. Its texts are shortened, and its longest lists cut, until it fits."""
    step_document = step.document()
    also = [str(other.command) for other in others if other.move.kind not in ("report", "take over")][:1]
    claims = at.contract.metric.claims if at.contract.metric else 0
    whole = {
        "study": str(parts["study"]),
        "integrity": list(parts.get("integrity", ())),
        "status": status_of(at),
        "scores": scores(at),
        "head": at.state.head,
        "ideas": list(parts["ideas"]),
        "history": list(parts["history"]),
        "findings": [*findings(at.state), *verdict_notes.flat(at.state, at.contract)][:1],
        "left": {"seeds": at.seeds_left, "candidates": at.candidates_left,
                 "claims": max(0, claims - len(at.state.claimed))},
        "also": also,
        "action": step_document["action"],
        "why": step_document["why"],
        "command": step_document["command"],
        "person": step.command.needs_person,
    }  # fmt: skip
    for most in TEXT_LENGTHS:
        answer = with_short_texts(whole, most)
        while not does_fit(answer) and len(answer["history"]) > 2:
            answer["history"] = answer["history"][1:]
        if does_fit(answer):
            return answer
    for key, kept in (("history", 0), ("also", 0), ("findings", 0), ("ideas", 1), ("ideas", 0)):
        answer[key] = answer[key][:kept]
        if does_fit(answer):
            return answer
    return answer


def scores(at: Situation) -> dict[str, Any]:
    """Return the mean scores of the baseline and the head, and the best possible score if it is known."""
    metric = at.contract.metric.name if at.contract.metric else ""
    return {
        "metric": metric,
        "baseline": rounded(mean_score(at.state, BASELINE)),
        "head": rounded(mean_score(at.state, at.state.head)),
        "ceiling": at.ceiling,
    }
