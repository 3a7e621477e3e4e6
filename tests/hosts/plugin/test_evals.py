"""The evaluation cases for skills: well formed, queries for each skill, and as many near misses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rlx.hosts import shipped

CASES = sorted((shipped.PLUGIN / "evals").glob("*/case.yaml"))
KEYS = {"schema_version", "name", "description", "tags", "execution", "graders"}
GRADERS = {"tool_used": {"type", "name", "tool", "input_match", "min", "max"}, "llm": {"type", "name", "criteria"}}


def read(path: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_a_case_is_as_claude_plugin_eval_reads_it(path: Any) -> None:
    case = read(path)
    assert set(case) == KEYS
    assert case["name"] == path.parent.name
    assert case["execution"]["prompt"]
    names = [grader["name"] for grader in case["graders"]]
    assert len(names) == len(set(names)) > 0
    for grader in case["graders"]:
        assert set(grader) <= GRADERS[grader["type"]]
        if grader.get("max") == 0:
            assert grader["min"] == 0  # Claude Code's own minimum is 1, and such a case could never pass


def tagged(tag: str) -> list[dict[str, Any]]:
    return [case for case in map(read, CASES) if tag in case["tags"]]


def test_every_skill_has_two_queries_and_half_of_all_are_near_misses() -> None:
    for skill in shipped.skills():
        assert len(tagged(skill.name)) >= 2
    assert len(tagged("near-miss")) == len(tagged("trigger")) >= 10
    assert len(tagged("pressure")) >= 3
