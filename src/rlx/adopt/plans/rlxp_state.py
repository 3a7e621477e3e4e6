"""Reads `.rlxp/`: tasks with a card and an adapter; studies with a contract, candidates and a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx.adopt.plans.foreign_plan import (
    ForeignPlan,
    PlannedCandidate,
    PlannedStudy,
    PlannedTask,
    files_in,
    first,
    number,
    sections,
    texts,
)

FOLDER = ".rlxp"


def read(folder: Path) -> ForeignPlan:
    """Return the plan; a flat folder of older versions is one task with one study."""
    plan = ForeignPlan("rlxp")
    plan.document(folder / "registry.yaml")
    tasks = folder / "tasks"
    if tasks.is_dir():
        for path in sorted(tasks.iterdir()):
            if path.is_dir() and not path.is_symlink():
                plan.tasks.append(_task(path, plan))
    elif (folder / "adapter.yaml").is_file() or (folder / "contract.yaml").is_file():
        task = _task(folder, plan, name=folder.resolve().parent.name)
        task.studies = [_study(folder, plan, name="study")]
        plan.tasks.append(task)
    return plan


def _task(folder: Path, plan: ForeignPlan, *, name: str = "") -> PlannedTask:
    adapter = plan.document(folder / "adapter.yaml")
    task = PlannedTask(name or folder.name, mission=_mission(plan.text(folder / "task_card.md")))
    train = ("commands.train_command_runnable", "commands.train_command_raw", "commands.train", "train_command")
    task.train = str(first(adapter, *train, "commands.train_entrypoint") or "")
    task.eval = str(first(adapter, "commands.eval", "commands.eval_command", "eval_command") or "")
    task.prefix = str(first(adapter, "environment.command_prefix") or "")
    studies = folder / "studies"
    if studies.is_dir():
        task.studies = [_study(path, plan, name=path.name) for path in sorted(studies.iterdir()) if path.is_dir()]
    return task


def _mission(card: str) -> str:
    for _, body in sections(card):
        for line in body.splitlines():
            if line.strip() and not line.startswith(("|", "```", "---")):
                return line.strip(" -*")[:300]
    return ""


def _study(folder: Path, plan: ForeignPlan, *, name: str) -> PlannedStudy:
    contract = plan.document(folder / "contract.yaml")
    study = PlannedStudy(name)
    primary = first(contract, "metrics.primary", "primary_metric", "metric")
    if isinstance(primary, dict):
        study.metric = str(primary.get("name") or "")
        study.is_minimized = str(primary.get("direction") or "").lower().startswith("min")
        seeds = number(primary.get("n_seeds"))
        study.seeds = int(seeds) if seeds else None
    elif isinstance(primary, str):
        study.metric = primary
    guardrails = first(contract, "metrics.guardrails", "guardrails") or []
    study.guardrails = [_guardrail(entry) for entry in guardrails if isinstance(entry, (dict, str))]
    study.paths = texts(first(contract, "scope.paths", "tuning_scope.paths", "scope.files"))
    study.keys = texts(first(contract, "scope.keys", "tuning_scope.keys"))
    study.hours = number(first(contract, "budget.wall_hours", "budget.hours", "budget.gpu_hours"))
    study.ledger = plan.rows(folder / "ledger.jsonl")
    for path in files_in(folder / "candidates", ".yaml", ".yml", ".json"):
        document = plan.document(path)
        if document:
            study.candidates.append(_candidate(document, path.stem))
    return study


def _guardrail(entry: dict[str, Any] | str) -> str:
    if isinstance(entry, str):
        return entry
    return f"{entry.get('name', '')} {entry.get('op', '')} {entry.get('limit', '')}".strip()


def _candidate(document: dict[str, Any], name: str) -> PlannedCandidate:
    changes = first(document, "changes", "config_changes", "overrides", "params")
    return PlannedCandidate(
        name=str(first(document, "id", "candidate_id") or name),
        kind=str(first(document, "kind", "type") or ""),
        hypothesis=str(first(document, "hypothesis", "rationale", "idea") or ""),
        changes=changes if isinstance(changes, dict) else {},
        status=str(first(document, "status", "state", "decision") or "draft"),
    )
