"""The cost of a step does not depend on what else runs, and more environments must be worth it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlx.config.schema import Env
from rlx.design.step_cost import Chunk, cost_of_chunks, fewest_worthwhile, measure_throughput, step_seconds

ROOT = Path(__file__).parents[2]
PAUSE = 0.002


class Waiting(gymnasium.Env[Any, Any]):
    """A step sleeps, as an environment in another process does."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(PAUSE)
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_throughput_is_measured_per_number_of_environments() -> None:
    measured = measure_throughput(Env(id="CartPole-v1"), root=ROOT, counts=(1, 8))
    assert set(measured.steps_per_second) == {1, 8}
    assert all(rate > 0 for rate in measured.steps_per_second.values())
    assert measured.num_envs == 8


def test_an_environment_that_waits_is_measured_by_the_clock() -> None:
    assert step_seconds(Env(id=f"{__name__}:Waiting"), root=ROOT) >= PAUSE


@pytest.fixture
def load() -> Iterator[None]:
    """Twice as many busy programs as cores."""
    count = 2 * (os.cpu_count() or 1)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for process in busy:
        process.kill()
        process.wait()


def test_a_busy_machine_does_not_change_the_number_of_environments(load: None) -> None:
    found = {measure_throughput(Env(id="CartPole-v1"), root=ROOT).num_envs for _ in range(3)}
    assert found == {8}


def test_pauses_of_other_programs_are_not_counted() -> None:
    quiet = Chunk(steps=10, wall=0.001, cpu=0.001, waits=0)
    paused = Chunk(steps=10, wall=0.1, cpu=0.001, waits=0)
    assert cost_of_chunks([quiet, paused, paused]) == pytest.approx(0.0001)
    waiting = Chunk(steps=10, wall=0.1, cpu=0.001, waits=10)
    assert cost_of_chunks([waiting] * 3) == pytest.approx(0.01)


def test_more_environments_must_save_training_time() -> None:
    flat = {1: 1e-4, 8: 9.8e-5, 16: 9.7e-5, 32: 9.6e-5}
    assert fewest_worthwhile(flat) == 8
    arrays = {1: 1e-3, 8: 2e-4, 16: 1e-4, 32: 5e-5}
    assert fewest_worthwhile(arrays) == 32
    faster_than_any_learner = {1: 8e-6, 8: 4e-6, 16: 2e-6, 32: 1e-6}
    assert fewest_worthwhile(faster_than_any_learner) == 8
