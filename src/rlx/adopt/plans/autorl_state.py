"""Reads `.autorl/`: one folder per task with pages for mission, surfaces, commands, metrics, and its loops."""

from __future__ import annotations

import re
from pathlib import Path

from rlx.adopt.plans.foreign_plan import (
    ForeignPlan,
    PlannedCandidate,
    PlannedStudy,
    PlannedTask,
    files_in,
    first,
    number,
    sections,
)

FOLDER = ".autorl"
_CODE = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r"^\s*(?:\$ )?((?:[\w./-]*python[\d.]*|uv|poetry|torchrun|isaaclab|\./\S+|make|bash)\s.+)$", re.M)
_HOURS = re.compile(r"(\d+(?:\.\d+)?)\s*(?:h\b|hours?)", re.I)


def read(folder: Path) -> ForeignPlan:
    """Return the plan: each task has one study, and each loop entry with changed parameters is a candidate."""
    plan = ForeignPlan("autorl")
    tasks = folder / "tasks"
    if tasks.is_dir():
        for path in sorted(tasks.iterdir()):
            if path.is_dir() and not path.is_symlink():
                plan.tasks.append(_task(path, plan))
    return plan


def _task(folder: Path, plan: ForeignPlan) -> PlannedTask:
    task = PlannedTask(folder.name)
    profile = dict(sections(plan.text(folder / "task-profile.md")))
    task.mission = _line(next((body for name, body in profile.items() if "mission" in name or "goal" in name), ""))
    commands = [match[1].strip() for match in _COMMAND.finditer(plan.text(folder / "runbook.md"))]
    task.train = next((command for command in commands if re.search(r"train|learn", command)), "")
    task.eval = next((command for command in commands if re.search(r"eval|play|rollout", command)), "")
    study = PlannedStudy("loop")
    study.metric, study.is_minimized = _metric(plan.text(folder / "metric-spec.md"))
    for word in _CODE.findall(plan.text(folder / "surface-map.md")):
        place = study.paths if "/" in word or word.endswith((".py", ".yaml")) else study.keys
        place.append(word)
    contract = plan.text(folder / "task-contract.md")
    plan.approvals += len(re.findall(r"\b(?:approved|authorized|ruling:\s*(?:allow|execute))\b", contract, re.I))
    hours = _HOURS.search(contract)
    study.hours = number(float(hours[1])) if hours else None
    state = plan.document(folder / "state.json")
    if state:
        study.ledger.append({"state": {key: value for key, value in state.items() if key != "facts"}})
    for path in files_in(folder / "loops", ".json"):
        document = plan.document(path)
        changes = first(document, "params", "changes", "run_params", "plan.changes")
        if isinstance(changes, dict):
            name = path.stem if path.parent.name == "loops" else path.parent.name
            status = str(first(document, "decision", "status") or "draft")
            text = str(first(document, "hypothesis", "plan.hypothesis", "rationale") or "")
            study.candidates.append(PlannedCandidate(name, "", text, changes, status))
        if document:
            study.ledger.append({"loop": path.stem, **document})
    task.studies = [study]
    return task


def _line(body: str) -> str:
    return next((line.strip(" -*") for line in body.splitlines() if line.strip()), "")[:300]


def _metric(page: str) -> tuple[str, bool]:
    """Return the first metric of the section about success, and whether it should fall."""
    for heading, body in sections(page):
        names = _CODE.findall(body)
        if ("success" in heading or "primary" in heading) and names:
            return names[0], bool(re.search(r"minimi[sz]e|lower is better|decrease", body, re.I))
    return "", False
