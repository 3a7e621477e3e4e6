"""The skills: within their limits, complete, and every command they name exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

import rlx
from rlx.hosts.agents import packaged_skills
from rlx.hosts.agents.packaged_skills import Skill
from rlx.hosts.cli.parser import parser_of

SKILLS = packaged_skills.skills()
MARKDOWN = [*(packaged_skills.PLUGIN / "skills").rglob("*.md"), *(packaged_skills.PLUGIN / "agents").glob("*.md")]
TOPICS = {  # what the earlier systems had a skill for → where it is now
    "audit task": "audit-task",
    "make contract": "contract",
    "define metrics": "metrics",
    "plan baseline": "baseline",
    "analyze run": "symptoms",
    "propose, validate": "candidates",
    "reward tuning": "reward-tuning",
    "reward reflection": "reflection",
    "reward engineering": "reward-engineering",
    "reward review": "reward-review",
    "curriculum": "curriculum-patterns",
    "randomisation probe": "probe",
    "randomisation design": "randomisation-design",
    "parallel batch, queue": "queue",
    "monitor": "monitoring",
    "audit results": "audit-results",
    "report, handoff": "report",
    "autoloop": "autoloop",
    "design topics": "design-topics",
}


DESIGN = (  # the forty design topics of the earlier systems → a word of the row that takes them now
    "states", "actions", "rewards", "MDP", "strategy", "architecture", "multi-agent", "hierarchy", "imitation",
    "environment", "simulator", "wrappers", "temporal", "robustness", "PettingZoo", "adversaries", "generated levels",
    "extractor", "actor", "critic", "memory", "replay", "losses", "offline data", "inverse RL", "preference models",
    "tracking", "hyperparameters", "distributed", "checkpoints", "RLHF", "evaluation", "out of distribution", "videos",
    "saliency", "values", "failures in training", "equilibria", "networks", "optimiser",
)  # fmt: skip


def ids(value: object) -> str | None:
    return value.name if isinstance(value, (Skill, Path)) else None


def test_there_are_at_most_twelve() -> None:
    assert 1 <= len(SKILLS) <= 12


@pytest.mark.parametrize("skill", SKILLS, ids=ids)
def test_front_matter_has_what_every_validator_accepts(skill: Skill) -> None:
    text = (skill.folder / "SKILL.md").read_text()
    front = yaml.safe_load(text.split("---\n")[1])
    assert set(front) == {"name", "description", "license", "metadata"}
    assert front["name"] == skill.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", skill.name)
    assert front["metadata"] == {"version": rlx.__version__}
    assert front["description"] == skill.description
    assert f'description: "{skill.description}"' in text


@pytest.mark.parametrize("skill", SKILLS, ids=ids)
def test_a_description_says_when_and_a_body_is_short(skill: Skill) -> None:
    assert skill.description.startswith("Use when ")
    assert len(skill.description) <= 220
    assert not set("<>") & set(skill.description)
    assert len(skill.body.splitlines()) < 200


@pytest.mark.parametrize("skill", SKILLS, ids=ids)
def test_references_are_one_level_deep_and_all_are_named(skill: Skill) -> None:
    named = set(re.findall(r"`references/([\w-]+)\.md`", skill.body))
    assert named == {path.stem for path in skill.references}
    for path in skill.references:
        assert "references/" not in path.read_text()
    for other in re.findall(r"skills? `(rl-[\w-]+)`", skill.body):
        assert other in {one.name for one in SKILLS}


def test_every_topic_of_the_earlier_systems_is_covered() -> None:
    assert set(TOPICS.values()) <= {topic.name for topic in packaged_skills.topics()}


def test_every_design_question_has_a_row_that_says_where_it_goes() -> None:
    skill = next(one for one in SKILLS if one.name == "rl-design")
    topics = [line.split("|")[1] for line in skill.body.splitlines() if line.startswith("| ")]
    assert [word for word in DESIGN if not any(word in topic for topic in topics)] == []


def test_topics_have_one_name_and_a_title() -> None:
    names = [topic.name for topic in packaged_skills.topics()]
    assert len(names) == len(set(names))
    assert all(topic.title for topic in packaged_skills.topics())


def command_lines() -> list[tuple[str, str]]:
    """Return every `rlx …` line of the code blocks, and every inline one that is a whole command."""
    found = []
    for path in MARKDOWN:
        text = path.read_text()
        for block in re.findall(r"```sh(?: run)?\n(.*?)```", text, flags=re.S):
            found += [(path.stem, line) for line in block.splitlines() if line]
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        found += [(path.stem, span) for span in re.findall(r"`(rlx [^`]+)`", prose.replace("\n", " "))]
    return found


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_every_command_line_parses_against_the_real_cli(page: str, line: str) -> None:
    assert line.startswith("rlx "), f"{page}: skills call rlx only"
    words = shlex.split(line)[1:]
    if len(words) == 1 or words == ["study", "approve"]:  # named in a sentence, not typed
        parser_of(words[0])
        return
    if words[-1] == "--help":
        words = words[:-1]
    parser_of(words[0]).parse_args(words[1:])
