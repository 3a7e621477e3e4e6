"""A study told to people: its log, and its report with what stands beside every claim."""

from __future__ import annotations

from typing import Any

from rlx import files
from rlx.loop import proceed
from rlx.study import report as reports
from rlx.study.approval import forgeable
from rlx.study.report import Row, Surroundings
from rlx.study.state import State
from rlx.study.study import Study

PICTURE = "report.png"


def log(study: Study) -> dict[str, Any]:
    """Return what was tried, in order."""
    contract = study.contract()
    commit = contract.baseline.commit[:10] if contract.baseline else ""
    return {"study": study.name, "rows": [{"commit": commit, **_line(row)} for row in _rows(study)]}


def _line(row: Row) -> dict[str, Any]:
    return {**row.document(), "budget": f"{row.seconds / 60:.1f} min"}


def _rows(study: Study) -> list[Row]:
    return reports.rows(study.state(), {one.id: one for one in study.candidates()})


def report(study: Study) -> dict[str, Any]:
    """Write the report's text and return what it says; the picture beside it is the host's."""
    state, contract, rows = study.state(), study.contract(), _rows(study)
    around = Surroundings(
        study=study.name,
        approval=proceed.approval_words(state),
        level=level_of(state),
        enforced=enforced_of(study, state),
        head=study.ledger.head()[:16],
        picture=PICTURE,
        forgeable=forgeable(state.approval.level, human=state.approval.is_human) if state.approval else (),
    )
    files.write_atomic(study.report_path, reports.markdown(state, contract, rows, around).encode())
    return {
        "study": study.name,
        "outcome": reports.outcome(state, contract),
        "metric": contract.metric.name if contract.metric else "",
        "head": state.head,
        "incumbent": state.incumbent,
        "rows": [row.document() for row in rows],
        "candidates": proceed.status(study)["candidates"],
        "spent": state.spent.document(),
        "level": around.level,
        "approval": around.approval,
        "enforced": around.enforced,
        "file": str(study.report_path.relative_to(study.root)),
        "picture": str((study.folder / PICTURE).relative_to(study.root)),
        "command": f"rlx study verify {study.name}",
    }


def level_of(state: State) -> str:
    """Return the weakest level that any score of a study has."""
    levels = {score.level for scores in state.evaluations.values() for score in scores.values()}
    return next((level for level in ("reported", "pinned", "sealed") if level in levels), "no scores yet")


def enforced_of(study: Study, state: State) -> str:
    """Return what was in force while the scores were made, in their own words."""
    names = {score.file for scores in state.evaluations.values() for score in scores.values()}
    said = {str((files.read_json(study.folder / name).get("enforced") or {}).get("mechanism", "none")) for name in names
            if (study.folder / name).is_file()}  # fmt: skip
    return ", ".join(sorted(said)) or "nothing yet"
