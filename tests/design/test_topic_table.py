"""The table of topics is complete: cards, a check, a recipe or a reason, and a command."""

from __future__ import annotations

import pytest

from rlx.design.card_lint import rule_ids
from rlx.design.recipe_index import recipe_names
from rlx.design.topic_table import TOPICS, WORKFLOWS, cards_of, table_rows
from rlx.hosts.cli.commands import COMMANDS


def test_there_are_45_topics_and_5_workflows() -> None:
    names = [topic.name for topic in TOPICS]
    assert len(names) == len(set(names)) == 45
    assert len(WORKFLOWS) == 5
    assert {topic.workflow for topic in TOPICS} == {workflow.name for workflow in WORKFLOWS}


@pytest.mark.parametrize("row", list(table_rows()), ids=lambda row: row["topic"])
def test_every_row_is_filled(row: dict[str, str]) -> None:
    assert all(row.values())
    words = row["command"].split()
    assert words[0] == "rlx"
    assert words[1] in COMMANDS


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_a_topic_has_cards_a_known_check_and_a_recipe_or_a_reason(topic: object) -> None:
    row = next(row for row in TOPICS if row is topic)
    assert cards_of(row.name)
    assert bool(row.recipes) != bool(row.why_no_recipe)
    assert set(row.recipes) <= set(recipe_names())
    for check in row.check.split(", "):
        assert check in rule_ids() or check.split()[0] == "rlx"


def test_every_recipe_belongs_to_a_topic() -> None:
    assert {recipe for topic in TOPICS for recipe in topic.recipes} == set(recipe_names())


def test_the_sections_of_the_workflows_are_those_of_a_spec() -> None:
    from rlx.design.problem_spec import ProblemSpec

    sections = {section for workflow in WORKFLOWS for section in workflow.sections}
    assert sections <= set(ProblemSpec.model_fields)
