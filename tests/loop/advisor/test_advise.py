"""The advisor plans from findings: the cure of a planted fault is among its first variants, and the plan can run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlx.config.labels import value_at
from rlx.errors import UsageError
from rlx.loop.advisor.advise import AdvisorRequest, advise, read_budget, slots
from rlx.loop.sweep.run_sweep import planned_cost
from rlx.loop.sweep.sweep_plan import SweepBudget

BENCH = Path(__file__).parents[3] / "bench" / "diagnose"
CURES: Mapping[str, Mapping[str, int]] = {
    "cartpole_ppo/rate_high/0": {"algo.learning_rate": -1},
    "cartpole_ppo/rate_low/0": {"algo.learning_rate": 1},
    "grid_ppo/unclipped/0": {"algo.learning_rate": -1, "algo.clip_range": -1},
    "cartpole_ppo/entropy_high/0": {"algo.entropy_coef": -1},
    "cartpole_ppo/gamma_small/0": {"algo.gamma": 1},
    "cartpole_ppo/gradient_cut/0": {"algo.max_grad_norm": 1},
    "grid_dqn/exploration_endless/0": {"algo.exploration_final": -1},
    "grid_dqn/replay_tiny/0": {"algo.buffer_size": 1},
    "grid_dqn/target_never/0": {"algo.target_update_every": -1},
    "grid_dqn/learning_never/0": {"algo.learning_starts": -1},
}
"""A training with a planted fault → the keys that cure it, and the direction."""


@pytest.fixture(scope="module")
def faults() -> Mapping[str, Any]:
    sys.path.insert(0, str(BENCH))
    try:
        from labelled import runs

        return {case.name: (case, row) for case, row in runs.rows().items() if case.name in CURES}
    finally:
        sys.path.remove(str(BENCH))


def is_cure(changes: Mapping[str, Any], config: Mapping[str, Any], wanted: Mapping[str, int]) -> bool:
    for key, value in changes.items():
        before = value_at(config, key)
        if key in wanted and isinstance(before, (int, float)) and (value - before) * wanted[key] > 0:
            return True
    return False


def test_the_cure_of_a_fault_is_among_the_first_three_variants(
    faults: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from labelled.pack import unpack

    cured = []
    for number, (name, (case, row)) in enumerate(faults.items()):
        root = tmp_path / str(number)
        root.mkdir()
        (root / "rlx.toml").touch()
        run = unpack(row, case, root)
        advice = advise(run, AdvisorRequest(), root=root)
        first = advice.plan.variants[:3]
        assert all(variant.rule and variant.signal and variant.reason for variant in first)
        assert advice.sweep is not None
        assert planned_cost(advice.sweep) <= 40
        if any(is_cure(variant.changes, run.config, CURES[name]) for variant in first):
            cured.append(name)
    assert len(faults) == 10
    assert len(cured) >= 8, cured


def test_a_budget_is_seeds_or_time() -> None:
    assert read_budget("40seeds") == read_budget("40") == SweepBudget(seeds=40)
    assert read_budget("2h") == SweepBudget(hours=2.0)
    assert read_budget("30m") == SweepBudget(hours=0.5)
    assert slots(SweepBudget(seeds=40)) < slots(SweepBudget(seeds=80))
    for bad in ("lots", "-3", "0seeds"):
        with pytest.raises(UsageError):
            read_budget(bad)
