"""The lint of cards is clean, and it finds a broken card."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.design.card_lint import known_signals, lint
from rlx.design.knowledge_card import FOLDER, cards

CARD = (FOLDER / "stacks.yaml").read_text(encoding="utf-8").split("\n- id")[3]


def test_the_cards_of_rlx_are_clean() -> None:
    assert lint() == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("evidence: B", "evidence: C", "evidence C"),
        ("sources: [rslrl2026]", "sources: [nobody1999]", "unknown source"),
        ("signals: [stack_rsl_rl]", "signals: [stack_unheard]", "unknown name"),
        ("topics: [stacks, setting-up-experiment-tracking]", "topics: [cooking]", "unknown topic"),
        ("fires: {stack_rsl_rl: 1}", "fires: {stack_rsl_rl: 0}", "firing case"),
        ("silent: {stack_rsl_rl: 0}", "silent: {stack_mjlab: 0}", "proves nothing"),
        ("uncertainty:", "doubt:", "uncertainty"),
        ('metric: "steps of the last row"', 'metric: "rlx docs cooking --run"', "`rlx docs cooking` does not exist"),
        ("surface: adapter", "surface: spec", "is not a key of a spec"),
    ],
)
def test_the_lint_finds_a_broken_card(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in CARD
    (tmp_path / "sources.yaml").write_text("rslrl2026: a work\n")
    (tmp_path / "pack.yaml").write_text(f"- id{CARD}".replace(old, new))
    assert any(problem in line for line in lint(tmp_path))


def test_the_lint_finds_an_id_twice_and_an_unused_source(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text("rslrl2026: a work\nother2000: another\n")
    (tmp_path / "pack.yaml").write_text(f"- id{CARD}\n- id{CARD}\n")
    problems = lint(tmp_path)
    assert any("also in" in line for line in problems)
    assert any("other2000: no card cites it" in line for line in problems)


def test_every_signal_of_a_card_can_be_measured_or_declared() -> None:
    known = known_signals()
    for card in cards():
        assert set(card.fires) | set(card.silent) <= known, card.id
