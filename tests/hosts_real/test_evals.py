"""The evaluation cases in the real `claude plugin eval`: every case loads, and its graders tell right from wrong.

The model is scripted, so this says nothing about how well the skills are triggered: no real model has run them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hosts.plugin.topic_cases import calls_of_a_router, cases
from tests.hosts_real.conftest import PLUGIN, Client
from tests.hosts_real.mock_model import Call, MockModel, Step

pytestmark = pytest.mark.timeout(600)
CASES = [yaml.safe_load(path.read_text()) for path in sorted((PLUGIN / "evals").glob("*/case.yaml"))]
SKILL_OF = {
    case["execution"]["prompt"]: next(tag for tag in case["tags"] if tag.startswith("rl-"))
    for case in CASES
    if "trigger" in case["tags"]
}


class Router(MockModel):
    """A model that calls the skill a query is meant for, or (`is_wrong`) always the same one."""

    def __init__(self, *, is_wrong: bool) -> None:
        super().__init__([])
        self.is_wrong = is_wrong

    def next_step(self, body: dict[str, Any]) -> Step:
        said = json.dumps(body["messages"], ensure_ascii=False)
        if "tool_result" in said:
            return "done"
        meant = next((skill for prompt, skill in SKILL_OF.items() if json.dumps(prompt)[1:-1] in said), None)
        skill = "rl-audit" if self.is_wrong else meant
        return Call("Skill", {"skill": f"rlx:{skill}"}) if skill else "done"


class DocsRouter(MockModel):
    """A model that calls the first skill of the topics that `rlx docs QUESTION` names. It does not know the answers."""

    def __init__(self, prompts: list[str]) -> None:
        super().__init__([])
        self.prompts = prompts

    def next_step(self, body: dict[str, Any]) -> Step:
        said = json.dumps(body["messages"], ensure_ascii=False)
        asked = next((prompt for prompt in self.prompts if json.dumps(prompt, ensure_ascii=False)[1:-1] in said), "")
        calls = calls_of_a_router(asked)
        if "tool_result" in said or not calls:
            return "done"
        return Call("Skill", {"skill": calls[0]})


def evaluated(claude: Client, model: MockModel, *words: str, plugin: Path = PLUGIN) -> dict[str, bool]:
    """Run cases with the real client and return which passed."""
    out = claude.home / "out"
    done = claude.run("plugin", "eval", str(plugin), "--runs", "1", "--ablation", "none", "-j", "4", "--json",
                      "--trust-plugin", "--no-publish", "--output-dir", str(out), *words, cwd=claude.home, code=None,
                      timeout=500, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="dummy")  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    cases = json.loads(done.stdout)["cases"]
    assert not [case for case in cases if case["arms"]["with"][0]["error"]]
    return {case["name"]: case["aggregates"]["passRate"] == 1 for case in cases}


def test_every_case_loads_and_passes_with_a_model_that_routes_as_meant(claude: Client) -> None:
    with Router(is_wrong=False) as model:
        passed = evaluated(claude, model, "--tag", "trigger", "near-miss")
    assert set(passed) == {case["name"] for case in CASES if {"trigger", "near-miss"} & set(case["tags"])}
    assert [name for name, is_passed in passed.items() if not is_passed] == []


def test_a_model_that_always_calls_a_skill_fails(claude: Client) -> None:
    with Router(is_wrong=True) as model:
        passed = evaluated(claude, model, "--case", "near-miss-a*")
        passed |= evaluated(claude, model, "--case", "rl-reward-1")
    assert len(passed) >= 3
    assert not any(passed.values())


def test_the_pressure_cases_load(claude: Client, tmp_path: Path) -> None:
    with Router(is_wrong=False) as model:
        passed = evaluated(claude, model, "--tag", "pressure")
    assert len(passed) == len([case for case in CASES if "pressure" in case["tags"]])  # a judge is a model: not scored


def test_questions_on_topics_pass_in_the_real_client(claude: Client, tmp_path: Path) -> None:
    """Every fifteenth topic: two questions and a near miss each. All 45 are graded without the client elsewhere."""
    plugin = tmp_path / "plugin"
    shutil.copytree(PLUGIN, plugin)
    shutil.rmtree(plugin / "evals")
    chosen = [case for index, case in enumerate(cases()) if index // 3 % 15 == 4]
    for case in chosen:
        folder = plugin / "evals" / case["name"]
        folder.mkdir(parents=True)
        (folder / "case.yaml").write_text(yaml.safe_dump(case, sort_keys=False))
    with DocsRouter([case["execution"]["prompt"] for case in chosen]) as model:
        passed = evaluated(claude, model, "--tag", "topic", plugin=plugin)
    assert set(passed) == {case["name"] for case in chosen}
    assert all(passed.values()), passed
