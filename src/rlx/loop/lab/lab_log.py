"""The log of a lab: every attempt as one row, with the columns of the original results file first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import FileDamaged
from rlx.loop.lab.attempt import Attempt, attempts
from rlx.loop.lab.lab_folder import Lab
from rlx.loop.lab.session.session_record import NOTE, read_record
from rlx.study.ledger.lifecycle import Phase
from rlx.study.ledger.state import State

COLUMNS = ("commit", "train_episodes", "eval_episodes", "max_steps", "score", "solve_rate", "eval_return", "status",
           "description")  # fmt: skip
SOLVE_RATES = ("solve_rate", "success_rate", "pass_rate")
"""The figures of an evaluation that count solved episodes, the first that it has."""
COMMIT_LENGTH = 7


def log_rows(lab: Lab) -> list[dict[str, Any]]:
    """Return every attempt of the lab in order, as the original's columns and rlx's own."""
    rows = []
    states: dict[str, State] = {}
    for attempt in attempts(lab):
        study = lab.study_at(attempt.rung)
        state = states.setdefault(study.name, study.state())
        figures = [evidence_figures(lab, path) for path in evidence_files(lab, state, attempt)]
        rows.append(
            {
                "commit": _commit(lab, state, attempt),
                "train_episodes": attempt.rung.train_episodes,
                "eval_episodes": attempt.rung.eval_episodes,
                "max_steps": lab.config.worlds.max_steps,
                "score": attempt.score,
                "solve_rate": _mean_figure(figures, SOLVE_RATES),
                "eval_return": _mean_figure(figures, ("return",)),
                "status": attempt.status,
                "description": attempt.description,
                "row": attempt.row,
                "rung": attempt.rung.name,
                "effect": attempt.effect,
                "codes": [str(reason.get("code")) for reason in attempt.reasons],
                "session": session_text(attempt),
            }
        )
    return rows


def session_text(attempt: Attempt) -> str:
    """Return the session of an attempt and how it ended; empty if a person or an agent tried it by hand."""
    record = read_record(attempt.notes.get(NOTE))
    return "" if record is None else f"{record.number} {record.outcome}"


def evidence_files(lab: Lab, state: State, attempt: Attempt) -> list[Path]:
    """Return the files that an attempt's score is the mean of, one per training seed."""
    phases: tuple[Phase, ...] = ("promotion", "trial")
    folder = lab.study_at(attempt.rung).folder
    for phase in phases:
        scores = state.evaluations.get((attempt.candidate, phase), {})
        used = state.usable(attempt.candidate, phase)
        if used:
            return [folder / scores[seed].file for seed in sorted(used)]
    return []


def evidence_figures(lab: Lab, path: Path) -> dict[str, float]:
    """Return the figures of a stored evaluation; none if its file is gone or damaged."""
    try:
        document = files.read_json(path)
    except (OSError, FileDamaged):
        return {}
    figures = document.get("figures", {})
    return {name: files.number(value) for name, value in figures.items() if files.is_number(value)}


def _mean_figure(figures: Sequence[dict[str, float]], names: Sequence[str]) -> float | None:
    for name in names:
        values = [one[name] for one in figures if name in one]
        if values:
            return sum(values) / len(values)
    return None


def _commit(lab: Lab, state: State, attempt: Attempt) -> str:
    """Return a short hash of the tried code; without a candidate, the commit that it was compared with."""
    standing = state.candidates.get(attempt.candidate)
    if standing is not None:
        return str(standing.content or standing.sha256)[:COMMIT_LENGTH]
    baseline = lab.study_at(attempt.rung).contract().baseline
    return "" if baseline is None else str(baseline.commit)[:COMMIT_LENGTH]
