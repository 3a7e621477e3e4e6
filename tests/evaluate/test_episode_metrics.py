"""Figures are worked out from the rows of episodes, and only from them."""

from __future__ import annotations

import math

import pytest

from rlx.errors import EvidenceInvalid
from rlx.evaluate.episode_metrics import score, summarize_rows

ROWS = [
    {"seed": 1, "return": 1.0, "length": 10, "success": True, "terms": {"push": 2.0}},
    {"seed": 2, "return": 3.0, "length": 20, "success": False, "truncated": True},
    {"seed": 1, "return": 50.0, "length": 5, "scenario": "icy", "passed": True},
    {"seed": 2, "return": 50.0, "length": 5, "scenario": "icy", "passed": False},
]


def test_every_figure() -> None:
    assert summarize_rows(ROWS) == {
        "push": 1.0, "mean": 2.0, "std": 1.0, "median": 2.0, "min": 1.0, "max": 3.0, "length_mean": 15.0,
        "terminated_rate": 0.5, "success_rate": 0.5, "pass_rate": 0.5, "return": 2.0,
    }  # fmt: skip


def test_a_reward_term_cannot_take_the_name_of_a_figure() -> None:
    rows = [{"seed": 1, "return": 1.0, "length": 1, "terms": {"mean": 1e6, "return": 1e6, "success_rate": 1e6}}]
    assert summarize_rows(rows)["mean"] == summarize_rows(rows)["return"] == 1.0


def test_a_term_is_not_taken_for_a_rate_that_is_not_there() -> None:
    rows = [{"seed": 1, "return": 1.0, "length": 1, "terms": {"success_rate": 1e6}}]
    with pytest.raises(EvidenceInvalid, match="no `success_rate`; it has length_mean, max, mean"):
        score(summarize_rows(rows), "success_rate")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_score_that_is_no_number_is_invalid(word: str) -> None:
    figures = summarize_rows([{"seed": 1, "return": word, "length": 1}, {"seed": 2, "return": 1.0, "length": 1}])
    assert not math.isfinite(figures["mean"])
    with pytest.raises(EvidenceInvalid, match="the return is"):
        score(figures, "return")


@pytest.mark.parametrize("value", [1e308, -1e308, 1e101])
def test_a_score_whose_square_is_no_number_is_invalid(value: float) -> None:
    figures = summarize_rows(
        [{"seed": seed, "return": value, "length": 1, "terms": {"x": value}} for seed in range(10)]
    )
    with pytest.raises(EvidenceInvalid, match="the return is"):
        score(figures, "return")
    with pytest.raises(EvidenceInvalid, match="the x is"):
        score(figures, "x")
