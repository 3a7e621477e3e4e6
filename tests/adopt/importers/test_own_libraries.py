"""What an importer reads equals what the format's own library wrote and reads, for libraries that are installed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rlx.adopt.import_runs import importer
from rlx.adopt.importers.foreign_run import ForeignRun

ROWS = [(step * 128, random.Random(step).gauss(0.0, 1e3)) for step in range(300)]


def imported(path: Path, name: str) -> list[ForeignRun]:
    return list(importer(name).read(path))


def series(run: ForeignRun, name: str) -> list[tuple[int, float]]:
    return [(point.step, point.values[name]) for point in run.points if name in point.values]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_offline_run_of_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb: Any = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    config = {"seed": 7, "algo": {"lr": 0.001}}
    with wandb.init(project="walk", name="walk", dir=str(tmp_path), config=config) as run:
        for step, value in ROWS:
            run.log({"charts/return": value, "nested": {"loss": value / 2}}, step=step)
    (found,) = imported(tmp_path / "wandb", "wandb")
    assert series(found, "charts/return") == ROWS
    assert found.seed == 7
    assert found.config["algo"] == {"lr": 0.001}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"])
def test_both_stores_of_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    mlflow: Any = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / store).as_uri() if store == "mlruns" else f"sqlite:///{tmp_path / store}"
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.create_experiment("walk", artifact_location=(tmp_path / "artifacts").as_uri())
    run = client.create_run(experiment, run_name="walk")
    client.log_param(run.info.run_id, "seed", 7)
    for step, value in ROWS:
        client.log_metric(run.info.run_id, "train/return", value, step=step)
    client.set_terminated(run.info.run_id)
    (found,) = imported(tmp_path / store, "mlflow")
    own = client.get_metric_history(run.info.run_id, "train/return")
    assert series(found, "train/return") == [(metric.step, metric.value) for metric in own] == ROWS
    assert found.seed == 7


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_project_of_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    trackio: Any = pytest.importorskip("trackio")
    storage: Any = pytest.importorskip("trackio.sqlite_storage").SQLiteStorage
    storage.bulk_log("walk", "run-1", [{"return": value} for _, value in ROWS], steps=[step for step, _ in ROWS])
    (found,) = imported(tmp_path, "trackio")
    own = [(row["step"], row["return"]) for row in storage.get_logs("walk", "run-1")]
    assert trackio.__version__
    assert series(found, "return") == own == ROWS
