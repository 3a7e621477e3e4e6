"""The evaluation cases for skills: well formed, queries for each skill, and as many near misses."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from rlx.design.topic_table import TOPICS, WORKFLOWS
from rlx.hosts.agents import packaged_skills
from rlx.hosts.agents.topic_skills import OTHERS, skill_of
from tests.hosts.plugin.topic_cases import calls_of_a_router, cases

CASES = sorted((packaged_skills.PLUGIN / "evals").glob("*/case.yaml"))
KEYS = {"schema_version", "name", "description", "tags", "execution", "graders"}
GRADERS = {"tool_used": {"type", "name", "tool", "input_match", "min", "max"}, "llm": {"type", "name", "criteria"}}


def read(path: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_a_case_is_as_claude_plugin_eval_reads_it(path: Any) -> None:
    case = read(path)
    assert case["name"] == path.parent.name
    refuse_other_format(case)


def refuse_other_format(case: dict[str, Any]) -> None:
    assert set(case) == KEYS
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
    for skill in packaged_skills.skills():
        assert len(tagged(skill.name)) >= 2
    assert len(tagged("near-miss")) == len(tagged("trigger")) >= 10
    assert len(tagged("pressure")) >= 3


def test_every_topic_has_a_skill_that_leads_to_it() -> None:
    known = {skill.name for skill in packaged_skills.skills()}
    assert {skill_of(topic) for topic in (*TOPICS, *WORKFLOWS)} <= known
    assert set(OTHERS) <= {topic.name for topic in TOPICS}


def is_passed(case: dict[str, Any], calls: list[str]) -> bool:
    """Grade tool calls as `claude plugin eval` does."""
    for grader in case["graders"]:
        count = sum(bool(re.search(grader["input_match"], call)) for call in calls)
        if not grader["min"] <= count <= grader.get("max", count):
            return False
    return True


def test_the_topics_cases_pass_with_a_router_that_asks_rlx_docs() -> None:
    """The router does not know the answers: it calls the skills of the two topics that `rlx docs QUESTION` names."""
    made = cases()
    assert len(made) == 3 * len(TOPICS) == 135
    failed = []
    for case in made:
        refuse_other_format(case)
        if not is_passed(case, calls_of_a_router(case["execution"]["prompt"])):
            failed.append(case["name"])
    assert len(failed) <= 1, failed  # a load test under stress is the near miss that is not told apart


def test_a_router_that_always_calls_a_skill_fails_the_near_misses() -> None:
    near = [case for case in cases() if "near-miss" in case["tags"]]
    assert len(near) == 45
    assert not any(is_passed(case, ["rlx:rl-design"]) for case in near)
