"""Claude Code and Codex add the marketplace, install the plug-in and see what is in it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.agents import packaged_skills
from tests.hosts_real.conftest import PLUGIN, ROOT, Client

MOST_TOKENS = 700
SKILLS = {skill.name for skill in packaged_skills.skills()}


@pytest.mark.parametrize("market", [ROOT, PLUGIN.parent], ids=["repository", "package"])
def test_claude_code_installs_and_lists_it(claude: Client, market: Path) -> None:
    claude.run("plugin", "marketplace", "add", str(market))
    claude.run("plugin", "install", "rlx@rlx")
    assert re.search(r"rlx@rlx.*enabled", claude.run("plugin", "list").stdout, flags=re.S)
    told = claude.run("plugin", "details", "rlx").stdout
    assert f"Skills ({len(SKILLS)})" in told
    assert all(name in told for name in SKILLS)
    assert "Agents (3)" in told
    assert "Hooks (1)  PreToolUse" in told
    assert "MCP servers (1)  rlx" in told
    always = re.search(r"Always-on:\s+~([\d,]+) tok", told)
    assert always is not None
    assert int(always[1].replace(",", "")) <= MOST_TOKENS
    claude.run("plugin", "uninstall", "rlx@rlx")


def test_claude_code_connects_to_the_server(claude: Client, tmp_path: Path) -> None:
    claude.run("plugin", "marketplace", "add", str(ROOT))
    claude.run("plugin", "install", "rlx@rlx")
    assert re.search(r"rlx.*Connected", claude.run("mcp", "list", cwd=tmp_path).stdout)


@pytest.mark.parametrize("market", [ROOT, PLUGIN.parent], ids=["repository", "package"])
def test_codex_installs_and_lists_it(codex: Client, market: Path) -> None:
    codex.run("plugin", "marketplace", "add", str(market))
    codex.run("plugin", "add", "rlx@rlx")
    assert re.search(r"rlx@rlx\s+installed, enabled", codex.run("plugin", "list").stdout)
    [server] = json.loads(codex.run("mcp", "list", "--json").stdout)
    assert (server["name"], server["transport"]["args"], server["enabled"]) == ("rlx", ["mcp"], True)


def test_codex_loads_the_skills_and_the_hook(codex: Client) -> None:
    codex.run("plugin", "marketplace", "add", str(ROOT))
    codex.run("plugin", "add", "rlx@rlx")
    told = app_server(codex, ["skills/list", {"cwds": [str(ROOT)]}], ["hooks/list", {"cwds": [str(ROOT)]}])
    skills, hooks = json.dumps(told[0]), json.dumps(told[1])
    assert all(f"rlx:{name}" in skills for name in SKILLS)
    assert "gate.sh" in hooks
    assert '"trustStatus": "untrusted"' in hooks  # a person trusts it in /hooks; rlx doctor says so


def app_server(codex: Client, *asked: list[Any]) -> list[Any]:
    """Ask Codex's own loader what it sees."""
    hello = {"clientInfo": {"name": "t", "version": "0"}, "capabilities": {"experimentalApi": True}}
    server = subprocess.Popen([str(codex.program), "app-server"], cwd=ROOT, env=codex.environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    messages: list[dict[str, Any]] = [{"id": 0, "method": "initialize", "params": hello}, {"method": "initialized"}]
    messages += [{"id": number, "method": method, "params": params} for number, (method, params) in enumerate(asked, 1)]
    answers: dict[int, Any] = {}
    try:
        for message in messages:
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            while "id" in message and message["id"] not in answers:
                told = json.loads(server.stdout.readline())
                answers[told.get("id", -1)] = told.get("result", told)
    finally:
        server.kill()
        server.communicate()
    return [answers[number] for number in range(1, len(asked) + 1)]
