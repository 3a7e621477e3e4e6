"""Write a study's log and its report, with the level and the enforcement of every claim."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rlx import files
from rlx.config import schema
from rlx.errors import RlxError
from rlx.launch.study_jobs.candidate_check import changed_lines
from rlx.launch.study_jobs.launch_facts import is_applied
from rlx.loop.study import confirmed_patch, study_status, verdict_notes, verify
from rlx.runs.readers.metric_dialects import RETURN
from rlx.runs.run import Run
from rlx.study import report as reports
from rlx.study.approval.approval import forgery_risks
from rlx.study.candidate.candidate import BASELINE, Candidate
from rlx.study.candidate.config_changes import comparable, flat_keys
from rlx.study.contract import contract_view as screens
from rlx.study.ledger.lifecycle import Phase
from rlx.study.ledger.state import State
from rlx.study.report import CandidateChange, CandidateRow, ReportContext
from rlx.study.report_answers import short_answers
from rlx.study.study_folder import UNCHANGED, Study
from rlx.study.task import infer_task

PICTURE = "report.png"
CURVES = "curves.png"


def log(study: Study) -> dict[str, Any]:
    """Return the candidates, in order."""
    contract = study.contract()
    commit = contract.baseline.commit[:10] if contract.baseline else ""
    return {"study": study.name, "rows": [{"commit": commit, **_line(row)} for row in _rows(study)]}


def _line(row: CandidateRow) -> dict[str, Any]:
    return {**row.document(), "budget": f"{row.seconds / 60:.1f} min"}


def _rows(study: Study) -> list[CandidateRow]:
    known = {one.id: one for one in study.candidates()}
    base = _baseline_values(study)
    changed = {name: _changed(study, one, base) for name, one in known.items() if name not in UNCHANGED}
    return reports.rows(study.state(), known, changed)


def _baseline_values(study: Study) -> dict[str, Any]:
    """Return the baseline's values by key; of an rlx config, also the defaults that it does not write down."""
    task = study.task()
    base = infer_task.baseline_values(task, study.root)
    if task.adapter.kind != "rlx":
        return dict(base)
    try:
        defaults = comparable(dict(base), is_config=True)
    except RlxError:  # the config cannot be read any more: its own values are enough
        defaults = {}
    known = {key: value for key, value in flat_keys(defaults).items() if value is not None}
    return {**known, **flat_keys(base)}


def _changed(study: Study, one: Candidate, base: Mapping[str, Any]) -> CandidateChange:
    """Return a candidate's changed keys, relative to its base, and its changed code, relative to the baseline."""
    below = {key: value for under in study.chain(one.id)[:-1] for key, value in flat_keys(under.changes).items()}
    before = {**written_out(base), **below}
    own = flat_keys(one.changes)
    keys = tuple(f"{key}: {_value(before, key)} → {json.dumps(value)}" for key, value in own.items())
    at_first = written_out(base)
    everything = {**below, **own}
    whole = tuple(f"{key}: {_value(at_first, key)} → {json.dumps(value)}" for key, value in everything.items())
    patch = study.patch(one.id)
    if patch is None or patch == study.patch(one.builds_on):
        return CandidateChange(keys, builds_on=one.builds_on, whole=whole)
    name = study.patch_path(one.id).relative_to(study.folder).as_posix()
    return CandidateChange(keys, name, changed_lines(patch), one.builds_on, whole)


