"""Finds what is wrong with cards: fields, ids, sources, topics, signals, and their own firing and silent cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from rlx.config.expression import Expression
from rlx.design.knowledge_card import FOLDER, SOURCES, KnowledgeCard, card_rows, citations
from rlx.design.problem_spec import keys_at
from rlx.design.recipe_index import recipe_names
from rlx.design.signals import MEANINGS, WORDS
from rlx.design.spec_plan_rules import PLAN_RULES
from rlx.design.spec_rules import MEASURED_RULES
from rlx.design.topic_table import topic_names
from rlx.diagnose.env_checks.env_findings import RULES as ENV_RULES
from rlx.diagnose.reward_review.shaping_findings import RULES as SHAPING_RULES
from rlx.diagnose.reward_review.source_findings import RULES as SOURCE_RULES
from rlx.diagnose.reward_review.step_findings import NOT_FINITE
from rlx.diagnose.reward_review.step_findings import RULES as STEP_RULES
from rlx.diagnose.rules import NAMES


@cache
def rule_ids() -> frozenset[str]:
    """Return the ids of all rules whose findings can be signals."""
    ids = [*NAMES, NOT_FINITE.id]
    ids += [rule.id for rule in (*MEASURED_RULES, *PLAN_RULES)]
    ids += [rule.id for rule in ENV_RULES]
    ids += [rule.id for rule in (*SHAPING_RULES, *SOURCE_RULES)]
    ids += [rule.id for rule in STEP_RULES]
    return frozenset(ids)


@cache
def known_signals() -> frozenset[str]:
    """Return every name that a card may use."""
    return frozenset([*MEANINGS, *WORDS, *(f"finding_{rule}" for rule in rule_ids())])


def lint(folder: Path = FOLDER) -> list[str]:
    """Return every problem of the cards: fields, ids, sources, signals and cases."""
    problems: list[str] = []
    seen: dict[str, str] = {}
    known_sources = citations(folder)
    used: set[str] = set()
    for place, row in card_rows(folder):
        try:
            card = KnowledgeCard.model_validate(row)
        except ValidationError as error:
            name = row.get("id", "?") if isinstance(row, dict) else "?"
            details = error.errors()[0]
            problems.append(f"{place}: {name}: {'.'.join(map(str, details['loc']))}: {details['msg']}")
            continue
        if card.id in seen:
            problems.append(f"{place}: {card.id}: the id is also in {seen[card.id]}")
        seen[card.id] = place
        used.update(card.sources)
        problems += [f"{place}: {card.id}: {problem}" for problem in _lint_card(card, known_sources)]
    problems += [f"{SOURCES}: {key}: no card cites it" for key in sorted(set(known_sources) - used)]
    return problems


def _lint_card(card: KnowledgeCard, known_sources: Mapping[str, str]) -> Iterable[str]:
    for key in card.sources:
        if key not in known_sources:
            yield f"unknown source `{key}`"
    if bool(card.sources) == (card.evidence == "C"):
        yield "evidence C is for practice without a source, A and B need a source"
    for topic in card.topics:
        if topic not in topic_names():
            yield f"unknown topic `{topic}`"
    yield from _lint_references(card)
    conditions = []
    for text in card.signals:
        try:
            conditions.append(Expression(text, known=known_signals()))
        except ValueError as error:
            yield f"signal `{text}` {error}"
    if not card.matches(card.fires):
        yield "stays silent in its own firing case"
    if card.matches(card.silent):
        yield "fires in its own silent case"
    if not any(condition.names <= set(card.silent) for condition in conditions):
        yield "its silent case gives no signal all values that it needs, so it proves nothing"


def _lint_references(card: KnowledgeCard) -> Iterable[str]:
    """Yield pages and keys of a spec that a card names and that do not exist."""
    for page in re.findall(r"rlx docs ([a-z0-9-]+)", f"{card.check.metric} {card.action.change}"):
        if page not in recipe_names() and page not in topic_names():
            yield f"`rlx docs {page}` does not exist"
    if card.action.surface == "spec":
        path = card.action.change.partition(":")[0].split(".")
        if path[-1] not in keys_at(tuple(path[:-1])):
            yield f"`{'.'.join(path)}` is not a key of a spec"
