"""The return levels off and the task is hardly ever done: found if it is so, silent while it may still come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.reward_terms.term_stats import task_correlation
from rlx.diagnose.run_case import RETURN, EvaluationScore, RunCase
from rlx.diagnose.suggest import suggest
from tests.diagnose.cases import HEALTHY, ROWS, case, noise

RISES = np.linspace(-9, -2, ROWS) + noise(0, 0.1, seed=5)
LEVELS = -2 - 7 * np.exp(-np.arange(ROWS) / 6) + noise(0, 0.1, seed=6)
SHORTER = np.linspace(90, 40, ROWS)


def docking(returns: np.ndarray, success: np.ndarray, **metrics: np.ndarray) -> RunCase:
    """Return a run with a distance cost that shrinks, and a bonus that is hardly ever paid."""
    series = {
        **HEALTHY, RETURN: returns, "rollout/success_rate": success, "rollout/length_mean": SHORTER,
        "rollout/truncated_share": np.linspace(0.9, 0.1, ROWS), "reward/term/distance": returns / SHORTER,
        "reward/term_abs/distance": -returns / SHORTER, "reward/term/dock": 0.01 * success,
        "reward/term_abs/dock": 0.01 * success, **metrics,
    }  # fmt: skip
    untrained = EvaluationScore(-9.0, 1.0, 20, -9.0)
    ended = EvaluationScore(float(returns[-5:].mean()), 1.0, 20, 0.0)
    run = case(series, seeds=5, jitter=False, untrained=untrained, report=ended)
    return replace(run, random=untrained)


def rules(run: RunCase) -> dict[str, object]:
    return {finding.rule: finding for finding in diagnose(run).findings}


def test_a_policy_that_ends_episodes_early_is_named_with_what_to_raise() -> None:
    run = docking(LEVELS, np.abs(noise(0.003, 0.003, seed=7)))
    found = rules(run)
    finding = found["task_not_done"]
    assert "ends episodes early" in finding.claim  # type: ignore[attr-defined]
    assert "raise `dock`" in finding.tries[0]  # type: ignore[attr-defined]
    assert "reward_hacking" not in found, "a penalty cannot be farmed by shrinking"
    assert "term_domination" not in found, "a success rate that hardly moves correlates with nothing"
    first, second, *_ = suggest(run, diagnose(run), snapshot="x.yaml")
    assert first.words[:2] == ("rlx", "reflect")
    assert second.words[:2] == ("rlx", "video")


@pytest.mark.parametrize(
    ("returns", "success"),
    [(RISES, np.full(ROWS, 0.0)), (LEVELS, np.linspace(0, 0.3, ROWS)), (LEVELS, np.linspace(0, 1.0, ROWS))],
    ids=["still rising", "success rises", "solved"],
)
def test_it_is_silent_while_the_task_may_still_come(returns: np.ndarray, success: np.ndarray) -> None:
    assert "task_not_done" not in rules(docking(returns, success))


def test_a_rate_that_hardly_moves_correlates_with_nothing() -> None:
    (seed, *_) = docking(LEVELS, np.abs(noise(0.003, 0.003, seed=7))).reward_history.seeds
    assert task_correlation(seed, "distance", "success_rate") is None
