from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.snapshot import capture, restore
from rlx.envs.vector import make_vector
from tests.envs.worlds import Careless, Nested, Viewing, Walk, through_json

EXACT = [
    Env(id="CartPole-v1"),
    Env(id="Pendulum-v1"),
    Env(id="Acrobot-v1"),
    Env(id="MountainCar-v0"),
    Env(id="MountainCarContinuous-v0"),
    Env(id="FrozenLake-v1"),
    Env(id="Taxi-v4", wrappers=["one_hot"]),
    Env(id="CliffWalking-v1"),
    Env(id="Blackjack-v1"),
    Env(id="Hopper-v5"),
    Env(id="HalfCheetah-v5", wrappers=[{"time_limit": {"max_steps": 30}}]),
    Env(id="Ant-v5"),
    Env(id="CartPole-v1", wrappers=[{"frame_stack": {"size": 4}}, {"sticky_actions": {"probability": 0.3}}]),
    Env(id="Pendulum-v1", wrappers=["rescale_action", {"delay": {"steps": 2}}, "time_aware", {"action_repeat": {}}]),
]


def follow(env: Any, actions: list[Any]) -> list[Any]:
    """Step through actions, resetting where an episode ends, and return everything seen."""
    seen: list[Any] = []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append((np.asarray(observation).tobytes(), np.asarray(reward).tobytes(), np.all(terminated), truncated))
        if not isinstance(env, gymnasium.vector.VectorEnv) and (terminated or truncated):
            seen.append(np.asarray(env.reset()[0]).tobytes())
    return seen


def resumes_exactly(make: Callable[[], Any]) -> bool:
    """Run one instance; a fresh one with its state, taken through JSON, must show the same."""
    first, second = make(), make()
    first.action_space.seed(1)
    actions = [first.action_space.sample() for _ in range(90)]
    first.reset(seed=11)
    follow(first, actions[:30])
    state = through_json(capture(first))
    restore(second, state)
    expected, found = follow(first, actions[30:]), follow(second, actions[30:])
    first.close(), second.close()
    return str(expected) == str(found)


@pytest.mark.parametrize("env", EXACT, ids=lambda env: "+".join([env.id, *(each.name for each in env.wrappers)]))
def test_a_restored_environment_continues_as_the_original(env: Env, tmp_path: Path) -> None:
    assert resumes_exactly(lambda: make_env(env, root=tmp_path))


@pytest.mark.parametrize("env", [EXACT[0], EXACT[9], EXACT[12]], ids=["CartPole", "Hopper", "stacked"])
def test_a_restored_vector_continues_as_the_original(env: Env, tmp_path: Path) -> None:
    assert resumes_exactly(lambda: make_vector(env, root=tmp_path, num_envs=3))


@pytest.mark.parametrize("make", [Walk, Nested, Viewing], ids=lambda make: make.__name__)
def test_a_restored_environment_of_ones_own_continues_as_the_original(make: Callable[[], Any]) -> None:
    assert resumes_exactly(make)
    assert resumes_exactly(lambda: SyncVectorEnv([make, make], autoreset_mode="SameStep"))


def test_global_generators_are_left_to_the_trainer() -> None:
    state = capture(Careless())
    before = np.random.get_state(legacy=False)["state"]["pos"]  # type: ignore[index,call-overload]
    restore(Careless(), state)
    assert np.random.get_state(legacy=False)["state"]["pos"] == before  # type: ignore[index,call-overload]


def test_the_action_spaces_generator_is_part_of_the_state(tmp_path: Path) -> None:
    first, second = (make_env(Env(id="Pendulum-v1"), root=tmp_path) for _ in range(2))
    first.action_space.seed(5)
    first.action_space.sample()
    restore(second, through_json(capture(first)))
    assert first.action_space.sample() == second.action_space.sample()


def test_a_state_is_a_copy(tmp_path: Path) -> None:
    env = Walk()
    env.reset(seed=0)
    state = capture(env)
    kept = str(state)
    env.position += 1.0
    env.step(2)
    assert str(state) == kept


def test_an_environment_that_was_never_reset_is_restored_as_such(tmp_path: Path) -> None:
    first, second = (make_env(Env(id="CartPole-v1"), root=tmp_path) for _ in range(2))
    state = through_json(capture(first))
    second.reset(seed=1)
    restore(second, state)
    with pytest.raises(gymnasium.error.ResetNeeded):
        second.step(0)


WORLD = """
from dataclasses import dataclass, field
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces


@dataclass
class Bullet:
    speed: float
    trail: list = field(default_factory=list)


class Shooting(gymnasium.Env):
    def __init__(self):
        self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
        self.action_space = spaces.Discrete(2)
        self.place = Path(__file__).parent
        self.bullets = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.bullets.clear()
        return np.zeros(1), {}

    def step(self, action):
        self.bullets.append(Bullet(self.np_random.normal()))
        for bullet in self.bullets:
            bullet.trail.append(bullet.speed * self.np_random.normal())
        total = sum(sum(bullet.trail) for bullet in self.bullets)
        return np.array([total]), 0.0, len(self.bullets) > 12, False, {}
"""

HALF = """
import base64, hashlib, sys
from pathlib import Path
import numpy as np, orjson
from rlx.config.schema import Env
from rlx.envs.snapshot import capture, restore
from rlx.envs.vector import make_vector
from rlx.runs.checkpoints.state_tree import pack, unpack

def run(vector, steps):
    seen = hashlib.sha256()
    for step in range(steps):
        seen.update(vector.step(np.array([step % 2, 1]))[0].tobytes())
    return seen.hexdigest()

env = Env(id="envs/shooting.py:Shooting", wrappers=[{"time_limit": {"max_steps": 40}}])
vector = make_vector(env, root=Path("."), num_envs=2)
file = Path(sys.argv[1])
if not file.exists():
    vector.reset(seed=[1, 2])
    run(vector, 30)
    document, arrays = pack(capture(vector))
    np.savez(file.with_suffix(".npz"), **arrays)
    file.write_bytes(orjson.dumps(document))
else:
    arrays = dict(np.load(file.with_suffix(".npz")))
    restore(vector, unpack(orjson.loads(file.read_bytes()), arrays))
print(run(vector, 30))
"""


def test_another_process_in_a_moved_project_continues_as_the_original(tmp_path: Path) -> None:
    seen = []
    for place in ("here", "there"):
        (tmp_path / place / "envs").mkdir(parents=True)
        (tmp_path / place / "envs" / "shooting.py").write_text(WORLD)
        command = [sys.executable, "-c", HALF, str(tmp_path / "state.json")]
        done = subprocess.run(command, cwd=tmp_path / place, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        seen.append(done.stdout)
    assert seen[0] == seen[1]
