"""A governed study over MCP, as an agent would drive it: real trainings, real evaluator, nothing approved."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from rlx.command import Command, rlx, shell
from rlx.hosts.mcp.answer import LIMIT_BYTES
from rlx.hosts.mcp.study_tools import tool_command
from tests.loop.test_study import Lab

pytestmark = pytest.mark.slow


class Agent:
    """Calls tools and keeps to what they say."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, name: str, **given: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(name, given)
        text = "".join(block.text for block in answer.content if block.type == "text")
        assert not answer.is_error, text
        assert len(text.encode()) <= LIMIT_BYTES
        assert answer.structured_content is not None
        following = answer.structured_content.get("next")
        assert following is None or tool_command(Command(tuple(following.split()))), (
            f"{name} names no tool: {following}"
        )
        return dict(answer.structured_content)

    async def refused(self, name: str, **given: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(name, given)
        assert answer.is_error
        text = "".join(block.text for block in answer.content if block.type == "text")
        assert len(text.encode()) <= LIMIT_BYTES
        document: dict[str, Any] = json.loads(text)
        return document

    async def until_done(self, name: str, **given: Any) -> dict[str, Any]:
        while (answer := await self.ask(name, **given))["is_running"]:
            pass
        return answer


async def launched_by_both(agents: list[Agent], **given: Any) -> list[str]:
    """Let two clients launch the same candidate at the same time."""
    runs: list[str] = []

    async def one(agent: Agent) -> None:
        runs.append((await agent.ask("launch", **given))["run"])

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(one, agent)
    return runs


async def drive(agent: Agent, other: Agent) -> None:
    assert (await agent.ask("next"))["action"] == "propose"
    idea = {"kind": "hyperparameter", "hypothesis": "a step that learns", "changes": {"algo.learning_rate": 0.002}}
    assert (await agent.ask("schema", kind="reward tuning"))["records"]
    assert (await agent.refused("try", idea="no_such_idea"))["code"] == 3
    assert "name an idea" in (await agent.refused("try"))["error"]
    assert (await agent.ask("propose", **idea))["candidate"] == "c001"
    assert (await agent.refused("propose", **idea))["code"] == 4
    only_seed = {"kind": "hyperparameter", "hypothesis": "luck", "changes": {"seed": 3}}
    assert (await agent.refused("propose", **only_seed))["code"] == 4
    plan = (await agent.ask("check", candidate="c001"))["plan"]
    assert (await agent.refused("launch", candidate="c001", plan="0" * 16))["reasons"] == ["PLAN"]
    assert (await agent.refused("train", config="configs/pole.yaml"))["code"] == 4
    for identity in ("../../c001", "/etc/passwd", "c001/../c001", "", ".", "c\x00", "--help", "x" * 5000):
        assert (await agent.refused("check", candidate=identity))["code"] == 3
        assert (await agent.refused("launch", candidate=identity, plan=plan))["code"] in (3, 4)
    assert (await agent.refused("status", study="../pole"))["code"] == 3
    [run, same] = await launched_by_both([agent, other], candidate="c001", plan=plan)
    assert run == same
    assert (await agent.until_done("wait", run=run, seconds=50))["state"] == "completed"
    assert (await agent.until_done("try", proposal=idea))["candidate"] == "c001"
    assert (await agent.until_done("verdict", candidate="c001"))["level"] == "sealed"
    decided = await agent.until_done("decide", candidate="c001")
    assert decided["decision"] in ("inconclusive", "advanced", "rejected")
    short = await agent.ask("next")
    assert len(json.dumps(short)) <= 1024
    assert short["history"][0].startswith("c001 ")
    assert (await agent.ask("status"))["candidates"][0]["candidate"] == "c001"
    assert (await agent.ask("report"))["file"].endswith("report.md")
    ledger = json.loads((await agent.client.read_resource("rlx://study/ledger")).contents[0].text)  # type: ignore[union-attr]
    assert ledger["rows"][-1]["event"] == "decided"
    contract = (await agent.client.read_resource("rlx://study/contract")).contents[0].text  # type: ignore[union-attr]
    assert "metric:" in contract


def test_a_command_without_a_tool_is_left_to_a_person() -> None:
    assert tool_command(rlx("check", "candidate", "c001")) == rlx("check", "candidate", "c001")
    assert tool_command(rlx("study", "baseline")) == rlx("launch", "baseline", "--phase", "baseline")
    assert tool_command(rlx("study", "report", "first")) == rlx("study", "report", "first")
    assert tool_command(rlx("study", "approve", needs_person=True)) is None
    assert tool_command(shell("git add -A && git commit")) is None


def test_the_whole_loop(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "a lab")
    lab.found()
    environment = {**os.environ, "RLX_ROOT": str(lab.root)}
    server = StdioServerParameters(command=sys.executable, args=["-m", "rlx", "mcp"], cwd=lab.root, env=environment)

    async def session() -> None:
        async with Client(stdio_client(server)) as client, Client(stdio_client(server)) as other:
            await drive(Agent(client), Agent(other))

    anyio.run(session)
