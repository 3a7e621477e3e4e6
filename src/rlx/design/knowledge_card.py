"""Knowledge cards: one rule of RL practice each, with its conditions, a check, its evidence and its sources.

Cards are YAML lists in `cards/`. A card fires if one of its signals holds. A signal that needs an unknown value does
not hold. Evidence: A is replicated or generally accepted, B rests on one work, C is practice without a citable source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from rlx.config.expression import Expression
from rlx.design.signals import Signals
from rlx.design.word_match import word_stems, words_by_stem
from rlx.errors import NotFound, did_you_mean

FOLDER = Path(__file__).parent / "cards"
SOURCES = "sources.yaml"
PRACTICE = "practice"
EVIDENCE = {"A": "replicated or generally accepted", "B": "one work, or few tasks", "C": PRACTICE}


class CardChange(BaseModel):
    """What a card asks for: the surface to change and the change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    surface: str = Field(min_length=1)
    change: str = Field(min_length=1)


class CardCheck(BaseModel):
    """How to see whether a card's change helped: a metric or command, and its threshold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str = Field(min_length=1)
    threshold: str = Field(min_length=1)


class KnowledgeCard(BaseModel):
    """One rule. `fires` and `silent` are signals of a case in which it must and must not apply."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)+$")
    topics: tuple[str, ...] = Field(min_length=1)
    claim: str = Field(min_length=20)
    when: str = Field(min_length=5)
    not_when: str = Field(min_length=5)
    signals: tuple[str, ...] = Field(min_length=1)
    action: CardChange
    check: CardCheck
    evidence: Literal["A", "B", "C"]
    sources: tuple[str, ...]
    uncertainty: str
    fires: dict[str, float]
    silent: dict[str, float]

    def matches(self, signals: Mapping[str, float]) -> tuple[str, ...]:
        """Return the signals of this card that hold. One with a value that is not known does not hold."""
        holding = []
        for text in self.signals:
            condition = Expression(text)
            if condition.names <= set(signals) and condition.holds(signals):
                holding.append(text)
        return tuple(holding)

    def cite(self) -> list[str]:
        """Return the full citations, or the word that marks a rule without one."""
        known = citations()
        return [known[key] for key in self.sources] or [PRACTICE]

    def document(self) -> dict[str, Any]:
        """Return the card as JSON-able data with its citations."""
        return {**self.model_dump(exclude={"fires", "silent"}, mode="json"), "sources": self.cite()}


@dataclass(frozen=True)
class ChosenCard:
    """A card, and the reason why it was chosen: signals that hold, or the words of a query."""

    card: KnowledgeCard
    because: tuple[str, ...]


@cache
def citations(folder: Path = FOLDER) -> dict[str, str]:
    """Return the cited works: key → citation."""
    document: dict[str, str] = _read_yaml(folder / SOURCES)
    return document


@cache
def cards(folder: Path = FOLDER) -> tuple[KnowledgeCard, ...]:
    """Return all cards, pack by pack."""
    return tuple(KnowledgeCard.model_validate(row) for _, row in card_rows(folder))


def _read_yaml(path: Path) -> Any:
    """Read a file with the safe loader in C if there is one: the cards are long."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  a safe loader


def card_rows(folder: Path) -> Iterable[tuple[str, Any]]:
    """Yield every card of a folder as plain data, with the name of its pack."""
    for path in sorted(folder.glob("*.yaml")):
        if path.name != SOURCES:
            for row in _read_yaml(path):
                yield path.name, row


def find_card(card_id: str) -> KnowledgeCard:
    """Return a card by its id."""
    known = {card.id: card for card in cards()}
    if card_id in known:
        return known[card_id]
    near = did_you_mean(card_id, list(known))
    raise NotFound(f"no card `{card_id}`", hint=f"rlx cards {near}" if near else "rlx cards")


def choose(signals: Signals) -> list[ChosenCard]:
    """Return the cards that fire on these signals. Findings come first, then stronger evidence."""
    chosen = []
    for card in cards():
        holding = card.matches(signals)
        if holding:
            chosen.append(ChosenCard(card, holding))
    return sorted(chosen, key=_rank)


def _rank(chosen: ChosenCard) -> tuple[bool, str]:
    has_finding = any("finding_" in reason for reason in chosen.because)
    return (not has_finding, chosen.card.evidence)


def cards_for_finding(rule: str) -> tuple[str, ...]:
    """Return the ids of the cards that a rule's finding makes fire."""
    signals = {f"finding_{rule}": 1.0}
    return tuple(card.id for card in cards() if card.matches(signals))


def search(query: str) -> list[ChosenCard]:
    """Return the cards that share words with a query, the best match first. An exact id returns that card."""
    words = words_by_stem(query)
    found = []
    for card in cards():
        if card.id == query:
            return [ChosenCard(card, (query,))]
        title = word_stems(f"{card.id} {' '.join(card.topics)}")
        body = word_stems(f"{card.claim} {card.when} {card.action.change}")
        score = 2 * len(words.keys() & title) + len(words.keys() & body)
        if score:
            shared = [word for stem, word in words.items() if stem in title or stem in body]
            found.append((score, ChosenCard(card, tuple(shared))))
    found.sort(key=lambda pair: (-pair[0], pair[1].card.evidence))
    return [chosen for _, chosen in found]
