"""Finds the topics that a user's own words are about, or none if the words are about another field."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

from rlx.design.knowledge_card import cards
from rlx.design.recipe_index import recipe_title
from rlx.design.signals import MEANINGS, WORDS
from rlx.design.topic_table import TOPICS, WORKFLOWS, DesignTopic, Workflow, cards_of
from rlx.design.word_match import word_stems
from rlx.diagnose.rules import NAMES

LEAST_SCORE = 0.5
"""A sentence about something else shares at most common words with a topic."""
MOST_UNKNOWN = 0.25
"""A sentence about RL hardly uses words that no card and no topic uses."""
TEXT_WEIGHT = 0.5
"""A word of a topic's cards and recipes counts less than one of its own words."""
OTHER_FIELDS = word_stems(
    "app book browser button chatbot coffee company cook css customer database email employee film flight football "
    "guitar holiday homework hotel html invoice javascript kitchen landlord lawyer letter llm market menu mortgage "
    "movie music novel password phone photo price printer quiz react salary school server shop spreadsheet sql "
    "student tax travel university weather web website wedding"
)
"""Words that do not occur in questions about reinforcement learning, though the words around them do."""


@dataclass(frozen=True)
class TopicWords:
    """The stems of a topic's own words, and those of its cards and recipes."""

    topic: DesignTopic | Workflow
    own: frozenset[str]
    text: frozenset[str]


@cache
def _topics() -> tuple[TopicWords, ...]:
    known = {card.id: card for card in cards()}
    rows = []
    for topic in (*TOPICS, *WORKFLOWS):
        own = word_stems(f"{topic.words} {topic.title} {topic.name}")
        parts = []
        if isinstance(topic, DesignTopic):
            chosen = [known[card_id] for card_id in cards_of(topic.name)]
            parts += [f"{card.claim} {card.when} {card.action.change}" for card in chosen]
            parts += [recipe_title(recipe) for recipe in topic.recipes]
        rows.append(TopicWords(topic, own, word_stems(" ".join(parts)) - own))
    return tuple(rows)


@cache
def _vocabulary() -> frozenset[str]:
    """Return every stem that cards, topics, signals and rules use."""
    parts = [f"{card.not_when} {card.uncertainty} {card.check.metric}" for card in cards()]
    parts += [*MEANINGS.values(), *(word for words in WORDS.values() for word in words)]
    parts += [name.replace("_", " ") for name in NAMES]
    return word_stems(" ".join(parts)).union(*(row.own | row.text for row in _topics()))


@cache
def _counts() -> tuple[Counter[str], Counter[str]]:
    """Return in how many topics a stem occurs: among their own words, and anywhere."""
    own = Counter(word for row in _topics() for word in row.own)
    anywhere = Counter(word for row in _topics() for word in row.own | row.text)
    return own, anywhere


def nearest_topics(sentence: str, *, most: int = 2) -> list[DesignTopic | Workflow]:
    """Return the topics whose words fit a sentence best, each rare word counting more; none if nothing fits."""
    words = {word for word in word_stems(sentence) if not word.isdigit()}
    if not words or words & OTHER_FIELDS or len(words - _vocabulary()) > MOST_UNKNOWN * len(words):
        return []
    scored = [(_score(words, row), row.topic) for row in _topics()]
    scored.sort(key=lambda pair: -pair[0])
    return [topic for score, topic in scored[:most] if score >= LEAST_SCORE]


def _score(words: set[str], row: TopicWords) -> float:
    """Return how well words fit a topic. Two must be shared: one alone (`explain`, `fix`) also occurs elsewhere."""
    own, anywhere = _counts()
    shared = words & row.own
    mentioned = words & row.text
    if len(shared) + TEXT_WEIGHT * len(mentioned) < min(2, len(words)):
        return 0.0
    score = sum(1 / own[word] for word in shared)
    return score + sum(TEXT_WEIGHT / anywhere[word] for word in mentioned)
