"""One's own training script as a run: folder, rows, evaluation, and the truth about how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rlx
from rlx.errors import UsageError
from rlx.runs.run import Run
from tests.conftest import wait_until

CONFIG = {"run_name": "mine", "env": {"id": "CartPole-v1"}, "lr": 3e-4}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rlx.toml").touch()
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_lines_make_a_run(project: Path) -> None:
    (project / "model.pt").write_bytes(b"weights")
    with rlx.start(CONFIG, seed=0) as run:
        for step in (100, 200):
            run.log(step, {"rollout/return_mean": float(step)})
        kept = run.save("model.pt")
    opened = rlx.open("mine_001")
    assert opened.status == "completed"
    assert opened.series("rollout/return_mean")[0].values.tolist() == [100.0, 200.0]
    assert opened.config["lr"] == 3e-4
    assert kept.read_bytes() == b"weights"
    assert [found.name for found in rlx.find(env="CartPole-v1")] == ["mine_001"]


def test_a_script_can_be_evaluated_like_every_run(project: Path) -> None:
    with rlx.start(CONFIG) as run:
        evaluation = run.evaluate(lambda observation: int(observation[2] > 0), episodes=3)
    assert len(evaluation.episodes) == 3
    document = rlx.open("mine_001").evaluations()[0]
    assert document["seed"] == 0
    assert document["mean"] == evaluation.mean
    assert rlx.open("mine_001").own_protocol == evaluation.fingerprint


def test_a_second_seed_joins_the_run(project: Path) -> None:
    with rlx.start(CONFIG, seed=0):
        pass
    with rlx.start(CONFIG, seed=5, run="mine_001"):
        pass
    assert [seed.number for seed in rlx.open("mine_001").seeds] == [0, 5]
    with pytest.raises(UsageError, match="already has seed 5, which is completed") as caught:
        rlx.start(CONFIG, seed=5, run="mine_001")
    assert caught.value.hint == "pass another seed (seed=6), or leave out `run` to record it in a new run"
    with rlx.start(CONFIG, seed=6, run="mine_001"), rlx.start(CONFIG, seed=5) as again:
        assert again.name == "mine_002"


def test_seeds_that_start_in_parallel_join_one_run(project: Path) -> None:
    script = (
        "import rlx, sys\n"
        "with rlx.start({'run_name': 'mine', 'lr': 1.0}, seed=int(sys.argv[1])) as run:\n"
        "    run.log(1, {'x': 1.0})\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, str(seed)], cwd=project) for seed in range(4)]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    assert [run.name for run in rlx.find()] == ["mine_001"]
    assert [(seed.number, seed.status.state) for seed in rlx.open("mine_001").seeds] == [
        (number, "completed") for number in range(4)
    ]


def test_other_configs_names_and_code_get_their_own_run(project: Path) -> None:
    names = []
    for change in ({}, {"lr": 1e-3}, {"run_name": "other"}):
        with rlx.start({**CONFIG, **change}) as run:
            names.append(run.name)
    (project / "agent.py").write_text("GAMMA = 0.9\n")
    with rlx.start(CONFIG, seed=1) as run:
        names.append(run.name)
    assert names == ["mine_001", "mine_002", "other_001", "mine_003"]


def test_a_seed_that_failed_starts_again_in_its_run(project: Path) -> None:
    run = rlx.start(CONFIG, seed=3)
    run.log(0, {"x": 1.0})
    run.log(7, {"x": 2.0})
    run.finish(ZeroDivisionError("oops"))
    with rlx.start(CONFIG, seed=3) as run:
        run.log(0, {"x": 5.0})
    seed = rlx.open("mine_001").seed(3)
    assert (run.name, seed.status.state, seed.status.attempt) == ("mine_001", "completed", 2)
    assert [row["x"] for row in seed.rows] == [5.0]


def test_the_same_seed_twice_at_once_is_two_runs(project: Path) -> None:
    with rlx.start(CONFIG, seed=0) as first, rlx.start(CONFIG, seed=0) as second, rlx.start(CONFIG, seed=1) as third:
        pass
    assert (first.name, second.name, third.name) == ("mine_001", "mine_002", "mine_002")


def test_an_exception_makes_the_run_failed(project: Path) -> None:
    with pytest.raises(ZeroDivisionError), rlx.start(CONFIG):
        raise ZeroDivisionError("oops")
    seed = rlx.open("mine_001").seeds[0]
    assert (seed.status.state, seed.status.reason) == ("failed", "ZeroDivisionError: oops")


def test_saving_a_file_that_is_not_there_is_a_clear_mistake(project: Path) -> None:
    with rlx.start(CONFIG) as run, pytest.raises(UsageError, match="no file"):
        run.save("absent.pt")


def test_a_script_is_not_trained_by_resume_or_more(project: Path) -> None:
    from rlx.launch import launch

    with rlx.start(CONFIG):
        pass
    for again in (launch.resume, lambda run: launch.add_seeds(run, 1)):
        with pytest.raises(UsageError, match="script of your own"):
            again(rlx.open("mine_001"))


SCRIPT = "import rlx, sys, time\nrun = rlx.start({'run_name': 'mine', 'env': 'CartPole-v1'})\nrun.log(1, {'x': 1.0})\n"


@pytest.mark.parametrize(("end", "state"), [("", "completed"), ("raise RuntimeError('no')", "failed")])
def test_a_script_without_a_with_block_ends_as_it_ended(project: Path, end: str, state: str) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT + end], cwd=project, capture_output=True)
    assert rlx.open("mine_001").status == state


def test_a_killed_script_is_lost(project: Path) -> None:
    script = subprocess.Popen([sys.executable, "-c", SCRIPT + "time.sleep(60)"], cwd=project)
    wait_until(lambda: (project / "runs" / "mine_001" / "seed_0" / "heartbeat").exists())
    wait_until(lambda: rlx.open("mine_001").seeds[0].rows)
    assert rlx.open("mine_001").status == "running"
    os.kill(script.pid, signal.SIGKILL)
    script.wait()
    run = Run(project / "runs" / "mine_001")
    assert run.status == "lost"
    assert run.seeds[0].rows[0]["x"] == 1.0
