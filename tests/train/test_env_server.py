"""Training with environments in another process gives the same weights, resumes exactly, and trusts nothing."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rlx.config.schema import Env, Experiment
from rlx.envs.make import make_env
from rlx.envs.remote import wire
from rlx.envs.remote.env_process import STEP, EnvProcess
from rlx.envs.vector import make_vector
from rlx.errors import ConfigError, JobFailed
from rlx.testing import RecordingSession, digest
from rlx.train.backends.fast.fast_trainer import FastTrainer
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from tests.train.backends.sb3_examples import TOYS, tiny

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def served(root: Path = ROOT) -> Iterator[EnvProcess]:
    """A connection to a new process."""
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-P", "-m", "rlx.train.env_server", str(root)]
    with subprocess.Popen(argv, stdin=theirs.fileno(), cwd=root) as process:
        theirs.close()
        client = EnvProcess(ours)
        try:
            yield client
        finally:
            client.close()
            assert process.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def server() -> Iterator[EnvProcess]:
    with served() as process:
        yield process


@pytest.fixture
def apart(server: EnvProcess) -> Iterator[EnvProcess]:
    """Environments are made in another process during the test."""
    server.connect()
    yield server
    server.disconnect()


def train(experiment: Experiment, folder: Path, **settings: Any) -> RecordingSession:
    session = RecordingSession(experiment, folder, root=ROOT, **settings)
    trainer = FastTrainer() if experiment.backend == "fast" else Sb3Trainer()
    trainer.train(cast("Any", session))
    return session


def fast(**settings: Any) -> Experiment:
    return tiny(**{"total_timesteps": 128, **settings}).model_copy(update={"backend": "fast"})


CASES: dict[str, Experiment] = {
    "fast, numbers": fast(env={"id": "Pendulum-v1", "normalize": {"obs": True, "reward": True}}),
    "fast, dict observations": fast(env={"id": f"{TOYS}:Mixed"}),
    "fast, discrete observations": fast(env={"id": "FrozenLake-v1"}),
    "fast, late resets": fast(
        env={"id": "tests.envs.swarm:Late", "num_envs": 3, "vectorization": "auto", "kwargs": {"horizon": 9}},
        batch_size=24,
    ),
    "sb3, ppo": tiny("ppo", env={"normalize": {"obs": True, "reward": True}}),
    "sb3, sac": tiny("sac", env={"id": "Pendulum-v1"}),
    "sb3, masks": tiny("maskable_ppo", env={"id": f"{TOYS}:Doors"}),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_are_the_same_as_in_one_process_also_after_a_resume(
    name: str, server: EnvProcess, tmp_path: Path
) -> None:
    experiment = CASES[name]
    here = train(experiment, tmp_path / "here")
    server.connect()
    try:
        there = train(experiment, tmp_path / "there")
        part = train(experiment, tmp_path / "part", stop_at_poll=there.polls // 2)
        resumed = train(experiment, tmp_path / "rest", checkpoint=part.saved)
    finally:
        server.disconnect()
    assert digest(there.saved) == digest(here.saved)
    assert there.saved.resume == here.saved.resume == "exact"
    assert part.saved.step < there.saved.step
    assert digest(resumed.saved) == digest(here.saved)


def test_an_environment_that_fails_says_so_under_its_own_name(apart: EnvProcess) -> None:
    env = make_env(Env(id="CartPole-v1"), root=ROOT)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match=r"invalid \(cartpole.py:\d+\)") as caught:
        env.step(np.int64(7))
    assert type(caught.value).__name__ == "AssertionError"


def test_an_environment_that_cannot_be_made_is_an_error_of_one_line(apart: EnvProcess) -> None:
    with pytest.raises(ConfigError, match="missing"):
        make_env(Env(id="CartPole-v1", kwargs={"missing": 1}), root=ROOT)


def test_infos_are_numbers_only(apart: EnvProcess) -> None:
    vector = make_vector(Env(id=f"{TOYS}:Terms", num_envs=2), root=ROOT)
    vector.reset(seed=[0, 1])
    infos = vector.step(vector.action_space.sample())[4]
    assert set(infos) <= {"reward_terms", "_reward_terms", "final_info", "_final_info", "final_obs", "_final_obs"}
    assert all(values.dtype.kind in "bf" for values in infos["reward_terms"].values())


class Liar:
    """The other end of a connection, in the hands of a candidate: it answers whatever it likes."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.client = EnvProcess(ours)

    def vector(self, space: dict[str, Any], *answers: bytes) -> Any:
        """Return a vector of this process, which gives these answers after its description."""
        document = {"number": 1, "observation_space": space, "autoreset_mode": "SameStep"}
        document |= {"action_space": {"kind": "discrete", "n": 2, "start": 0, "dtype": "int64"}}
        for answer in (wire.pack("bytes", text(document)), wire.pack("done"), *answers):
            self.theirs.sendall(answer)
        self.client.connect()
        try:
            return make_vector(Env(id="x", num_envs=2), root=ROOT)
        finally:
            self.client.disconnect()


