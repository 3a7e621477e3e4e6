"""The rules on reward terms, and that `rlx diagnose` and `rlx reflect` agree on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.finding import Finding
from rlx.diagnose.load_case import read_case
from rlx.diagnose.reward_terms.reflection import describe
from rlx.diagnose.rule import run_rules
from rlx.diagnose.rules import NAMES, TERM_NAMES, term_rules
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.runs.metrics import Series
from rlx.runs.run import Run
from tests.diagnose.cases import FIRES, SOUND
from tests.diagnose.reward_terms.test_load_terms import log_terms
from tests.diagnose.reward_terms.test_term_stats import RISE_AND_FALL, STEPS, X, noisy

MakeRun = Callable[..., Run]


def seed_case(task: Any = None, *, returns: Any = None, seed: int = 0, **per_episode: Any) -> SeedCase:
    """Return a seed that logged these terms in episodes of ten steps."""
    values: dict[str, Any] = {"rollout/length_mean": np.full(len(STEPS), 10.0)}
    values["rollout/return_mean"] = sum(per_episode.values()) if returns is None else returns
    if task is not None:
        values["rollout/success_rate"] = task
    for name, paid in per_episode.items():
        values[f"reward/term/{name}"] = np.asarray(paid) / 10
        values[f"reward/term_abs/{name}"] = np.abs(paid) / 10
    series = {name: Series(STEPS, np.asarray(row, dtype=np.float64)) for name, row in values.items()}
    return SeedCase(seed, step=int(STEPS[-1]), series=series)


def findings(*seeds: SeedCase) -> tuple[Finding, ...]:
    return run_rules(term_rules(), RunCase("own_001", seeds=seeds)).findings


def rules(*seeds: SeedCase) -> list[str]:
    return [finding.rule for finding in findings(*seeds)]


def test_a_healthy_reward_has_no_finding() -> None:
    assert rules(seed_case(X, goal=noisy(2 * X), time=noisy(X - 1))) == []


def test_hacking_is_one_finding_with_its_seeds() -> None:
    farmed = {"coin": noisy(10 * X), "goal": RISE_AND_FALL}
    seeds = [seed_case(noisy(RISE_AND_FALL), seed=number, **farmed) for number in (0, 3)]
    clean = seed_case(X, seed=7, coin=noisy(X), goal=noisy(X))
    (hack,) = [finding for finding in findings(*seeds, clean) if finding.rule == "reward_hacking"]
    assert hack.severity == "high"
    assert "`coin` is farmed from step" in hack.claim
    assert "2 of 3 seeds" in hack.claim
    assert all(evidence.seeds == (0, 3) for evidence in hack.evidence)


def test_a_return_that_no_term_explains_is_still_hacked() -> None:
    (finding,) = findings(seed_case(noisy(RISE_AND_FALL), returns=noisy(10 * X)))
    assert (finding.rule, finding.severity) == ("reward_hacking", "high")
    assert finding.claim.startswith("the return rises from step")


def test_domination_matters_only_against_the_task_or_with_bad_returns() -> None:
    against = {"big": noisy(50 + 5 * X), "small": np.full(20, 1.0)}
    assert "term_domination" in rules(seed_case(noisy(0.5 - 0.3 * X), returns=noisy(np.ones(20)), **against))
    assert rules(seed_case(noisy(X * 0.8), big=noisy(50 * X), small=noisy(X))) == []
    assert rules(seed_case(None, big=noisy(50 * X), small=noisy(X))) == []
    assert "term_domination" in rules(seed_case(None, returns=noisy(np.ones(20)), **against))


def test_a_large_penalty_is_no_finding_while_the_returns_are_fine() -> None:
    cost = {"distance": noisy(10 * X - 12), "bonus": np.full(20, 0.1)}
    assert "term_domination" not in rules(seed_case(noisy(0.3 - 0.1 * X), returns=noisy(10 * X - 12), **cost))
    assert "term_domination" in rules(seed_case(noisy(0.3 - 0.1 * X), returns=noisy(np.ones(20)), **cost))


def test_a_rate_of_the_first_few_episodes_is_not_a_level() -> None:
    rate = 0.05 + 0.3 * X
    rate[:3] = [1.0, 0.5, 0.4]
    lucky = seed_case(rate, returns=noisy(X))
    counted = replace(lucky, series={**lucky.series, "rollout/episodes": Series(STEPS, np.arange(20) * 4.0)})
    (seed,) = RunCase("own_001", seeds=(counted,)).reward_history.seeds
    assert seed.task is not None
    assert seed.task.values.max() < 0.5


def test_a_single_term_cannot_dominate() -> None:
    only = seed_case(noisy(0.5 - 0.3 * X), returns=noisy(np.ones(20)), only=noisy(50 + 5 * X))
    assert "term_domination" not in rules(only)


def test_a_saturated_term_is_a_finding_if_the_task_stands_still_too() -> None:
    bound = np.minimum(1.0, 3 * X)
    task = np.minimum(0.5, 1.5 * X)
    stuck = seed_case(task, returns=bound, tracking=bound, goal=0.3 * noisy(task))
    assert rules(stuck) == ["term_saturation"]
    assert rules(seed_case(np.minimum(1.0, 3 * X), tracking=bound, goal=noisy(X))) == []


def test_a_term_that_was_always_zero_is_named() -> None:
    assert rules(seed_case(0.5 * X, goal=np.zeros(20), move=noisy(X))) == ["term_zero"]
    assert rules(seed_case(np.minimum(1.0, 3 * X), goal=np.zeros(20), move=noisy(X))) == []


def test_a_term_that_is_not_finite_comes_first() -> None:
    values = noisy(X)
    values[5] = np.nan
    finding = findings(seed_case(X, returns=noisy(X), goal=noisy(X), broken=values))[0]
    assert (finding.rule, finding.severity) == ("term_not_finite", "high")
    assert "step 3,000" in finding.claim


SHARED = [name for name in TERM_NAMES if name in NAMES]


@pytest.mark.parametrize("name", [*FIRES, *SOUND])
def test_diagnose_and_reflect_find_the_same_in_the_same_case(name: str) -> None:
    case = {**FIRES, **SOUND}[name]
    diagnosed = [finding.document() for finding in diagnose(case).findings if finding.rule in SHARED]
    reflected = [finding for finding in describe(case)["findings"] if finding["rule"] in SHARED]
    assert reflected == diagnosed


def test_diagnose_and_reflect_agree_on_a_stored_run(make_run: MakeRun) -> None:
    run = make_run(seeds={0: [], 1: []})
    for seed in (0, 1):
        log_terms(run, seed, rows=20, alive=lambda row: 10.0, goal=lambda row: 0.01 * row)
    case = read_case(run)
    diagnosed = {finding.rule for finding in diagnose(case).findings} & set(SHARED)
    assert diagnosed == {"term_domination", "term_constant"}
    assert {finding["rule"] for finding in describe(case)["findings"]} & set(SHARED) == diagnosed


def test_a_distance_cost_that_shrinks_while_success_rises_slowly_is_no_hacking() -> None:
    for success in (0.003 + 0.142 * X, np.zeros(len(X))):
        seeds = [seed_case(success, seed=seed, distance=noisy(-10 + 6 * X, 0.1, seed), effort=noisy(-1 + 0.1 * X))
                 for seed in range(5)]  # fmt: skip
        assert "reward_hacking" not in rules(*seeds)
        history = describe(RunCase("own_001", seeds=tuple(seeds)))
        assert history["hacking_risk"] == "none"
        assert not any(term["farmed_from"] for term in history["terms"])


def test_a_farmed_bonus_with_falling_success_is_found_on_most_seeds_only() -> None:
    success = np.where(X < 0.4, 0.79 * X / 0.4, 0.79 - 0.36 * (X - 0.4) / 0.6)
    farmed = [seed_case(noisy(success), seed=seed, bonus=noisy(20 * X, 0.2, seed), goal=success) for seed in range(3)]
    clean = [seed_case(noisy(0.8 * X), seed=seed, bonus=noisy(X), goal=0.8 * X) for seed in range(3, 6)]
    assert "reward_hacking" in rules(*farmed)
    assert "reward_hacking" in rules(*farmed, *clean[:2])
    assert "reward_hacking" not in rules(*farmed[:1], *clean)
