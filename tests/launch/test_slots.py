"""The jobs of a study share the machine: places for seeds, GPUs by name; an engine's machines are its own business."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.runs.run import Run
from rlx.study.task import task as tasks
from rlx.study.task.task import Launcher
from tests.conftest import wait_until
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow


def launched(mill: Mill, *, gain: float, seeds: int, code: int = 0) -> dict[str, Any]:
    """Launch a candidate that stays, or try to."""
    identity = mill.proposes(how="stay", gain=gain)
    plan = mill.study.state().candidates[identity].plan
    return mill.types("launch", identity, "--plan", str(plan), "--seeds", str(seeds), code=code)


def gpus_of(mill: Mill, run: str) -> list[str]:
    """Return the GPUs that the seeds of a run see, which have begun."""
    begun = [seed.attempts[-1] for seed in Run(mill.root / "runs" / run).seeds if seed.attempts]
    return [one["environment"]["CUDA_VISIBLE_DEVICES"] for one in begun]


def test_jobs_side_by_side_have_gpus_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    mill = Mill.built(tmp_path / "mill", "hardware.gpus=1", "hardware.parallel=2")
    mill.types("study", "baseline")
    first, second = (launched(mill, gain=gain, seeds=1) for gain in (1, 2))
    refused = launched(mill, gain=3, seeds=1, code=4)
    assert (first["slots"], second["slots"]) == (["4"], ["7"])
    assert {"PARALLEL", "GPUS"} <= {one["code"] for one in refused["reasons"]}
    wait_until(lambda: (gpus_of(mill, first["run"]), gpus_of(mill, second["run"])) == (["4"], ["7"]), seconds=60)

    mill.types("stop", first["run"])
    assert launched(mill, gain=4, seeds=1)["slots"] == ["4"]
    for job in mill.study.state().open_jobs:
        mill.types("stop", str(job.run))


def test_the_seeds_of_a_job_run_within_the_places_that_are_left(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mill = Mill.ready(tmp_path / "mill", tmp_path_factory, "hardware.parallel=1")
    made = launched(mill, gain=1, seeds=2)
    assert made["slots"] == [None]
    path = mill.root / "runs" / made["run"]
    wait_until(lambda: Run(path).seeds[0].status.state == "running", seconds=60)
    assert Run(path).seeds[1].status.state == "prepared"
    mill.types("stop", made["run"])


def test_what_this_machine_lacks_is_no_hindrance_where_an_engine_has_it(tmp_path: Path) -> None:
    mill = Mill.built(tmp_path / "mill", "hardware.cores=4096", "hardware.gpus=4096", "hardware.memory_gb=1e9")
    order = ("launch", "baseline", "--phase", "baseline", "--dry-run")
    refused = mill.types(*order, code=4)
    assert [one["code"] for one in refused["reasons"]] == ["CORES", "GPUS", "MEMORY"]

    task = mill.study.task()
    launcher = Launcher(executor="custom", submit=("sbatch", "{script}"), poll=("squeue", "{job}"))
    adapter = task.adapter.model_copy(update={"launcher": launcher})
    mill.study.task_path.write_text(tasks.dump(task.model_copy(update={"adapter": adapter})))
    refused = mill.types(*order, code=4)
    codes = {one["code"] for one in refused["reasons"]}
    assert codes == {"BLOCKED", "TASK_STALE"}  # it was approved as another task, and no more
