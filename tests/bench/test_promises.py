"""What the stored trainings must show, whatever is changed in the rules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from labelled import runs
from labelled.judge import effects, figures
from labelled.replay import stopped_by

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HEALTHY_RUNS = 60


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "diagnose" / "run.py"
    spec = importlib.util.spec_from_file_location("diagnose_bench", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_test_split_is_diagnosed_as_promised(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other split's faults have no say in these figures, and neither have the rules of earlier tools."""
    monkeypatch.setattr(bench, "RULES", {"rlx": bench.RULES["rlx"]})
    counted = {case: row for case, row in runs.rows().items() if case.split == "test" or case.is_healthy}
    found = bench.judged(counted)["rlx"]
    got = figures([run for run in found if run.case.split == "test"], effects(found))
    assert got.faults >= 150
    assert got.healthy >= 150
    assert (got.precision or 0) >= 0.95
    assert (got.recall or 0) >= 0.85
    assert (got.top_one or 0) >= 0.75
    assert (got.false_alarms or 0) <= 0.05


def test_no_rule_ends_a_healthy_training_at_any_row(bench: ModuleType) -> None:
    healthy = [(case, row) for case, row in runs.rows().items() if case.is_healthy]
    read = [(case, bench.read(case, row)) for case, row in healthy[:: len(healthy) // HEALTHY_RUNS]]
    assert len(read) >= 50
    assert {case.name: ended for case, run in read if (ended := stopped_by(run))} == {}
