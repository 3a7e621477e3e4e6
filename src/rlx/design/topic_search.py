"""Finds the topics that a user's own words are about, or none if the words are about another field."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache

from rlx.design.knowledge_card import cards
from rlx.design.recipe_index import recipe_path
from rlx.design.signals import MEANINGS, WORDS
from rlx.design.topic_table import TOPICS, WORKFLOWS, DesignTopic, Workflow, cards_of
from rlx.design.word_match import word_stems
from rlx.diagnose.rules import NAMES

MOST_UNKNOWN = 0.2
MOST_UNKNOWN_ANCHORED = 0.5
"""A sentence about RL hardly uses words that no card and no topic uses. It may use more if it has an anchor."""
TEXT_WEIGHT = 0.3
"""A word of a topic's cards and recipes counts less than one of its own words."""
ENV_NAME = re.compile(r"\S*(?:\.py\b|-v\d)\S*")
"""`CartPole-v1` or `envs/boss.py:BossFight`: its words say nothing about the question."""
EVERYDAY = word_stems("agent policy train learn rl model")
EVERYDAY_WEIGHT = 0.5
"""Words of nearly every question about RL tell little, though some topics list them."""
SYNONYM_WEIGHT = 0.7
"""A word that no topic uses is replaced by its synonyms, which count a little less."""
SHARING = 0.4
"""How far the topics that use a word share its weight: 0 not at all, 1 in full."""
LEAST_SHARED = 1.6
"""The weights of the words that a sure topic shares: two of its own words, or one and two of its text. One alone
(`explain`) also occurs elsewhere."""
OTHER_FIELDS = word_stems(
    "app bank bert birthday book boosting boss browser cat chatbot chemical children churn classifier coffee "
    "commit company contract cook css database dockerfile dog email employee essay film flight football guitar "
    "hiking holiday homework hotel html insurance invoice javascript kid kitchen kubernetes landlord laptop "
    "lawyer letter llm loan logistic loyalty market meeting menu mortgage movie mri music novel parcel "
    "passport password pet phone photo price printer quiz reactjs recipe regression rest retirement roof salary school "
    "server shop shopping song spreadsheet sql stamp startup student tax theatre tour travel university weather "
    "web website wedding wifi workout"
)
"""Words of other fields: reinforcement learning may use the words around them, but not these. A word that a card uses
too (`print`, `student`) does not count."""
ANCHORS = word_stems(
    "action actor agent controller critic env environment episode gamma gym gymnasium learner mujoco observation "
    "policy ppo reinforcement replay reward rl robot rollout sac seed simulation simulator trajectory training"
)
"""Words that hardly any other field uses together: a sentence with one of them may have more unknown words."""
SYNONYMS = tuple(
    word_stems(group)
    for group in (
        "measurement reading signal sensor observation",
        "imu gyro accelerometer encoder sensor",
        "credit reward",
        "incentive reward",
        "score return",
        "mp4 avi clip video",
        "picture photo rgb webcam image camera",
        "expensive pricey costly slow",
        "inexpensive quick fast cheap",
        "lag latency delay",
        "collide bump collision obstacle",
        "hit crash collision",
        "teammate partner colleague crew agents",
        "enemy rival opponent adversary",
        "person human people",
        "tutor mentor teacher expert",
        "show demo demonstration",
        "copy mimic imitate imitation",
        "jerky shake jitter oscillate unstable",
        "blow explode diverge nan",
        "stall stagnate plateau flat",
        "decay drop collapse",
        "box folder disk save",
        "power outage interrupted resume",
        "pc computer machine",
        "notebook workstation machine",
        "nvidia cuda gpu",
        "hpc slurm cluster",
        "coder script code",
        "labeller rater annotator",
        "vote prefer preference",
        "opinion judge preference",
        "chart graph plot curve",
        "trustworthy trust reliable",
        "repeatable reproducible deterministic seed",
        "identical equal deterministic",
        "go2 a1 spot anymal quadruped",
        "atlas digit h1 cassie humanoid",
        "turtlebot husky jackal mobile robot",
        "plug connector socket usb insertion peg",
        "shirt laundry towel cloth deformable",
        "cup mug bottle object",
        "glove fingertip hand dexterous",
        "milestone waypoint subgoal",
        "planner manager",
        "brain network policy",
        "controller policy",
        "rule strategy policy",
        "cue hint memory",
        "recall remember memory",
        "logged history recorded dataset",
        "csv parquet json file format",
        "price cost",
        "forbidden disallowed invalid mask",
        "magnitude range scale",
        "standardise scale normalise",
        "frame picture image",
        "payload mass",
        "slippery friction",
        "rain fog snow weather conditions shift",
        "tweak adjust tune",
        "setting parameter",
        "beginner easy",
        "expert demonstration",
        "wander explore exploration",
        "stuck plateau",
        "cheat exploit hacking",
        "cooperate collaborate team",
        "compete versus competitive",
        "league elo rating",
        "sensitive brittle robust",
        "reason why explain",
        "highlight saliency",
        "average mean",
        "spread variance deviation",
        "size capacity",
        "core cpu",
        "bug defect wrong",
    )
)
"""Groups of words with similar meanings, for words that no topic uses."""


