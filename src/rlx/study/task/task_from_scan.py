"""Turn a drafted repository into a task: its commands, its reward files, and every inferred fact with its place."""

from __future__ import annotations

from pathlib import Path

from rlx.adopt.draft import Draft
from rlx.adopt.scan import Scan
from rlx.adopt.scan_fact import ScanFact
from rlx.config.schema import Source
from rlx.study.task.infer_task import Commands, fact, task_from_commands
from rlx.study.task.task import Fact, PathsAndKeys, Surface, Task

INFERRED_KINDS = ("framework", "interpreter", "config system", "logger", "checkpoint", "termination", "launcher")
MOST_FACTS_PER_KIND = 4


def task_from_scan(scan: Scan, draft: Draft, *, name: str, mission: str = "") -> Task:
    """Return the drafted task. Its facts name each inference, its certainty and its line."""
    score = "the score"
    if draft.metrics is not None:
        score = next(iter(draft.metrics.names), score)
    usual = f"Improve {score} of {draft.program.file}."
    task = task_from_commands(commands_of(draft, mission=mission or usual), root=scan.root, name=name)
    inferred = [*draft.basis]
    for kind in INFERRED_KINDS:
        inferred += scan.facts.of(kind)[:MOST_FACTS_PER_KIND]
    known = {(one.what, one.file, one.line) for one in task.facts}
    facts = list(task.facts)
    for found in dict.fromkeys((one.kind, one.name, one.file, one.line, one.confidence) for one in inferred):
        one = _fact(ScanFact(*found), scan.root)
        if one is not None and (one.what, one.file, one.line) not in known:
            facts.append(one)
    return task.model_copy(update={"facts": tuple(facts)})


def commands_of(draft: Draft, *, mission: str = "") -> Commands:
    """Return a draft as the commands of a task."""
    surfaces: dict[Surface, PathsAndKeys] = {}
    if draft.reward_paths or draft.reward_keys:
        surfaces["reward"] = PathsAndKeys(paths=tuple(draft.reward_paths), keys=tuple(draft.reward_keys))
    if draft.profile.hyperparameters:
        surfaces["hyperparameters"] = PathsAndKeys(keys=draft.profile.hyperparameters)
    elif draft.edited_paths:
        surfaces["hyperparameters"] = PathsAndKeys(paths=tuple(draft.edited_paths))
    if draft.fixed_keys:
        surfaces["evaluator"] = PathsAndKeys(keys=tuple(draft.fixed_keys))
    return Commands(
        train=tuple(draft.train),
        eval=tuple(draft.eval),
        result=Source(reader="jsonl", path="{result}") if draft.eval else None,
        prefix=tuple(draft.prefix),
        metrics=draft.metrics,
        checkpoint=draft.checkpoint,
        override=draft.override,
        steps=draft.steps,
        python_path=tuple(draft.python_path),
        cwd=draft.cwd,
        local_sockets=draft.local_sockets,
        mission=mission,
        surfaces=surfaces,
    )


def _fact(found: ScanFact, root: Path) -> Fact | None:
    if not (root / found.file).is_file():
        return None
    return fact(f"inferred ({found.confidence}): {found.kind} {found.name}", found.file, root=root, line=found.line)
