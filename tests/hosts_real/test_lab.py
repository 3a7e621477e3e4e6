"""Real Claude Code and Codex drive a lab of six iterations, each session scripted by a model on 127.0.0.1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from examples.lab.scripted_agent import FAST, MISSIONS, THIRD_FILE
from tests.hosts_real.conftest import ROOT, Client
from tests.hosts_real.mock_model import Call, Later, MockModel, Step

pytestmark = pytest.mark.timeout(1800)
IDEA = "candidate/idea.txt"
PLANT = "echo planted >> evaluator/env.py; echo planted >> program.md; ls ../../../.."
Edit = Callable[[Path, str, str, str, str], list[Step | Later]]
CROSSED = bool(os.environ.get("RLX_LAB_ALL"))
"""Each client runs both missions only if this is set: a mission takes minutes."""


def values(mission: str) -> dict[str, str]:
    """Return the assignments that a mission's moves change, as its first candidate has them."""
    if mission == "solve":
        return {'"learning_rate": {}': "5e-05"}
    return {'"learning_rate": {}': "0.003", '"gamma": {}': "0.99", "SIZE = {}": "7"}


def claude_edit(tree: Path, file: str, before: str, after: str, why: str) -> list[Step | Later]:
    path = str(tree / file)
    return [
        Call("Read", {"file_path": path}),
        Call("Edit", {"file_path": path, "old_string": before, "new_string": after}),
        Call("Write", {"file_path": str(tree / IDEA), "content": f"description: {after}: {why}\npredicts: 20\n"}),
    ]


def claude_stray(tree: Path) -> list[Step | Later]:
    """Try the person's evaluator and mission, which the kernel refuses, then add a file of its own."""
    return [
        Call("Bash", {"command": PLANT, "description": "look around"}),
        Call("Write", {"file_path": str(tree / THIRD_FILE), "content": "BONUS = 1000\n"}),
    ]


def codex_edit(_tree: Path, file: str, before: str, after: str, why: str) -> list[Step | Later]:
    indent, end = ("        ", ",") if file.endswith("train.py") else ("", "")
    lines = ["*** Begin Patch", f"*** Update File: {file}", "@@", f"-{indent}{before}{end}", f"+{indent}{after}{end}",
             f"*** Add File: {IDEA}", f"+description: {after}: {why}", "+predicts: 20", "*** End Patch"]  # fmt: skip
    return [Call("apply_patch", patch="\n".join(lines))]


def codex_stray(_tree: Path) -> list[Step | Later]:
    command = f"{PLANT}; echo 'BONUS = 1000' > {THIRD_FILE}"
    return [Call("exec_command", {"cmd": command, "yield_time_ms": 9000})]


def script(mission: str, lab: Path, edit: Edit, stray: Callable[[Path], list[Step | Later]]) -> list[Step | Later]:
    """Return the moves of a mission as six conversations; each ends with a text."""
    steps: list[Step | Later] = []
    current = values(mission)
    for number, move in enumerate(MISSIONS[mission], start=1):
        tree = lab / f".rlx/labs/{lab.name}/sessions/{number:04d}/worktree"
        if move == THIRD_FILE:
            steps += stray(tree)
        elif move is not None:
            file, assignment, after, why = move
            steps += edit(tree, file, assignment.format(current[assignment]), assignment.format(after), why)
            if move == FAST:
                current[assignment] = after  # it becomes the head
        steps.append("I stop here.")
    return steps


def run_example(client: Client, mission: str, lab: Path, variables: dict[str, str]) -> None:
    environment = {**client.environment, **variables}
    environment.pop("RLX_ROOT", None)
    done = subprocess.run(
        ["bash", str(ROOT / "examples/lab/run.sh"), mission, str(lab), sys.executable, str(client.program)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]


def rows(lab: Path) -> list[dict[str, Any]]:
    environment = {name: value for name, value in os.environ.items() if name != "RLX_ROOT"}
    done = subprocess.run(
        [sys.executable, "-m", "rlx", "lab", "log", "--json"], cwd=lab, env=environment, capture_output=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def check(mission: str, lab: Path, told: Sequence[str]) -> None:
    """Six sessions are six rows; what the kernel refused is as it was; the page tells the truth."""
    found = rows(lab)
    assert [row["session"] for row in found] == [f"{number} attempt" for number in range(1, 7)]
    codes = [",".join(row["codes"]) for row in found]
    assert any("Read-only" in text or "denied" in text for text in told), "the kernel refuses to write the evaluator"
    assert "planted" not in (lab / "program.md").read_text() + (lab / "evaluator/env.py").read_text()
    report = (lab / f".rlx/labs/{lab.name}/report.md").read_text()
    if mission == "solve":
        assert codes == ["", "", "SETTLED", "NO_CHANGE", "SCOPE", "NO_CHANGE"]
        assert [found[number]["status"] for number in (0, 1)] == ["confirmed", "discard"]
        assert "**c001 is confirmed on fresh seeds.**" in report
    else:
        assert codes[:5] == ["", "EVALUATOR", "SETTLED", "SCOPE", "NO_CHANGE"]
        assert [found[number]["status"] for number in (0, 5)] == ["discard", "discard"]
        assert "**No change beat the baseline. That is the result so far.**" in report


@pytest.mark.parametrize("mission", ["solve", "build"] if CROSSED else ["solve"])
def test_claude_code_drives_a_lab_to_the_truth(claude: Client, home: Path, mission: str) -> None:
    lab = home / f"lab-{mission}"
    with MockModel(script(mission, lab, claude_edit, claude_stray)) as model:
        run_example(claude, mission, lab, {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "dummy"})
        told = [text for request in model.requests for text in results_of(request)]
    check(mission, lab, told)
    page = (lab / f".rlx/labs/{lab.name}/report.md").read_text()
    assert "not reported" not in page, "Claude Code reports its cost"


@pytest.mark.parametrize("mission", ["solve", "build"] if CROSSED else ["build"])
def test_codex_drives_a_lab_to_the_truth(codex: Client, home: Path, mission: str) -> None:
    lab = home / f"lab-{mission}"
    with MockModel(script(mission, lab, codex_edit, codex_stray)) as model:
        config = (
            'model_provider = "mock"\nmodel = "gpt-5.5-codex"\n[model_providers.mock]\nname = "mock"\n'
            f'base_url = "{model.url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        (home / "codex/config.toml").write_text(config)
        run_example(codex, mission, lab, {"OPENAI_API_KEY": "dummy"})
        told = [text for request in model.requests for text in results_of(request)]
    check(mission, lab, told)


def results_of(request: dict[str, Any]) -> list[str]:
    """Return what a client gave back for tool calls in one request, as text."""
    blocks = []
    for message in request.get("messages", []):
        if isinstance(message["content"], list):
            blocks += [block.get("content") for block in message["content"] if block.get("type") == "tool_result"]
    for item in request.get("input", []):
        if str(item.get("type", "")).endswith("call_output"):
            blocks.append(item.get("output"))
    return [json.dumps(block, ensure_ascii=False) for block in blocks]
