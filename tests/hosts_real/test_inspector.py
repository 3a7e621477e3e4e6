"""The MCP inspector lists every tool and calls each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.hosts_real.conftest import Client

CALLS = {
    "ls": {},
    "info": {"run": "tiny_001"},
    "wait": {"run": "tiny_001", "seconds": "1"},
    "logs": {"run": "tiny_001"},
    "diagnose": {"run": "tiny_001"},
    "compare": {"baseline": "tiny_001", "candidates": '["tiny_002"]'},
    "reflect": {"run": "tiny_001"},
    "train": {"config": "configs/tiny.yaml"},
    "stop": {"run": "tiny_001"},
    "status": {},
    "next": {},
    "propose": {"kind": "hyperparameter", "hypothesis": "larger steps"},
    "check": {"candidate": "c001"},
    "launch": {"candidate": "c001"},
    "verdict": {"candidate": "c001"},
    "decide": {"candidate": "c001"},
    "report": {},
    "settle": {"baseline": "tiny_001", "candidate": "tiny_001"},
}


@pytest.fixture
def trained(project: Project) -> Project:
    for _ in range(2):
        project.rlx("train", project.config())
    return project


def ask(inspector: Client, root: Path, *words: str) -> dict[str, object]:
    done = inspector.run("--cli", "rlx", "mcp", *words, cwd=root, code=None, RLX_ROOT=str(root))
    assert done.stdout, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_every_tool_is_listed_and_called(inspector: Client, trained: Project) -> None:
    listed = ask(inspector, trained.root, "--method", "tools/list")["tools"]
    assert {tool["name"] for tool in listed} == set(CALLS)  # type: ignore[attr-defined]
    for name, given in CALLS.items():
        arguments = [word for key, value in given.items() for word in ("--tool-arg", f"{key}={value}")]
        told = ask(inspector, trained.root, "--method", "tools/call", "--tool-name", name, *arguments)
        text = told["content"][0]["text"]  # type: ignore[index]
        assert len(text.encode()) <= 2100
        if told.get("isError"):
            assert '"hint":' in text
        else:
            assert told["structuredContent"]
