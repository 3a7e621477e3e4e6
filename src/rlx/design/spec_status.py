"""The steps of the five workflows for one spec: what is done, what is open, and what is next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rlx.design.check_spec import CheckedSpec
from rlx.design.problem_spec import OPTIONAL, ProblemSpec
from rlx.design.spec_sections import SECTION_RULES
from rlx.design.topic_table import TOPICS, WORKFLOWS

State = Literal["done", "open", "defect", "not used"]


@dataclass(frozen=True)
class WorkflowStep:
    """One section of a spec in a workflow: its state, and the findings that keep it open."""

    workflow: str
    section: str
    state: State
    why: str

    def document(self) -> dict[str, str]:
        """Return the step as JSON-able data."""
        return {"workflow": self.workflow, "section": self.section, "state": self.state, "why": self.why}


def steps_of(spec: ProblemSpec, checked: CheckedSpec) -> list[WorkflowStep]:
    """Return every step of the workflows with its state."""
    found = {finding.rule: finding for finding in checked.findings if finding.severity != "low"}
    steps = []
    for workflow in WORKFLOWS:
        for section in workflow.sections:
            problems = [found[rule] for rule in SECTION_RULES[section] if rule in found]
            if section in OPTIONAL and getattr(spec, section) is None and not problems:
                steps.append(WorkflowStep(workflow.name, section, "not used", "add the section if it applies"))
            elif problems:
                why = "; ".join(f"{finding.rule}: {finding.claim}" for finding in problems)
                steps.append(WorkflowStep(workflow.name, section, "defect", why))
            else:
                steps.append(WorkflowStep(workflow.name, section, "done", "checked against the environment"))
    return steps


def next_command(spec: ProblemSpec, checked: CheckedSpec, *, path: Path, config: Path, runs: list[str]) -> str:
    """Return the next command of the walk from a spec to a compared run."""
    name = shlex.quote(str(path))
    if not checked.is_sound:
        return f"rlx check spec {name}"
    if not config.exists():
        return f"rlx spec config {name} --write {config}"
    if not runs:
        return f"rlx train {config} --seeds {spec.evaluation.training_seeds}"
    return f"rlx diagnose {runs[-1]}"


def topics_of(workflow: str) -> list[dict[str, Any]]:
    """Return the topics of a workflow with the command to start each."""
    return [{"topic": topic.name, "command": topic.command} for topic in TOPICS if topic.workflow == workflow]
