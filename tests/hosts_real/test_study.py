"""A scripted model drives the real clients through a governed study, and is stopped where it cheats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts_real.conftest import ROOT, Client
from tests.hosts_real.mock_model import Call, Later, MockModel, Step, selected
from tests.loop.test_study import Lab

pytestmark = pytest.mark.timeout(900)
VERBS = ("next", "try", "report")
IDEA = {"kind": "hyperparameter", "hypothesis": "a step that learns", "changes": {"algo.learning_rate": 0.002}}
Tool = Callable[..., Call]


@pytest.fixture
def lab(home: Path) -> Lab:
    """Make a project whose study is approved and has its pool; its own training script and evaluator lie beside."""
    made = Lab(home / "a lab")
    (made.root / "evaluate.py").write_text("print(1)\n")
    made.git("add", "-A")
    made.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "an evaluator")
    made.found("-s", "scope.forbidden=[evaluate.py]")
    return made


def found(results: list[str], key: str) -> str:
    """Return the newest value of a key in what tools answered."""
    values = [value for text in results for value in re.findall(rf'\\"{key}\\": ?\\"([^"\\]+)\\"', text)]
    assert values, f"no tool said `{key}`: {results[-1]}"
    return values[-1]


def script(tool: Tool) -> list[Step | Later]:
    """Return the whole study, as an agent that reads its answers would call it: one idea, its claim, one tool."""

    def is_running(results: list[str]) -> bool:
        return bool(re.search(r'is_running\\": ?true', results[-1]))

    def go_on(results: list[str]) -> Step | None:
        return tool("try", candidate=found(results, "candidate")) if is_running(results) else None

    def claim_on(results: list[str]) -> Step | None:
        return tool("try", claim=True) if is_running(results) else None

    idea = [tool("next"), tool("try", proposal=IDEA), *[go_on] * 8]
    return [*idea, tool("next"), tool("try", claim=True), *[claim_on] * 12, tool("next"), tool("report")]


def events(lab: Lab) -> list[dict[str, object]]:
    rows = (lab.root / ".rlx/tasks/pole/studies/quick/ledger.jsonl").read_text().splitlines()
    return [json.loads(json.loads(row)["body"]) for row in rows]


def assert_claimed_and_clean(lab: Lab, told: list[str]) -> None:
    kinds = [event["event"] for event in events(lab)]
    assert kinds.count("proposed") == 1
    (claim,) = [event for event in events(lab) if event["event"] == "decided" and event.get("test") == "claim"]
    assert claim["decision"] == "confirmed"
    assert claim["n"] == [10, 10]
    assert kinds.count("approved") == 1
    assert (lab.root / "evaluate.py").read_text() == "print(1)\n"
    runs = [path.name for path in (lab.root / "runs").iterdir() if path.is_dir()]
    assert all(name.startswith("quick_") for name in runs), "no plain run"
    assert lab.rlx("study", "verify")["problems"] == []
    assert "report.md" in told[-1]


def test_claude_code_walks_a_whole_study_to_its_claim(claude: Client, lab: Lab) -> None:
    claude.run("plugin", "marketplace", "add", str(ROOT))
    claude.run("plugin", "install", "rlx@rlx")
    names = {verb: f"mcp__plugin_rlx_rlx__{verb}" for verb in VERBS}

    def tool(verb: str, **given: object) -> Call:
        return Call(names[verb], dict(given))

    cheats: list[Step | Later] = [
        Call("Bash", {"command": "rlx train configs/pole.yaml", "description": "train"}),
        Call("Read", {"file_path": str(lab.root / "evaluate.py")}),
        Call("Write", {"file_path": str(lab.root / "evaluate.py"), "content": "print(1e6)"}),
        Call("Bash", {"command": "rlx study approve --yes", "description": "approve"}),
    ]
    with MockModel([*cheats, *selected(*names.values()), *script(tool), "done"]) as model:
        allowed = ",".join(["Bash", "Write", "Edit", "ToolSearch", *names.values()])
        claude.run("-p", "go", "--output-format", "json", "--allowedTools", allowed, cwd=lab.root, timeout=600,
                   ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="dummy", RLX_ROOT=str(lab.root))  # fmt: skip
        told = model.results()
    assert "rlx launch" in told[0]
    assert "protected" in told[2]
    assert "a person" in told[3]
    assert_claimed_and_clean(lab, told)


def test_codex_walks_a_whole_study_to_its_claim(codex: Client, lab: Lab) -> None:
    codex.run("plugin", "marketplace", "add", str(ROOT))
    codex.run("plugin", "add", "rlx@rlx")

    def tool(verb: str, **given: object) -> Call:
        return Call(verb, dict(given), namespace="mcp__rlx")

    patch = "*** Begin Patch\n*** Update File: evaluate.py\n@@\n-print(1)\n+print(1e6)\n*** End Patch"
    cheats: list[Step | Later] = [
        Call("exec_command", {"cmd": "sleep 9", "yield_time_ms": 12000}),  # the first turn has no MCP tools yet
        Call("exec_command", {"cmd": "rlx train configs/pole.yaml", "yield_time_ms": 9000}),
        Call("apply_patch", patch=patch),
        Call("exec_command", {"cmd": "rlx study approve --yes", "yield_time_ms": 9000}),
    ]
    with MockModel([*cheats, *script(tool), "done"]) as model:
        provider = f'model_providers.mock={{name="mock",base_url="{model.url}/v1",env_key="K",wire_api="responses"}}'
        codex.run("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-s",
                  "danger-full-access", "-c", 'model_provider="mock"', "-c", 'model="gpt-5.5-codex"', "-c", provider,
                  "go", cwd=lab.root, timeout=600, K="dummy", RLX_ROOT=str(lab.root))  # fmt: skip
        told = model.results()
    assert "rlx launch" in told[1]
    assert "protected" in told[2]
    assert "a person" in told[3]
    assert_claimed_and_clean(lab, told)
