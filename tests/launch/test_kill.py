"""Whatever dies, status is right at once, no process is left, and resuming ends where the plan says."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest

from rlx.runs import process
from rlx.runs.checkpoints import checkpoint
from rlx.runs.run import Run
from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow

DQN = {"name": "dqn", "total_timesteps": 2400, "learning_starts": 200, "buffer_size": 1000, "target_update_every": 100}
SIGNALS, TARGETS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM), ("supervisor", "worker", "both")
KILLS = [
    (signal.SIGKILL, "supervisor"),
    (signal.SIGKILL, "worker"),
    (signal.SIGTERM, "supervisor"),
    (signal.SIGTERM, "both"),
    (signal.SIGINT, "worker"),
]
if os.environ.get("RLX_SWEEP") == "full":
    KILLS = [(number, target) for number in SIGNALS for target in TARGETS]


def worker_pids(run: Run) -> list[int]:
    return [seed.events[0]["process"]["pid"] for seed in run.seeds if seed.events]


def is_gone(pid: int) -> bool:
    return process.identify(pid).started == ""


@pytest.mark.parametrize(("number", "target"), KILLS)
def test_a_killed_run_is_told_at_once_and_resumes_to_its_end(project: Project, number: int, target: str) -> None:
    """Every signal and every target is there; RLX_SWEEP=full sends every signal to every target."""
    config = project.config(algo={"total_timesteps": 6000}, checkpoint={"save_every": 500}, eval={"every": 6000})
    project.rlx("train", config, "--detach", "--seeds", "2")
    path = project.run("tiny_001").path
    wait_until(lambda: all("latest" in checkpoint.names(seed.checkpoints) for seed in Run(path).seeds))
    run = Run(path)
    assert run.supervisor is not None
    workers = worker_pids(run)
    if target in ("worker", "both"):
        os.kill(workers[0], number)
    if target in ("supervisor", "both"):
        os.kill(run.supervisor.pid, number)
    doomed = workers[:1] if target == "worker" else [run.supervisor.pid, *workers]
    wait_until(lambda: all(is_gone(pid) for pid in doomed))
    said = project.rlx("ls", "--json").stdout
    if target == "worker":
        wait_until(lambda: Run(path).seeds[0].status.state in ("interrupted", "lost"))
        project.rlx("wait", "tiny_001", "--timeout", "120", code=5)
        assert Run(path).seeds[1].status.state == "completed"
    else:
        assert '"running"' not in said
        assert all(is_gone(pid) for pid in workers)
    assert Run(path).seeds[0].status.state in ("interrupted", "lost")
    project.rlx("resume", "tiny_001")
    assert Run(path).status == "completed"
    assert [seed.rows[-1]["step"] for seed in Run(path).seeds] == [6016, 6016]
    steps = [row["step"] for row in Run(path).seeds[0].rows]
    assert steps == sorted(set(steps))


def weights(path: Path) -> dict[str, np.ndarray]:
    latest = checkpoint.read(Run(path).seeds[0].checkpoints / "latest")
    return {**latest.policy, **{f"optimizer/{name}": value for name, value in latest.optimizer.items()}}


@pytest.mark.parametrize("algo", [{"total_timesteps": 6400}, DQN], ids=["ppo", "dqn"])
@pytest.mark.timeout(600)
def test_weights_after_random_kills_equal_the_uninterrupted_run(project: Project, algo: dict[str, object]) -> None:
    """Two kills by default; RLX_SWEEP=full: four."""
    sections = {"algo": algo, "checkpoint": {"save_every": 256}, "eval": {"every": 100_000}}
    if algo.get("name") == "dqn":
        base = {"run_name": "tiny", "env": {"id": "CartPole-v1"}, "policy": {"hidden_sizes": [8]}, **sections}
        import yaml

        config = str(project.write("configs/tiny.yaml", yaml.safe_dump(base)).relative_to(project.root))
    else:
        config = project.config(**sections)
    project.rlx("train", config)
    project.rlx("train", config, "--detach")
    path = project.run("tiny_002").path
    dice = random.Random(7)
    for _ in range(4 if os.environ.get("RLX_SWEEP") == "full" else 2):
        goal = Run(path).seeds[0].step + dice.randrange(300, 900)
        wait_until(lambda goal=goal: Run(path).seeds[0].step > goal or Run(path).status == "completed")
        run = Run(path)
        if run.status == "completed":
            break
        os.kill(run.seeds[0].events[-1].get("process", {}).get("pid") or _pid(run), signal.SIGKILL)
        wait_until(lambda: Run(path).status != "running")
        project.rlx("resume", "tiny_002", "--detach")
    project.rlx("wait", "tiny_002")
    assert {event["label"] for event in Run(path).seeds[0].events if event["event"] == "resumed"} == {"exact"}
    whole, broken = weights(project.run("tiny_001").path), weights(path)
    assert whole.keys() == broken.keys()
    assert all(np.array_equal(whole[name], broken[name]) for name in whole)


def _pid(run: Run) -> int:
    started = [event for event in run.seeds[0].events if event["event"] == "started"]
    return int(started[-1]["process"]["pid"])
