from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import Run

Cli = Callable[..., Any]
MakeRun = Callable[..., Run]


def test_csv_has_one_row_a_seed_and_step_with_nan_and_infinity(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, math.nan], 4: [-math.inf]})

    answer = cli("export", run.name, "--to", "csv", "--json")

    path = Path(answer.data["path"])
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert answer.data["rows"] == 3
    assert list(rows[0]) == ["seed", "step", "time", "rollout/return_mean", "train/loss"]
    assert [(row["seed"], row["step"]) for row in rows] == [("0", "100"), ("0", "200"), ("4", "100")]
    assert [row["rollout/return_mean"] for row in rows] == ["1.0", "nan", "-inf"]
    assert path == run.path / "export" / "cartpole_001.csv"


def test_csv_leaves_a_cell_empty_where_a_row_lacks_the_metric(cli: Cli, make_run: MakeRun) -> None:
    run = make_run()
    writer = MetricsWriter(run.path / "seed_0" / "metrics.jsonl")
    writer.write(300, {"other": 1.0})
    writer.close()

    lines = cli("export", run.name, "--to", "csv", "--out", "-").out.splitlines()

    assert lines[0].endswith(",train/loss,other")
    assert lines[-1].endswith(",,,1.0")


def test_csv_is_read_by_pandas_as_it_is(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    import pandas

    run = make_run(seeds={0: [1.0, math.nan, math.inf]})
    assert cli("export", run.name, "--to", "csv", "--out", "deep/er/x.csv").code == 0

    values = pandas.read_csv(tmp_path / "deep/er/x.csv")["rollout/return_mean"].tolist()

    assert (values[0], values[2]) == (1.0, math.inf)
    assert math.isnan(values[1])


def test_a_folder_is_no_csv_file(cli: Cli, make_run: MakeRun, tmp_path: Path) -> None:
    assert cli("export", make_run().name, "--to", "csv", "--out", str(tmp_path)).code == 2


def test_tensorboard_gets_a_folder_a_seed_and_a_second_export_replaces_the_first(cli: Cli, make_run: MakeRun) -> None:
    run = make_run(seeds={0: [1.0, 2.0], 1: [3.0, math.nan]})

    for _ in range(2):
        answer = cli("export", run.name, "--to", "tensorboard", "--out", "tb")
    folder = Path("tb") / run.name / "seed_1"
    events = EventAccumulator(str(folder)).Reload()
    scalars = events.Scalars("rollout/return_mean")

    assert len(list(folder.iterdir())) == 1
    assert [event.step for event in scalars] == [100, 200]
    assert scalars[0].value == 3.0
    assert math.isnan(scalars[1].value)
    assert scalars[0].wall_time == run.seeds[1].rows[0]["time"]
    assert "next: tensorboard --logdir tb" in answer.out


def test_a_run_without_metrics_is_refused(cli: Cli, make_run: MakeRun) -> None:
    assert cli("export", make_run(state="prepared").name, "--to", "csv").code == 3


def test_the_format_must_be_known(cli: Cli, make_run: MakeRun) -> None:
    answer = cli("export", make_run().name, "--to", "excel")

    assert answer.code == 2
    assert "excel" in answer.err
