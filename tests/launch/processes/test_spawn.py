"""Workers, forked or spawned, live in the environment that a fresh process would have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlx.launch import launch
from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow

ENV = """
import os
import sys

import gymnasium
import numpy as np


class Telling(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        held = os.listdir("/proc/self/fd")
        files = [os.readlink(f"/proc/self/fd/{one}") for one in held if os.path.exists(f"/proc/self/fd/{one}")]
        print("TOLD", os.getcwd(), sys.path[0], sys.argv[-1], os.getsid(0) == os.getpid(), end=" ", flush=True)
        print(any(file.endswith(".supervisor.json.lock") for file in files), hash("a"), flush=True)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, bool(self.np_random.random() < 0.1), False, {}
"""


def told(project: Project, run: str, seed: int) -> list[str]:
    lines = (project.run(run).path / "logs" / f"seed_{seed}.log").read_text().splitlines()
    return next(line for line in lines if line.startswith("TOLD")).removeprefix("TOLD ").split(" ")


def test_a_forked_worker_sees_what_a_spawned_one_sees(project: Project) -> None:
    project.root = project.root.rename(project.root.with_name("project"))
    project.write("envs/telling.py", ENV)
    config = project.config(env={"id": "envs/telling.py:Telling"}, eval={"every": 4096})
    project.rlx("train", config, "--seeds", "2")
    project.rlx("train", config, "-s", "resources.cores=2")
    forked, spawned = told(project, "tiny_001", 0), told(project, "tiny_002", 0)
    assert forked == spawned
    root = str(project.root.resolve())
    assert (forked[0], forked[2:5]) == (root, ["0", "True", "False"])
    assert told(project, "tiny_001", 1)[2] == "1"
    attempts = [project.run(name).seeds[0].attempts[0] for name in ("tiny_001", "tiny_002")]
    assert [attempt["environment"]["OMP_NUM_THREADS"] for attempt in attempts] == ["1", "2"]
    assert {attempt["environment"]["PYTHONHASHSEED"] for attempt in attempts} == {"0"}


def test_a_supervisor_is_forked_from_its_command_and_holds_nothing_of_it(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 1_000_000}), "--detach")
    run = project.run("tiny_001")
    assert run.supervisor is not None
    folder = Path("/proc") / str(run.supervisor.pid)
    assert b"\0train\0" in (folder / "cmdline").read_bytes()
    assert os.getsid(run.supervisor.pid) == run.supervisor.pid
    held = {int(one.name): str(one.readlink()) for one in (folder / "fd").iterdir()}
    project.rlx("stop", "tiny_001")
    log, lock = str(run.path / "logs" / "supervisor.log"), str(run.path / ".supervisor.json.lock")
    assert held.pop(0).startswith("pipe:")
    assert (held.pop(1), held.pop(2), *held.values()) == (log, log, lock)


@pytest.mark.parametrize("how", ["'{python}' -m rlx train {config} >&- 2>&-", "'{python}' -I -m rlx train {config}"])
def test_however_a_command_is_started_workers_see_the_same(project: Project, how: str) -> None:
    project.write("envs/telling.py", ENV)
    config = project.config(env={"id": "envs/telling.py:Telling"}, eval={"every": 4096})
    project.rlx("train", config)
    line = how.format(python=sys.executable, config=config)
    subprocess.run(["bash", "-c", line], cwd=project.root, env=project.environment(), check=True, capture_output=True)
    assert told(project, "tiny_002", 0) == told(project, "tiny_001", 0)


def test_a_run_that_is_refused_leaves_no_supervisor(project: Project) -> None:
    project.rlx("train", project.config(env={"id": "Nowhere-v0"}), code=3)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _is_in(path.parent, project)]
    assert not lines


def _is_in(folder: Path, project: Project) -> bool:
    try:
        return (folder / "cwd").readlink() == project.root.resolve()
    except OSError:
        return False


def test_nothing_is_imported_from_a_runs_folder(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 1_000_000}), "--detach")
    project.rlx("stop", "tiny_001")
    run = project.run("tiny_001")
    for name in ("orjson", "yaml", "numpy", "rlx"):
        (run.path / f"{name}.py").write_text("raise SystemExit('imported')")
    began = len(run.seeds[0].attempts)
    project.rlx("resume", "tiny_001", "--detach")
    wait_until(lambda: len(project.run("tiny_001").seeds[0].attempts) > began)
    project.rlx("stop", "tiny_001")
    assert "imported" not in (run.path / "logs" / "supervisor.log").read_text()


def test_a_prepared_supervisor_without_a_run_ends_with_the_block() -> None:
    with launch.prepared_supervisor() as supervisor:
        assert supervisor.poll() is None
    assert supervisor.returncode is not None


def test_a_prepared_supervisor_ends_with_its_caller() -> None:
    with launch.prepared_supervisor() as supervisor:
        supervisor.communicate()  # what it sees where the caller dies: the end of its input
        assert supervisor.returncode == 0