def written_out(base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the baseline's config by dotted key, with the arguments of every wrapper."""
    known = flat_keys(base)
    for index, wrapper in enumerate(known.get("env.wrappers") or ()):
        arguments = schema.written_out(wrapper)
        if isinstance(arguments, dict):
            known |= {f"env.wrappers.{index}.{key}": value for key, value in flat_keys(arguments).items()}
    return known


def _value(known: Mapping[str, Any], key: str) -> str:
    return json.dumps(known[key]) if key in known else "its default"


def promise(study: Study) -> tuple[str, ...]:
    """Return what the contract says now of metric, guardrails, scope, budget and baseline."""
    points = screens.point_rows(study.contract(), study.task(), problems=())
    told = [one for one in points if one.point in ("metric", "scope", "budget", "baseline")]
    return tuple(f"{one.point}: {'; '.join(one.lines)}" for one in told)


def _amendments(study: Study) -> dict[str, tuple[str, ...]]:
    """Return, by the id of each claim's row, the changes of the contract after it."""
    amended: list[str] = []
    found = {}
    for event in reversed(study.ledger.events()):
        if event.kind == "amended":
            amended.insert(0, f"{_when(event.time)} to {str(event['contract'])[:12]}")
        elif event.kind == "decided" and event.get("test") == "claim":
            found[event.id] = tuple(amended)
    return found


def _dates(study: Study, state: State) -> str:
    """Say when a study was begun, approved, and last written to."""
    events = study.ledger.events()
    approved = f", approved {_when(state.approval.event.time)}" if state.approval else ""
    return f"begun {_when(events[0].time)}{approved}, last row {_when(events[-1].time)} (UTC)"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def report(study: Study) -> dict[str, Any]:
    """Write the report's text and return its contents; the host draws the picture."""
    problems = verify.integrity(study)
    state, contract, rows = study.state(), study.contract(), _rows(study)
    takes_over = None
    if not problems:
        takes_over = confirmed_patch.write(study, state)
    warnings = list(verdict_notes.flat(state, contract))
    curves = learning_curves(study, state)
    around = ReportContext(
        study=study.name,
        approval=study_status.approval_words(state),
        level=level_of(state),
        enforced=enforced_of(study, state),
        head=study.ledger.head()[:16],
        picture=PICTURE,
        forgeable=forgery_risks(state.approval.level, human=state.approval.is_human) if state.approval else (),
        promise=(*promise(study), *(f"warning: {one}" for one in warnings)),
        dates=_dates(study, state),
        mission=study.task().card.mission,
        handover=takes_over.commands if takes_over else (),
        is_applied=is_applied(study, state),
        problems=tuple(problems),
        amendments=_amendments(study),
        curves=CURVES if curves["runs"] else "",
        curves_of=curves["candidate"],
    )
    around = replace(around, answers=tuple(short_answers(state, contract, rows, around)))
    files.write_atomic(study.report_path, reports.markdown(state, contract, rows, around).encode())
    return {
        "study": study.name,
        "outcome": reports.headline(state, contract, rows, problems),
        "problems": problems,
        "answers": [] if problems else [answer.document() for answer in around.answers],
        "metric": contract.metric.name if contract.metric else "",
        "direction": contract.metric.direction if contract.metric else "maximize",
        "head": state.head,
        "incumbent": state.incumbent,
        "rows": [row.document() for row in rows],
        "candidates": study_status.status(study)["candidates"],
        "warnings": warnings,
        "spent": state.spent.document(),
        "level": around.level,
        "approval": around.approval,
        "enforced": around.enforced,
        "handover": list(around.handover),
        "file": str(study.report_path.relative_to(study.root)),
        "picture": str((study.folder / PICTURE).relative_to(study.root)),
        "curves": curves,
        "command": f"rlx study verify {study.name}",
    }


def learning_curves(study: Study, state: State) -> dict[str, Any]:
    """Return the runs whose learning curves the report draws, by side, and a metric that they all logged.

    They are those of the last claim, or else of the search: the baseline and the incumbent, or else the head.
    """
    shown = state.incumbent or state.head
    names = dict.fromkeys((BASELINE, shown))
    phases: dict[str, Phase] = dict.fromkeys(names, "confirmation")
    if not all(state.ended_jobs(name, "confirmation") for name in names):
        phases = {name: "baseline" if name == BASELINE else "trial" for name in names}
    runs = {}
    for name, phase in phases.items():
        jobs = [str(job.run) for job in state.ended_jobs(name, phase)]
        found = [job for job in jobs if (study.root / "runs" / job).is_dir()]
        if found:
            runs[name] = found
    logged = [set(Run(study.root / "runs" / run).metric_names()) for side in runs.values() for run in side]
    shared = set.intersection(*logged) if logged else set()
    wanted = [RETURN]
    contract = study.contract()
    if contract.metric is not None:
        wanted.append(contract.metric.name)
    metric = next((name for name in wanted if name in shared), "")
    return {"candidate": shown, "metric": metric, "runs": runs if metric else {}}


def level_of(state: State) -> str:
    """Return the weakest level that any score of a study has."""
    levels = {score.level for scores in state.evaluations.values() for score in scores.values()}
    return next((level for level in ("reported", "pinned", "sealed") if level in levels), "no scores yet")


def enforced_of(study: Study, state: State) -> str:
    """Return which sandbox was enforced while the scores were made."""
    names = {score.file for scores in state.evaluations.values() for score in scores.values()}
    said = {str((files.read_json(study.folder / name).get("enforced") or {}).get("mechanism", "none")) for name in names
            if (study.folder / name).is_file()}  # fmt: skip
    return ", ".join(sorted(said)) or "nothing yet"
