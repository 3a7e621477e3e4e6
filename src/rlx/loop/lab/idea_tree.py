"""The tree of ideas: each attempt with claim, prediction, diff, evidence, outcome and lesson, below its parent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlx.command import rlx
from rlx.errors import NotFound
from rlx.launch.study_jobs.launch_candidate import refused_error
from rlx.loop.lab.attempt import Attempt, attempts
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.lesson import evidence_of
from rlx.study.refusal import Refusal
from rlx.study.study_folder import Study


def node(lab: Lab, attempt: Attempt) -> dict[str, Any]:
    """Return everything that the ledger and the evidence say about one attempt."""
    study = lab.study_at(attempt.rung)
    document: dict[str, Any] = {**attempt.document(), "claim": attempt.description}
    if attempt.candidate:
        candidate = study.candidate(attempt.candidate)
        document["prediction"] = candidate.predicts
        document["changes"] = dict(candidate.changes)
        document["diff"] = _relative(study, attempt.candidate)
        document["seeds"] = sorted(study.state().used_seeds(attempt.candidate))
        document.setdefault("evidence", evidence_of(study, attempt))
    return document


def _relative(study: Study, candidate: str) -> str:
    path = study.patch_path(candidate)
    return path.relative_to(study.root).as_posix() if path.is_file() else ""


def find_row(lab: Lab, name: str) -> Attempt:
    """Return an attempt by its row (`hop-12x8/c003`), or by its candidate at the current rung."""
    known = attempts(lab)
    for attempt in reversed(known):
        if name == attempt.row or (
            attempt.rung == lab.rung and name in (attempt.candidate, attempt.row.split("/")[-1])
        ):
            return attempt
    rows = ", ".join(attempt.row for attempt in known[-5:]) or "none yet"
    raise NotFound(f"the lab has no attempt `{name}`", hint=f"the newest: {rows}")


def difference(one: Attempt, other: Attempt) -> float | None:
    """Return the difference of two scores of one rung; scores of different rungs are refused."""
    if one.rung != other.rung:
        says = f"{one.row} was scored at {one.rung.name}, {other.row} at {other.rung.name}"
        raise refused_error("not comparable", [Refusal("RUNG", says, rlx("lab", "climb"))])
    if one.score is None or other.score is None:
        return None
    return other.score - one.score


def tree_lines(found: Sequence[Attempt]) -> list[tuple[int, Attempt]]:
    """Return attempts in the order of the tree, each with its depth; every rung has a tree of its own."""
    lines: list[tuple[int, Attempt]] = []

    def visit(parent: str, rung: str, depth: int) -> None:
        for attempt in found:
            if attempt.rung.name == rung and (attempt.parent or "baseline") == parent:
                lines.append((depth, attempt))
                if attempt.candidate:
                    visit(attempt.candidate, rung, depth + 1)

    for rung in dict.fromkeys(attempt.rung.name for attempt in found):
        visit("baseline", rung, 0)
    return lines