@pytest.fixture
def liar() -> Iterator[Liar]:
    end = Liar()
    yield end
    end.client.close()
    end.theirs.close()


def text(document: Any) -> Any:
    return np.frombuffer(json.dumps(document).encode(), np.uint8)


BOX = {"kind": "box", "low": -1.0, "high": 1.0, "shape": [3], "dtype": "float32"}
CHOICE = {"kind": "discrete", "n": 4, "start": 0, "dtype": "int64"}
SHOWN = wire.pack("observations", dtypes=["<f4"])
LIES = {
    "objects as observations": [wire.pack("observations", dtypes=["|O"])],
    "fewer observations": [wire.pack("observations", dtypes=[])],
    "no frame": [b"x" * 64],
    "a frame without end": [wire.LENGTHS.pack(wire.MAGIC, 2, 2**60)],
    "a pickle": [SHOWN, wire.pack("stepped", np.zeros(3, np.uint8))],
    "infos of another shape": [SHOWN, wire.pack("stepped", {"infos": {"a": np.zeros(7)}}, ended=[])],
    "too many infos": [SHOWN, wire.pack("stepped", {"infos": {f"n{i}": np.zeros(2) for i in range(999)}}, ended=[])],
    "an end that is not there": [
        SHOWN, wire.pack("stepped", {"infos": {}, "final": (np.zeros(3, np.float32),)}, ended=[5])
    ],
    "a larger last observation": [
        SHOWN, wire.pack("stepped", {"infos": {}, "final": (np.zeros(9, np.float32),)}, ended=[0])
    ],
    "silence": [SHOWN],
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_lie_ends_the_seed(name: str, liar: Liar) -> None:
    vector = liar.vector(BOX, *LIES[name])
    liar.theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(JobFailed, match="environment's"):
        play(vector)


def play(vector: Any) -> None:
    vector.reset(seed=[0, 1])
    vector.step(np.zeros(2, dtype=np.int64))


def test_a_choice_outside_its_space_ends_the_seed(liar: Liar) -> None:
    vector = liar.vector(CHOICE, wire.pack("observations", dtypes=["<i8"]), wire.LENGTHS.pack(STEP, 0, 0))
    vector.reset(seed=[0, 1])
    vector._shared.observations[0][1] = -3
    with pytest.raises(JobFailed, match="not in Discrete"):
        vector.step(np.zeros(2, dtype=np.int64))


def test_the_shared_memory_cannot_shrink_under_its_reader(liar: Liar) -> None:
    liar.vector(BOX)
    descriptors: list[int] = []
    while not descriptors:
        _, descriptors, _, _ = socket.recv_fds(liar.theirs, 2**16, 1)
    with pytest.raises(PermissionError):
        os.ftruncate(descriptors[0], 0)
    os.close(descriptors[0])
