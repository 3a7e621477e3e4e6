"""`check env` survives an environment that kills its process, and says what that means."""

from __future__ import annotations

import pytest

from tests.conftest import Project

ENV = """
import ctypes, os
import gymnasium, numpy as np
from gymnasium import spaces

class Calm(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}
    def step(self, action):
        self.die()
        return np.zeros(1, np.float32), 0.0, False, False, {}

class Leaves(Calm):
    def die(self):
        os._exit(3)

class Crashes(Calm):
    def die(self):
        ctypes.string_at(0)
"""


@pytest.mark.parametrize(("name", "words"), [("Leaves", "exit code 3"), ("Crashes", "SIGSEGV")])
def test_a_process_that_dies_is_a_finding(project: Project, name: str, words: str) -> None:
    project.write("envs/bad.py", ENV)
    answer = project.rlx("check", "env", f"envs/bad.py:{name}", code=1)
    assert "kills_the_process" in answer.stdout
    assert words in answer.stdout
    if name == "Leaves":
        assert "bad.py" in answer.stdout


def test_errors_of_rlx_are_printed_once(project: Project) -> None:
    answer = project.rlx("check", "env", "Nope-v1", code=3)
    assert answer.stderr.count("no environment `Nope-v1`") == 1
