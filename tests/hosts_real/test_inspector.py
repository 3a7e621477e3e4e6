"""The MCP inspector lists every tool and calls each with success: plain runs, then a small governed study."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.mcp.answer import LIMIT_BYTES
from tests.conftest import Project
from tests.hosts_real.conftest import Client
from tests.loop.test_study import Lab

pytestmark = pytest.mark.timeout(600)
PLAIN = {"ls", "info", "wait", "logs", "diagnose", "compare", "reflect", "train", "stop", "settle"}
GOVERNED = {"status", "next", "try", "schema", "withdraw", "propose", "check", "launch", "verdict", "decide", "report"}
SHAPED = """\
from gymnasium.envs.classic_control import CartPoleEnv


class Shaped(CartPoleEnv):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "reward_terms": {"alive": float(reward)}}
"""


@dataclass
class Inspector:
    """The inspector in a project, and what it has called with success."""

    client: Client
    root: Path
    called: set[str] = field(default_factory=set)

    def ask(self, *words: str) -> dict[str, Any]:
        patience = ("--connect-timeout", "110000")
        done = self.client.run(
            "--cli", *patience, "rlx", "mcp", *words, cwd=self.root, code=None, RLX_ROOT=str(self.root)
        )
        assert done.stdout, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def call(self, tool: str, **given: Any) -> dict[str, Any]:
        arguments = [word for key, value in given.items() for word in ("--tool-arg", f"{key}={_spelled(value)}")]
        told = self.ask("--method", "tools/call", "--tool-name", tool, *arguments)
        text = "".join(block["text"] for block in told["content"])
        assert len(text.encode()) <= LIMIT_BYTES
        assert not told.get("isError"), text
        self.called.add(tool)
        content: dict[str, Any] = told["structuredContent"]
        return content

    def until_done(self, tool: str, **given: Any) -> dict[str, Any]:
        while (answer := self.call(tool, **given))["is_running"]:
            pass
        return answer


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture
def trained(project: Project) -> Project:
    project.write("envs/shaped.py", SHAPED)
    for name, sizes in (("tiny", [8]), ("wide", [16])):
        config = project.config(name, env={"id": "envs/shaped.py:Shaped"}, policy={"hidden_sizes": sizes})
        project.rlx("train", config)
        project.rlx("eval", f"{name}_001", "--episodes", "2")
    return project


def test_every_tool_is_listed(inspector: Client, project: Project) -> None:
    tools = Inspector(inspector, project.root).ask("--method", "tools/list")["tools"]
    assert {tool["name"] for tool in tools} == PLAIN | GOVERNED
    assert all(tool["annotations"] for tool in tools)


def test_every_tool_of_plain_runs_is_called(inspector: Client, trained: Project) -> None:
    at = Inspector(inspector, trained.root)
    assert {run["name"] for run in at.call("ls")["runs"]} == {"tiny_001", "wide_001"}
    assert at.call("info", run="tiny_001")["state"] == "completed"
    assert at.call("logs", run="tiny_001")["logs"]
    assert at.call("diagnose", run="tiny_001")["health"]
    assert at.call("reflect", run="tiny_001")["terms"][0]["name"] == "alive"
    assert at.call("compare", baseline="tiny_001", candidates=["wide_001"])["candidates"][0]["verdict"]
    started = at.call("train", config="configs/tiny.yaml", overrides=["algo.total_timesteps=100000000"])["run"]
    at.call("stop", run=started)
    assert at.until_done("wait", run=started, seconds=20)["state"] == "interrupted"
    pair = {"baseline": "configs/tiny.yaml", "candidate": "configs/wide.yaml"}
    assert at.until_done("settle", **pair, max_seeds=10, deadline="1s")["stopped"]
    assert at.called == PLAIN


def test_every_tool_of_a_governed_study_is_called(inspector: Client, home: Path) -> None:
    lab = Lab(home / "a lab")
    lab.found()
    at = Inspector(inspector, lab.root)
    assert at.call("next")["action"] == "propose"
    idea = {"kind": "hyperparameter", "hypothesis": "a step that learns", "changes": {"algo.learning_rate": 0.002}}
    assert at.call("propose", **idea)["candidate"] == "c001"
    plan = at.call("check", candidate="c001")["plan"]
    run = at.call("launch", candidate="c001", plan=plan)["run"]
    assert at.until_done("wait", run=run, seconds=50)["state"] == "completed"
    assert at.until_done("verdict", candidate="c001")["level"] == "sealed"
    assert at.until_done("decide", candidate="c001")["recorded"]
    assert at.call("status")["candidates"][0]["candidate"] == "c001"
    assert at.call("report")["file"].endswith("report.md")
    assert at.call("schema", kind="hyperparameter")["kind"] == "hyperparameter"
    other = {"kind": "hyperparameter", "hypothesis": "another step", "changes": {"algo.learning_rate": 0.004}}
    assert at.call("propose", **other)["candidate"] == "c002"
    assert at.call("withdraw", candidate="c002")["candidate"] == "c002"
    assert at.call("try", candidate="c001")["candidate"] == "c001"
    assert at.called == GOVERNED | {"wait"}
