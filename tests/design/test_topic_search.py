"""A user's own words lead to the right topic among the first two, and words about another field lead to none."""

from __future__ import annotations

import pytest

from rlx.design.topic_search import nearest_topics
from rlx.design.topic_table import TOPICS, WORKFLOWS
from tests.design.more_sentences import NEAR_MISSES_BY_TOPIC, PLAIN
from tests.design.sentences import NEAR_MISSES, SENTENCES


def found(sentence: str) -> list[str]:
    return [topic.name for topic in nearest_topics(sentence)]


def test_every_topic_has_three_sentences_and_a_near_miss() -> None:
    names = {topic.name for topic in TOPICS}
    assert set(SENTENCES) == names | {workflow.name for workflow in WORKFLOWS}
    assert all(len(sentences) == 2 for sentences in SENTENCES.values())
    assert set(PLAIN) == set(NEAR_MISSES_BY_TOPIC) == names


@pytest.mark.parametrize(("name", "sentence"), [(name, text) for name, pair in SENTENCES.items() for text in pair])
def test_a_users_words_lead_to_the_topic(name: str, sentence: str) -> None:
    assert name in found(sentence)


def test_sentences_that_did_not_choose_the_words_lead_to_their_topics_too() -> None:
    missed = {name: sentence for name, sentence in PLAIN.items() if name not in found(sentence)}
    assert len(missed) <= 2, missed


def test_words_of_other_fields_lead_nowhere() -> None:
    assert {sentence: found(sentence) for sentence in NEAR_MISSES if found(sentence)} == {}
    wrong = {sentence: found(sentence) for sentence in NEAR_MISSES_BY_TOPIC.values() if found(sentence)}
    assert len(wrong) <= 1, wrong  # a dog in training
