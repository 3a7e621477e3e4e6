"""What `analyze` and `suggest` say about runs as first users had them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlx.compare.seed_noise import noise as seed_noise
from rlx.diagnose.analyze import analyze
from rlx.diagnose.curve_shape import classify_curve
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.run_case import RETURN, EvaluationScore, RunCase, SeedCase
from rlx.diagnose.seed_outcomes import seed_outcomes
from rlx.diagnose.suggest import suggest
from rlx.runs.metrics import Series
from tests.diagnose.cases import CONFIG, HEALTHY_SAC, case, sac

ROWS = 60
STEPS = np.arange(1, ROWS + 1) * 1000.0
TIME = np.arange(ROWS) / (ROWS - 1)


def noise(seed: int, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).normal(size=ROWS)


def run(*returns: np.ndarray, success: list[np.ndarray] | None = None) -> RunCase:
    seeds = []
    for number, values in enumerate(returns):
        series = {RETURN: Series(STEPS, values)}
        if success is not None:
            series["rollout/success_rate"] = Series(STEPS, success[number])
        seeds.append(SeedCase(number, step=60_000, series=series))
    return RunCase("own_001", "ppo", CONFIG, 60_000, tuple(seeds))


def test_five_noisy_seeds_rise_together_though_none_shows_it_alone() -> None:
    seeds = [-8.8 + 6.9 * TIME + noise(number, 6.0) for number in range(5)]
    answer = analyze(run(*seeds))
    assert answer.answer == "still rising"
    assert "train longer" in answer.line


def test_nothing_is_ever_100_percent_sure() -> None:
    assert classify_curve(STEPS, 7 * TIME).sure <= 0.99
    assert "100%" not in analyze(run(TIME * 100)).line


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        (TIME, "still rising"),
        (np.maximum(0, TIME - 0.7), "still rising"),
        (np.log1p(40 * TIME), "still rising"),
        ((5 * TIME) % 1, "unstable"),
        (-TIME, "declining"),
        (np.minimum(1, 4 * TIME), "levelled off"),
    ],
    ids=["line", "late", "logarithm", "sawtooth", "decline", "level"],
)
def test_curves_that_were_misread_have_their_name(values: np.ndarray, answer: str) -> None:
    assert classify_curve(STEPS, values + noise(1, 0.03 * float(np.ptp(values)))).answer == answer


def test_a_levelled_curve_says_since_when() -> None:
    line = analyze(run(np.minimum(1, 4 * TIME) + noise(0, 0.02))).line
    assert line.startswith("levelled off since step ")
    assert 10_000 <= int(line.split()[4].rstrip(":").replace(",", "")) <= 20_000


def test_stuck_seeds_are_counted_by_success_where_there_is_any() -> None:
    ends = [0.0, 0.0, 0.05, 0.45, 0.45]
    seeds = [-5 + 3 * TIME + noise(number, 0.3) for number in range(5)]
    stuck = run(*seeds, success=[end * TIME for end in ends])
    answer = analyze(stuck)
    assert answer.stuck == (0, 1, 2)
    assert "3 of 5 seeds stuck" in answer.line
    assert [finding.rule for finding in diagnose(stuck).findings if finding.severity == "medium"] == ["seeds_disagree"]


def test_seeds_disagree_as_often_as_noise_says_that_they_fail() -> None:
    ends = [10.0] * 6 + [100.0] * 4
    disagreeing = run(*(20 * TIME * 0 + end * TIME + noise(number) for number, end in enumerate(ends)))
    assert len(seed_outcomes(disagreeing).failing) == 6
    assert "seeds_disagree" in [finding.rule for finding in diagnose(disagreeing).findings]


@pytest.mark.parametrize("ends", [[0.0, 0.05, 0.02, 0.45, 0.5], [0.0, 0.0, 0.2, 0.22, 0.24, 0.5], [0.3, 0.4, 0.5]])
def test_noise_counts_the_same_failing_seeds_in_a_success_rate(ends: list[float]) -> None:
    learning = run(*(-5 + 3 * TIME + noise(number, 0.3) for number in range(len(ends))),
                   success=[np.full(ROWS, end) for end in ends])  # fmt: skip
    assert seed_noise(ends).failing.count == len(seed_outcomes(learning).failing)


def test_a_small_fall_before_a_flat_curve_is_named() -> None:
    random = EvaluationScore(22.0, 10.0, 20, 22.0)
    falls = np.interp(TIME, [0, 0.1, 1], [15.5, 9.4, 9.4])
    fallen = replace(run(*(falls + noise(number, 0.05) for number in range(3))), random=random, reachable=475.0)
    answer = analyze(fallen)
    assert answer.answer == "flat"
    assert "would not show" not in answer.line
    assert "it fell around step" in answer.line
    assert "less than 5% of the way to 475" in answer.line
    level = replace(run(*(9.4 + noise(number, 0.5) for number in range(3))), random=random, reachable=475.0)
    assert "would not show" in analyze(level).line


def test_seeds_that_are_behind_and_still_rise_are_a_remark() -> None:
    ends = [0.5, 0.5, 0.45, 0.2, 0.18]
    rising = run(*(-25 + 40 * end * TIME + noise(number, 0.3) for number, end in enumerate(ends)),
                 success=[end * TIME for end in ends])  # fmt: skip
    findings = [finding for finding in diagnose(rising).findings if finding.rule == "seeds_disagree"]
    assert [finding.severity for finding in findings] == ["low"]
    assert "may catch up" in findings[0].claim


def test_a_seed_whose_noise_hides_its_rise_is_not_stuck() -> None:
    rises = np.interp(TIME, [0, 0.6, 1], [0, 0, 30])
    seeds = [rises + noise(number, 1.0) for number in range(4)]
    loud = rises + noise(8, 14.0)
    disguised = run(*seeds, loud)
    assert disguised.shapes[4].answer == "flat", "its noise hides the rise"
    assert analyze(disguised).stuck == ()
    assert "seeds_disagree" not in [finding.rule for finding in diagnose(disguised).findings]


def test_one_unlucky_seed_is_a_remark() -> None:
    unlucky = run(*(end * TIME + noise(number) for number, end in enumerate([100.0, 95, 105, 98, 5])))
    findings = [finding for finding in diagnose(unlucky).findings if finding.rule == "seeds_disagree"]
    assert [finding.severity for finding in findings] == ["low"]
    assert analyze(unlucky).stuck == (4,)


def test_a_run_that_still_rises_leads_to_a_longer_one_and_stuck_seeds_to_their_film() -> None:
    rising = run(*(100 * TIME + noise(number) for number in range(4)), noise(9))
    commands = [suggestion.words for suggestion in suggest(rising, diagnose(rising), snapshot="x")]
    assert commands[0] == (
        "rlx", "settle", "own_001", "own_001", "-s", "algo.total_timesteps=120000", "--budget-question"
    )  # fmt: skip
    assert ("rlx", "video", "own_001", "--seed", "4", "--which", "worst") in commands


def test_nan_from_the_environment_leads_to_its_check_not_to_the_learning_rate() -> None:
    failed = SeedCase(0, "failed", "observation of environment 3 is nan at step 900", step=900)
    broken = replace(run(TIME), seeds=(failed,))
    (finding,) = [finding for finding in diagnose(broken).findings if finding.rule == "not_finite"]
    assert finding.claim.startswith("the environment gives")
    assert finding.changes == ()
    assert "rlx check env own_001" in finding.tries[0]
    assert ("rlx", "check", "env", "own_001") in [row.words for row in suggest(broken, diagnose(broken), snapshot="x")]
    diverged = replace(failed, reason="loss `train/value_loss` is nan at step 900")
    (own,) = [row for row in diagnose(replace(broken, seeds=(diverged,))).findings if row.rule == "not_finite"]
    assert {"algo.learning_rate": 3e-5} in own.changes


def test_sac_whose_environments_outrun_its_updates_is_named() -> None:
    config = sac(train_every=4, gradient_steps=1)
    config = {**config, "env": {**config["env"], "num_envs": 4}}
    slow = case({**HEALTHY_SAC, RETURN: 20 + 30 * TIME + noise(3)}, config=config)
    (finding,) = [finding for finding in diagnose(slow).findings if finding.rule == "few_updates"]
    assert "one update per 16 steps (4 environments" in finding.claim
    assert finding.changes[0] == {"algo.gradient_steps": -1}
    usual = {**config, "algo": {**config["algo"], "gradient_steps": -1}}
    assert "few_updates" not in [row.rule for row in diagnose(replace(slow, config=usual)).findings]


def test_a_decline_has_one_finding_and_one_advice_on_the_learning_rate() -> None:
    score = EvaluationScore(-50.0, 20.0, 20, -50.0)
    declining = [replace(seed, report=score) for seed in run(-50 * TIME, -50 * TIME - 1, -50 * TIME + 1).seeds]
    falls = replace(run(TIME), seeds=tuple(declining), random=score)
    assert [finding.rule for finding in diagnose(falls).findings if finding.severity == "high"] == ["getting_worse"]
    rows = [row.words for row in suggest(falls, diagnose(falls), snapshot="x")]
    assert sum(any(word.startswith("algo.learning_rate=") for word in words) for words in rows) == 1


def test_an_unstable_run_says_between_which_returns_it_swings() -> None:
    line = analyze(run(*(100 * ((5 * TIME) % 1) + noise(number, 2.0) for number in range(3)))).line
    assert line.startswith("unstable on 3 of 3 seeds: return between ")
    assert "→" not in line
