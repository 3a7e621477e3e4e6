"""Evaluation cases for the design topics, in the format of `claude plugin eval`: two questions and a near miss each."""

from __future__ import annotations

from typing import Any

from rlx.design.topic_search import sure_topics
from rlx.design.topic_table import TOPICS
from rlx.hosts.agents.topic_skills import skill_of
from tests.design.more_sentences import NEAR_MISSES_BY_TOPIC
from tests.design.sentences import SENTENCES


def cases() -> list[dict[str, Any]]:
    """Return every case. A question must call the skill of its topic, and a near miss must call none."""
    made = []
    for topic in TOPICS:
        skill = skill_of(topic)
        for number, sentence in enumerate(SENTENCES[topic.name], start=1):
            grader = {"type": "tool_used", "name": "fires", "tool": "Skill", "input_match": skill, "min": 1}
            made.append(_case(f"topic-{topic.name}-{number}", sentence, ["topic", skill], grader))
        silent = {"type": "tool_used", "name": "silent", "tool": "Skill", "input_match": "rlx:rl-", "min": 0, "max": 0}
        near = NEAR_MISSES_BY_TOPIC[topic.name]
        made.append(_case(f"topic-{topic.name}-near-miss", near, ["topic", "near-miss"], silent))
    return made


def _case(name: str, prompt: str, tags: list[str], grader: dict[str, Any]) -> dict[str, Any]:
    execution = {"prompt": prompt, "max_turns": 3, "timeout_seconds": 120, "allowed_tools": ["Read", "Skill"]}
    return {
        "schema_version": "1.0",
        "name": name,
        "description": "a design topic",
        "tags": tags,
        "execution": execution,
        "graders": [grader],
    }


def calls_of_a_router(prompt: str) -> list[str]:
    """Return the skills that a model calls if it asks `rlx docs` which topics a question is about."""
    return list(dict.fromkeys(f"rlx:{skill_of(topic)}" for topic in sure_topics(prompt)))
