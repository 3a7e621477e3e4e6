"""Cards: well formed, sourced, and each one fires and stays silent as its own cases say."""

from __future__ import annotations

import pytest

from rlx.design.knowledge_card import KnowledgeCard, cards, cards_for_finding, choose, find_card, search
from rlx.diagnose.rules import NAMES
from rlx.errors import NotFound


@pytest.mark.parametrize("card", cards(), ids=lambda card: card.id)
def test_a_card_fires_and_stays_silent(card: KnowledgeCard) -> None:
    assert card.matches(card.fires)
    assert not card.matches(card.silent)


def test_there_are_enough() -> None:
    assert len(cards()) >= 120


def test_most_rules_of_a_diagnosis_have_a_card() -> None:
    without = [rule for rule in NAMES if not cards_for_finding(rule)]
    assert len(without) <= 8, without


def test_a_signal_that_is_unknown_does_not_fire() -> None:
    assert choose({}) == []


def test_findings_come_before_other_reasons() -> None:
    chosen = choose({"training_seeds": 1.0, "finding_crashed": 1.0})
    assert [found.card.id for found in chosen] == ["fail-crash", "eval-seeds"]


def test_a_search_finds_a_card_by_its_words_and_by_its_id() -> None:
    assert search("reward hacking")[0].card.id == "reward-hacking"
    assert [found.card.id for found in search("critic-twin")] == ["critic-twin"]
    assert search("xylophone") == []


def test_a_found_card_names_the_users_own_words() -> None:
    assert search("alive bonus")[0].because == ("alive", "bonus")


def test_an_unknown_id_names_the_nearest_one() -> None:
    with pytest.raises(NotFound) as error:
        find_card("critic-twins")
    assert error.value.hint == "rlx cards critic-twin"


def test_a_practice_says_so_instead_of_a_source() -> None:
    assert find_card("ckpt-retention").cite() == ["practice"]
