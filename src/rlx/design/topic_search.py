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
MOST_UNKNOWN = 0.2
MOST_UNKNOWN_ANCHORED = 0.5
"""A sentence about RL hardly uses words that no card and no topic uses. It may use more if it has an anchor."""
TEXT_WEIGHT = 0.5
"""A word of a topic's cards and recipes counts less than one of its own words."""
OTHER_FIELDS = word_stems(
    "app bank bert birthday book boosting boss browser cat chatbot chemical children churn classifier coffee "
    "commit company contract cook css database dockerfile dog email employee essay film flight football guitar "
    "hiking holiday homework hotel html insurance invoice javascript kid kitchen kubernetes landlord laptop "
    "lawyer letter llm loan logistic loyalty market meeting menu mortgage movie mri music novel parcel party "
    "passport password pet phone photo price printer quiz reactjs recipe regression retirement roof salary school "
    "server shop shopping song spreadsheet sql stamp startup student tax theatre tour travel university weather "
    "web website wedding wifi workout"
)
"""Words that do not occur in questions about reinforcement learning, though the words around them do."""
ANCHORS = word_stems(
    "action actor agent controller critic env environment episode gamma gym gymnasium learner mujoco observation "
    "policy ppo reinforcement replay reward rl robot rollout sac seed simulation simulator trajectory training"
)
"""Words that hardly any other field uses together: a sentence with one of them may have more unknown words."""


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
    if not words or words & OTHER_FIELDS or _is_foreign(words):
        return []
    scored = [(_score(words, row), row.topic) for row in _topics()]
    scored.sort(key=lambda pair: -pair[0])
    return [topic for score, topic in scored[:most] if score >= LEAST_SCORE]


def closest_topic(sentence: str) -> DesignTopic | Workflow | None:
    """Return the topic that shares the most telling words with a sentence, for a hint; none if it shares no word."""
    words = set(word_stems(sentence))
    own, _ = _counts()
    scored = [(sum(1 / own[word] for word in words & row.own), row.topic) for row in _topics()]
    score, topic = max(scored, key=lambda pair: pair[0])
    if not score or words & OTHER_FIELDS:
        return None
    return topic


def _is_foreign(words: set[str]) -> bool:
    """Return whether too many words are unknown to every card and topic."""
    limit = MOST_UNKNOWN
    if words & ANCHORS:
        limit = MOST_UNKNOWN_ANCHORED
    return len(words - _vocabulary()) > limit * len(words)


def _score(words: set[str], row: TopicWords) -> float:
    """Return how well words fit a topic. Two must be shared: one alone (`explain`, `fix`) also occurs elsewhere."""
    own, anywhere = _counts()
    shared = words & row.own
    mentioned = words & row.text
    if len(shared) + TEXT_WEIGHT * len(mentioned) < min(1.5, len(words)):
        return 0.0
    score = sum(1 / own[word] for word in shared)
    return score + sum(TEXT_WEIGHT / anywhere[word] for word in mentioned)
