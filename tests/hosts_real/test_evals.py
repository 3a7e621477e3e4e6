"""The evaluation cases in the real `claude plugin eval`: every case loads, and its graders tell right from wrong.

The model is scripted, so this says nothing about how well the skills are triggered: no real model has run them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def evaluated(claude: Client, model: MockModel, *words: str) -> dict[str, bool]:
    """Run cases with the real client and return which passed."""
    out = claude.home / "out"
    done = claude.run("plugin", "eval", str(PLUGIN), "--runs", "1", "--ablation", "none", "-j", "4", "--json",
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
