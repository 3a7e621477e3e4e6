"""Writes a run's metrics as one Parquet file: one row per seed and step, missing values as null."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlx import files
from rlx.adopt.exporters.metric_rows import missing_library, seed_rows
from rlx.runs.run import Run


def write(run: Run, out: Path) -> int:
    """Write the file and return the number of rows."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing_library("pyarrow") from None
    names = run.metric_names()
    columns: dict[str, list[Any]] = {name: [] for name in ("seed", "step", "time", *names)}
    for seed in run.seeds:
        for step, moment, values in seed_rows(seed):
            columns["seed"].append(seed.number)
            columns["step"].append(step)
            columns["time"].append(moment)
            for name in names:
                columns[name].append(values.get(name))
    types = {"seed": pyarrow.int64(), "step": pyarrow.int64()}
    arrays = {name: pyarrow.array(rows, types.get(name, pyarrow.float64())) for name, rows in columns.items()}
    with files.replacing(out) as temporary:
        pyarrow.parquet.write_table(pyarrow.table(arrays), temporary)
    return len(columns["seed"])
