"""The queue with real workers: killed, too many, and when the head moves under it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow


@pytest.fixture
def mill(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Mill:
    """Return a mill with a full pool, which trains one candidate at a time."""
    return Mill.ready(tmp_path / "mill", tmp_path_factory, "hardware.parallel=1")


def test_a_worker_that_is_killed_loses_nothing_and_another_leaves_what_there_is_no_room_for(mill: Mill) -> None:
    for changes in ({"how": "stay"}, {"gain": -1}):
        mill.types("study", "queue", "--add", mill.proposes(**changes))
    worker = subprocess.Popen(mill.argv("study", "queue", "--work"), cwd=mill.root, env=mill.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    wait_until(lambda: any(job.process for job in mill.study.state().open_jobs), seconds=60)
    worker.kill()
    worker.wait()
    (run,) = [str(job.run) for job in mill.study.state().open_jobs]

    told = mill.types("study", "queue", "--work")
    assert [(one["candidate"], one["outcome"]) for one in told["did"]] == [("c002", "waits")]
    assert [why.partition(":")[0] for why in told["did"][0]["why"]] == ["PARALLEL"]
    assert [one["candidate"] for one in told["waiting"]] == ["c002"]
    assert told["command"] == f"rlx wait {run} --timeout 300"

    mill.types("stop", run)
    told = mill.types("study", "queue", "--work")
    assert [(one["candidate"], one["outcome"]) for one in told["did"]] == [("c002", "rejected")]
    state = mill.study.state()
    assert [job.candidate for job in state.jobs.values()] == ["baseline", "c001", "c002"]
    assert (state.reserved.seeds, state.violations) == (0, ())


def test_a_head_that_moves_gets_its_fresh_seeds_before_the_others_go_on(mill: Mill) -> None:
    for gain in (5, 9):
        mill.types("study", "queue", "--add", mill.proposes(gain=gain))
    told = mill.types("study", "queue", "--work")
    assert [(one["candidate"], one["phase"], one["outcome"]) for one in told["did"]] == [
        ("c001", "trial", "inconclusive"),
        ("c002", "trial", "inconclusive"),
        ("c001", "trial", "advanced"),
        ("c001", "promotion", "completed"),
        ("c002", "trial", "advanced"),
        ("c002", "promotion", "completed"),
    ]
    assert told["waiting"] == []
    assert mill.study.state().head == "c002"
    assert mill.types("next", "--full")["action"] == "propose"
