"""Writes a run as offline runs of Weights & Biases, one per seed in one group. `wandb sync` uploads them."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlx.adopt.exporters.metric_rows import missing_library, plain_config, seed_rows
from rlx.runs.run import Run


def write(run: Run, out: Path) -> int:
    """Write the offline runs below a folder and return the number of rows. Nothing is sent anywhere."""
    try:
        import wandb
    except ImportError:
        raise missing_library("wandb") from None
    shutil.rmtree(out / "wandb", ignore_errors=True)  # an export replaces the one before
    out.mkdir(parents=True, exist_ok=True)
    count = 0
    settings = wandb.Settings(mode="offline", silent=True, console="off", x_disable_stats=True, x_disable_meta=True)
    for seed in run.seeds:
        offline = wandb.init(
            project="rlx", group=run.name, name=f"{run.name}_seed_{seed.number}", dir=str(out),
            config={**plain_config(run), "seed": seed.number}, settings=settings, reinit="finish_previous",
        )  # fmt: skip
        for step, moment, values in seed_rows(seed):
            offline.log({**values, "rlx/time": moment}, step=step)
            count += 1
        offline.finish()
    return count