@dataclass(frozen=True)
class TopicWords:
    """The weights of the stems of a topic, and which of them are its own words."""

    topic: DesignTopic | Workflow
    own: frozenset[str]
    weights: dict[str, float]


@cache
def _topics() -> tuple[TopicWords, ...]:
    known = {card.id: card for card in cards()}
    rows = []
    for topic in (*TOPICS, *WORKFLOWS):
        own = word_stems(f"{topic.words} {topic.title} {topic.name}")
        parts = []
        if isinstance(topic, DesignTopic):
            for card in (known[card_id] for card_id in cards_of(topic.name)):
                parts += [card.claim, card.when, card.not_when, card.action.change, card.uncertainty]
            parts += [_explanations(recipe_path(recipe).read_text(encoding="utf-8")) for recipe in topic.recipes]
            parts += [topic.check.replace("_", " "), topic.why_no_recipe]
        weights = {**dict.fromkeys(word_stems(" ".join(parts)), TEXT_WEIGHT), **dict.fromkeys(own, 1.0)}
        rows.append(TopicWords(topic, own, weights))
    return tuple(rows)


def _explanations(source: str) -> str:
    """Return the docstrings of a recipe."""
    return " ".join(source.split('"""')[1::2])


@cache
def _vocabulary() -> frozenset[str]:
    """Return every stem that cards, topics, signals and rules use."""
    parts = [f"{card.not_when} {card.uncertainty} {card.check.metric}" for card in cards()]
    parts += [*MEANINGS.values(), *(word for words in WORDS.values() for word in words)]
    parts += [name.replace("_", " ") for name in NAMES]
    parts += [f"{card.claim} {card.when} {card.action.change}" for card in cards()]
    return word_stems(" ".join(parts)).union(*(row.own for row in _topics()))


@cache
def _rarities() -> dict[str, float]:
    """Return the rarity of each stem: the fewer topics use it, the more it tells about a question."""
    topics = Counter(word for row in _topics() for word in row.weights)
    total_weight: Counter[str] = Counter()
    for row in _topics():
        total_weight.update(row.weights)
    rarities = {}
    for word, count in topics.items():
        inverse_frequency = math.log(1 + len(_topics()) / count)
        rarities[word] = inverse_frequency / total_weight[word] ** SHARING
    return rarities


def sure_topics(sentence: str, *, most: int = 2) -> list[DesignTopic | Workflow]:
    """Return the topics that surely fit a sentence, the best first; none if it may be about another field."""
    words = _words(sentence)
    if not words or _is_other_field(words):
        return []
    best = _ranked(words)[:most]
    if not any(_is_sure(words, row) for row in best):
        return []
    return [row.topic for row in best]


def closest_topics(sentence: str, *, most: int = 2) -> list[DesignTopic | Workflow]:
    """Return the topics that share the most telling words with a sentence, even if that may be chance."""
    words = _words(sentence)
    best = _ranked(words)[:most]
    if words & _other_fields() and not any(_is_sure(words, row) for row in best):
        return []
    return [row.topic for row in best]


def _words(sentence: str) -> frozenset[str]:
    """Return the stems of a sentence, without numbers and without names of environments."""
    return frozenset(word for word in word_stems(ENV_NAME.sub(" ", sentence)) if not word.isdigit())


@cache
def _other_fields() -> frozenset[str]:
    return OTHER_FIELDS - _vocabulary()


def _is_other_field(words: frozenset[str]) -> bool:
    """Return whether a sentence has a word of another field, or too many that no card and no topic uses."""
    if words & _other_fields():
        return True
    limit = MOST_UNKNOWN
    if words & ANCHORS:
        limit = MOST_UNKNOWN_ANCHORED
    unknown = words - (_vocabulary() - OTHER_FIELDS)
    return len(unknown) > limit * len(words)


def _ranked(words: frozenset[str]) -> list[TopicWords]:
    """Return the topics that share a word with a sentence, the best first."""
    rarities = _rarities()
    asked = _with_synonyms(words)
    scored = []
    for row in _topics():
        shared = asked.keys() & row.weights.keys()
        if shared:
            score = sum(asked[word] * row.weights[word] * rarities[word] for word in shared)
            scored.append((score, row))
    scored.sort(key=lambda pair: -pair[0])
    return [row for _, row in scored]


def _with_synonyms(words: frozenset[str]) -> dict[str, float]:
    """Return the weights of words. One that no topic uses is replaced by its synonyms."""
    used = _rarities().keys()
    weights = dict.fromkeys(words & used, 1.0)
    weights.update(dict.fromkeys(words & used & EVERYDAY, EVERYDAY_WEIGHT))
    for word in words - used:
        for group in SYNONYMS:
            if word in group:
                weights.update(dict.fromkeys((group & used) - weights.keys(), SYNONYM_WEIGHT))
    return weights


def _is_sure(words: frozenset[str], row: TopicWords) -> bool:
    telling = words - EVERYDAY
    shared = sum(row.weights.get(word, 0.0) for word in telling)
    return shared >= max(1.0, min(LEAST_SHARED, len(telling)))
