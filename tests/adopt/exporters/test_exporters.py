"""Each exporter writes a run that the tool's own library reads back with the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.adopt.import_runs import import_path
from rlx.plugins import EXPORTERS, load
from rlx.runs.run import Run
from rlx.train import own_script


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    (tmp_path / "rlx.toml").touch()
    monkeypatch.chdir(tmp_path)
    recorded = own_script.start({"run_name": "walk", "lr": 0.01}, seed=4)
    recorded.log(10, {"rollout/return_mean": 1.5})
    recorded.log(20, {"rollout/return_mean": 2.5, "train/loss": 0.25})
    recorded.finish()
    return Run(tmp_path / "runs" / "walk_001")


def test_parquet_equals_the_rows(run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert load(EXPORTERS, "parquet", kind="exporter")(run, tmp_path / "walk.parquet") == 2
    table = parquet.read_table(tmp_path / "walk.parquet").to_pydict()
    assert table["seed"] == [4, 4]
    assert table["step"] == [10, 20]
    assert table["rollout/return_mean"] == [1.5, 2.5]
    assert table["train/loss"] == [None, 0.25]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # both tools use deprecated parts of their own libraries
@pytest.mark.parametrize("tool", ["wandb", "mlflow"])
def test_a_tool_and_back_again(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    pytest.importorskip(tool)
    write = load(EXPORTERS, tool, kind="exporter")
    assert write(run, tmp_path / "out") == 2
    assert write(run, tmp_path / "out") == 2, "an export replaces the one before"
    back = tmp_path / "back"
    back.mkdir()
    report = import_path(tmp_path / "out", root=back, format_name=tool)
    rows = Run(back / "runs" / report.created[0]).seeds[0].rows
    assert [(row["step"], row["rollout/return_mean"]) for row in rows] == [(10, 1.5), (20, 2.5)]
    assert rows[1]["train/loss"] == 0.25


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_reads_the_settings(run: Run, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    load(EXPORTERS, "mlflow", kind="exporter")(run, tmp_path / "out")
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(run.name)
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.data.params["seed"] == "4"
    assert [metric.value for metric in client.get_metric_history(found.info.run_id, "rollout/return_mean")] == [
        1.5,
        2.5,
    ]
