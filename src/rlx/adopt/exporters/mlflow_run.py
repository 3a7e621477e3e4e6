"""Writes a run into an MLflow store (one SQLite file): one MLflow run per seed, with settings as parameters."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from rlx.adopt.exporters.metric_rows import missing_library, plain_config, seed_rows
from rlx.runs.run import Run

MOST_PER_CALL = 1000
LONGEST_VALUE = 500


def write(run: Run, out: Path) -> int:
    """Write the store below a folder and return the number of rows. Nothing is sent anywhere."""
    try:
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise missing_library("mlflow") from None
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # it reports every table that it makes
    out.mkdir(parents=True, exist_ok=True)
    # MLflow keeps the store of an address open until the process ends, so that each export needs an address of its own.
    store = out / f".mlflow-{uuid4().hex}.db"
    client = MlflowClient(tracking_uri=f"sqlite:///{store.resolve()}")
    experiment = client.create_experiment(run.name, artifact_location=(out / "artifacts").resolve().as_uri())
    settings = plain_config(run)
    count = 0
    for seed in run.seeds:
        made = client.create_run(experiment, run_name=f"{run.name}_seed_{seed.number}")
        identity = made.info.run_id
        named = {**settings, "seed": seed.number}
        client.log_batch(identity, params=[Param(key, str(value)[:LONGEST_VALUE]) for key, value in named.items()])
        metrics = []
        for step, moment, values in seed_rows(seed):
            metrics += [Metric(name, value, int(moment * 1000), step) for name, value in values.items()]
            count += 1
        for start in range(0, len(metrics), MOST_PER_CALL):
            client.log_batch(identity, metrics=metrics[start : start + MOST_PER_CALL])
        client.set_terminated(identity)
    _copy(store, store.with_suffix(".copy"))
    store.with_suffix(".copy").replace(out / "mlflow.db")  # an export replaces the one before
    for left in out.glob(f"{store.name}*"):
        left.unlink(missing_ok=True)
    return count


def _copy(store: Path, target: Path) -> None:
    """Copy a database that MLflow has open, with what is only in its log yet."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(target)) as database:
        source.backup(database)
        database.execute("PRAGMA journal_mode=DELETE")
