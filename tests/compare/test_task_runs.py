"""`rlx.aggregate`: runs of a project sorted into algorithms × environments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlx
from rlx.compare.task_runs import aggregate
from rlx.errors import EvidenceInvalid, UsageError
from rlx.hosts.cli.main import call
from tests.evaluate.linear import GOOD, POOR, make_run, register

SLOWER = {"name": "ppo", "total_timesteps": 1024, "learning_rate": 1e-2}
OTHER = {"name": "a2c", "total_timesteps": 1024}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    for name, weights, changes in (("bench_good", GOOD, {}), ("bench_poor", POOR, {"algo": OTHER})):
        run = make_run(tmp_path, name, {seed: (weights[0] + 0.01 * seed, *weights[1:]) for seed in range(3)}, **changes)
        assert call(["eval", run.name, "--episodes", "2"]) == 0
    return tmp_path


def test_runs_become_cells_with_the_catalogs_reference(root: Path) -> None:
    found = rlx.aggregate("bench_*")
    assert set(found.algorithms) == {"ppo", "a2c"}
    assert found.tasks == ("CartPole-v1",)
    assert found.references["CartPole-v1"] == "catalog:cartpole"
    assert found.ends["CartPole-v1"][1] == 475
    assert found.aggregates["ppo"]["IQM"].value > 0.9 > found.aggregates["a2c"]["IQM"].value
    given = aggregate("bench_*", references={"CartPole-v1": (0, 1000)}, root=root)
    assert given.aggregates["ppo"]["IQM"].value == pytest.approx(0.5)


def test_what_cannot_be_averaged_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="no run is on the task"):
        aggregate("bench_*", references={"Pong": (0, 1)})
    with pytest.raises(UsageError, match=r"has no `algo\.nothing`"):
        aggregate("bench_*", by="algo.nothing")
    make_run(root, "bench_second", {0: POOR}, algo=SLOWER)
    with pytest.raises(UsageError, match="different configs"):
        aggregate("bench_*")


def test_an_algorithm_without_a_task_is_named(root: Path, make_run: Any) -> None:
    make_run("lonely", env="Acrobot-v1", seeds={0: [1.0, 2.0]})
    with pytest.raises(EvidenceInvalid, match="no run of"):
        aggregate(["bench_*", "lonely_001"], root=root)


def test_the_command_prints_tables_and_draws_the_profile(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    picture = root / "profile.svg"
    assert call(["compare", "--tasks", "bench_*", "--out", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "probability of improvement over ppo" in out
    assert "IQM" in out
    assert picture.read_text().startswith("<?xml")
    assert call(["compare", "--tasks", "bench_*", "--latex"]) == 0
    latex = capsys.readouterr().out
    assert "\\label{tab:tasks}" in latex
    assert "\\mathbf{500" in latex
    assert call(["compare", "--tasks", "bench_*", "--guard", "length"]) == 2
    assert "leave out --guard" in capsys.readouterr().err
    assert call(["compare", "--tasks", "bench_*", "--reference", "CartPole-v1=5"]) == 2
    assert "--reference CartPole-v1=20:500" in capsys.readouterr().err
