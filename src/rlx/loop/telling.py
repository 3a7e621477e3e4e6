"""A study told to people: its log, and its report with what stands beside every claim."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rlx import files
from rlx.launch.examined import changed_lines
from rlx.loop import handover, notes, proceed
from rlx.study import derive
from rlx.study import report as reports
from rlx.study import screen as screens
from rlx.study.approval import forgeable
from rlx.study.candidate import Candidate
from rlx.study.changes import keys_of
from rlx.study.report import Changed, Row, Surroundings
from rlx.study.state import State
from rlx.study.study import NULL, Study

PICTURE = "report.png"


def log(study: Study) -> dict[str, Any]:
    """Return what was tried, in order."""
    contract = study.contract()
    commit = contract.baseline.commit[:10] if contract.baseline else ""
    return {"study": study.name, "rows": [{"commit": commit, **_line(row)} for row in _rows(study)]}


def _line(row: Row) -> dict[str, Any]:
    return {**row.document(), "budget": f"{row.seconds / 60:.1f} min"}


def _rows(study: Study) -> list[Row]:
    known = {one.id: one for one in study.candidates()}
    base = derive.base_of(study.task(), study.root)
    changed = {name: _changed(study, one, base) for name, one in known.items() if name not in NULL}
    return reports.rows(study.state(), known, changed)


def _changed(study: Study, one: Candidate, base: Mapping[str, Any]) -> Changed:
    """Say what a candidate changed: each key from what it builds on, and its code against the baseline."""
    below = {key: value for under in study.chain(one.id)[:-1] for key, value in keys_of(under.changes).items()}
    before = {**keys_of(base), **below}
    keys = tuple(f"{key}: {_value(before, key)} → {json.dumps(value)}" for key, value in keys_of(one.changes).items())
    patch = study.patch(one.id)
    if patch is None or patch == study.patch(one.builds_on):
        return Changed(keys)
    name = study.patch_path(one.id).relative_to(study.folder).as_posix()
    return Changed(keys, name, changed_lines(patch))


def _value(known: Mapping[str, Any], key: str) -> str:
    return json.dumps(known[key]) if key in known else "its default"


def _promise(study: Study) -> tuple[str, ...]:
    """Return what the contract says of metric, guardrails, scope, budget and baseline."""
    points = screens.screen(study.contract(), study.task(), problems=())
    told = [one for one in points if one.point in ("metric", "scope", "budget", "baseline")]
    return tuple(f"{one.point}: {'; '.join(one.lines)}" for one in told)


def _dates(study: Study, state: State) -> str:
    """Say when a study was begun, approved, and last written to."""
    events = study.ledger.events()
    approved = f", approved {_when(state.approval.event.time)}" if state.approval else ""
    return f"begun {_when(events[0].time)}{approved}, last row {_when(events[-1].time)} (UTC)"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def report(study: Study) -> dict[str, Any]:
    """Write the report's text and return what it says; the picture beside it is the host's."""
    state, contract, rows = study.state(), study.contract(), _rows(study)
    takes_over, warnings = handover.write(study, state), list(notes.flat(state, contract))
    around = Surroundings(
        study=study.name,
        approval=proceed.approval_words(state),
        level=level_of(state),
        enforced=enforced_of(study, state),
        head=study.ledger.head()[:16],
        picture=PICTURE,
        forgeable=forgeable(state.approval.level, human=state.approval.is_human) if state.approval else (),
        promise=(*_promise(study), *(f"warning: {one}" for one in warnings)),
        dates=_dates(study, state),
        handover=takes_over.commands if takes_over else (),
    )
    files.write_atomic(study.report_path, reports.markdown(state, contract, rows, around).encode())
    return {
        "study": study.name,
        "outcome": reports.outcome(state, contract),
        "metric": contract.metric.name if contract.metric else "",
        "direction": contract.metric.direction if contract.metric else "maximize",
        "head": state.head,
        "incumbent": state.incumbent,
        "rows": [row.document() for row in rows],
        "candidates": proceed.status(study)["candidates"],
        "warnings": warnings,
        "spent": state.spent.document(),
        "level": around.level,
        "approval": around.approval,
        "enforced": around.enforced,
        "handover": list(around.handover),
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
