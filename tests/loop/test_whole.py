"""A study with one candidate that advances, one that harms what is guarded and one that fails; real processes."""

from __future__ import annotations

import shutil

import pytest

from tests.loop.mill import Mill

pytestmark = pytest.mark.slow
GUARD = 'guardrails=[{"expression": "-heat", "margin": 2}]'


@pytest.fixture(scope="module")
def _ground(tmp_path_factory: pytest.TempPathFactory) -> Mill:
    mill = Mill.built(tmp_path_factory.mktemp("whole") / "kept", GUARD, "budget.seeds=200", "metric.seeds=10")
    mill.types("study", "baseline")
    return mill


@pytest.fixture
def mill(_ground: Mill) -> Mill:
    """Return a mill that guards its heat, whose pool is full."""
    root = _ground.root.with_name("mill")
    shutil.rmtree(root, ignore_errors=True)
    return Mill(_ground.copied(root))


def test_what_harms_a_guarded_figure_does_not_advance_and_what_leans_to_it_is_told(mill: Mill) -> None:
    identity = mill.proposes(gain=5, heat=9)
    mill.trains(identity)
    first = mill.types("decide", identity)
    assert (first["decision"], first["answer"]) == ("inconclusive", "more")
    assert first["guardrails"]["-heat"]["answer"] == "harm"
    mill.trains(identity)
    judged = mill.types("verdict", identity)
    assert (judged["answer"], judged["verdict"], judged["guardrails"]["-heat"]["change"]) == ("harmful", "worse", -9.0)
    assert "p = 0.0011 ≤ 0.17 at 6 seeds, but it harms -heat (worse by more than 2: p = " in judged["reason"]
    assert "guard: -heat: harm: −9 (worse by more than 2" in mill.prints("verdict", identity)
    decided = mill.types("decide", identity)
    assert (decided["decision"], mill.study.state().head) == ("rejected", "baseline")
    (*_, event) = mill.study.state().decisions
    assert event["guardrails"]["-heat"]["answer"] == "harm"
    assert mill.types("study", "verify")["problems"] == []
