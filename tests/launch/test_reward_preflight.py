"""A changed reward on the episodes that real policies played."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import ConfigError, EvidenceInvalid, JobFailed, NotFound
from rlx.evaluate.trajectory import Trajectory, encode
from rlx.launch import reward_preflight as module
from rlx.launch.reward_preflight import preflight
from rlx.runs import store
from rlx.runs.run import Run
from tests.evaluate.test_trajectory import trajectory

REWARDS = """
def goal(terminated, step):
    print("talk")
    return 10.0 if terminated and step < 5 else 0.0


def alive():
    return 1.0


def never():
    while True:
        pass


def large():
    return len(bytearray(10 * 2**30))


def writes():
    with open("written.txt", "w") as stream:
        stream.write("x" * 100)
    return 1.0


def leaves():
    raise SystemExit(3)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "rewards.py").write_text(REWARDS)
    return tmp_path


def run_with(root: Path, *trajectories: Trajectory) -> Run:
    run = store.create(root, name="kept", snapshot="{}", metadata={}, seeds=[0])
    if trajectories:
        (run.path / "eval/f00").mkdir(parents=True)
        store.save_trajectories(run.path / "eval/f00/seed_0_latest.npz", encode(trajectories))
    return run


@pytest.fixture
def run(root: Path) -> Run:
    """Return a run whose successes are short and whose failures are long."""
    return run_with(root, *[trajectory(3 + n % 2) for n in range(5)], *[trajectory(20, success=False)] * 4)


def test_a_good_reward_passes_and_a_living_wage_is_refused(root: Path, run: Run) -> None:
    good = preflight("rewards.py:goal", run, root=root)
    assert (good.successes, good.failures, good.is_refused) == (5, 4, False)
    bad = preflight("rewards.py:alive", run, root=root)
    assert (bad.auc, bad.is_refused) == (0.0, True)


def test_endless_code_is_ended(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WALL_SECONDS", 6)
    with pytest.raises(JobFailed, match="took more than 6 seconds"):
        preflight("rewards.py:never", run, root=root)


def test_memory_and_files_are_limited(root: Path, run: Run) -> None:
    with pytest.raises(ConfigError, match="raised MemoryError"):
        preflight("rewards.py:large", run, root=root)
    with pytest.raises(ConfigError, match="File too large"):
        preflight("rewards.py:writes", run, root=root)
    assert (root / "written.txt").read_text() == ""


def test_code_that_ends_the_process_is_named(root: Path, run: Run) -> None:
    with pytest.raises((JobFailed, ConfigError), match="leaves"):
        preflight("rewards.py:leaves", run, root=root)


def test_both_successes_and_failures_are_needed(root: Path) -> None:
    with pytest.raises(NotFound, match="keeps no trajectories"):
        preflight("rewards.py:goal", run_with(root), root=root)
    with pytest.raises(EvidenceInvalid, match="say nothing about success"):
        preflight("rewards.py:goal", run_with(root, trajectory(success=None)), root=root)
    with pytest.raises(EvidenceInvalid, match="5 successes and 0 failures") as caught:
        preflight("rewards.py:goal", run_with(root, *[trajectory()] * 5), root=root)
    assert ":untrained --keep-trajectories" in str(caught.value.hint)
    with pytest.raises(EvidenceInvalid, match="0 successes and 5 failures"):
        preflight("rewards.py:goal", run_with(root, *[trajectory(success=False)] * 5), root=root)
