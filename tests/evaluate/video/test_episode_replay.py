"""Replays of environments with and without pictures, and of nested observations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlx.config.load import parse
from rlx.evaluate.policy import Policy, RandomPolicy
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.video.episode_replay import flat_observation, replay, state_drawing
from rlx.evaluate.video.subject import PolicySubject

CODE = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    \"\"\"A walk without pictures; its observation is a dict, and it reports reward terms.\"\"\"

    observation_space = spaces.Dict({"place": spaces.Box(-10, 10, (2,), np.float32), "goal": spaces.Discrete(3)})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=2).astype(np.float32)
        self.count = 0
        return self._see(), {}

    def _see(self):
        return {"place": self.place.copy(), "goal": 1}

    def step(self, action):
        self.count += 1
        self.place[0] += action - 0.5
        terms = {"forward": float(action), "cost": -0.1}
        return self._see(), sum(terms.values()), self.count >= 7, False, {"reward_terms": terms}
"""


def subject_for(env: str, root: Path) -> PolicySubject:
    experiment = parse({"env": {"id": env}, "algo": {"name": "ppo", "total_timesteps": 64}, "eval": {"episodes": 2}},
                       source="test")  # fmt: skip
    protocol = Protocol.of(experiment, root=root, purpose="report", episodes=2)
    made: gymnasium.Env[Any, Any] = _make(env, root)
    policy: Policy = RandomPolicy(made.action_space)
    made.close()
    return PolicySubject(None, None, root / "checkpoint", protocol, policy)


def _make(env: str, root: Path) -> gymnasium.Env[Any, Any]:
    from rlx.config.schema import Env
    from rlx.envs.make import make_env

    return make_env(Env(id=env), root=root)


def test_an_environment_without_pictures_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(CODE)
    subject = subject_for("walk.py:Walk", tmp_path)
    made = replay(subject, subject.protocol.episode_seeds()[0])
    assert made.is_drawn
    assert len(made.rows) == 8
    assert made.end.startswith("terminated")
    assert all(row.frame[:2] == b"\xff\xd8" for row in made.rows)
    first = made.rows[0]
    assert set(first.observation) == {"place[0]", "place[1]", "goal"}
    assert first.terms["cost"] == -0.1
    assert first.reward == pytest.approx(sum(first.terms.values()))
    assert made.rows[-1].total == pytest.approx(made.episode.episode_return)
    assert made.rows[1].observation["place[0]"] == pytest.approx(first.observation["place[0]"] + first.action[0] - 0.5)  # type: ignore[index]


@pytest.mark.slow
def test_lunar_lander_is_rendered(tmp_path: Path) -> None:
    pytest.importorskip("Box2D", reason="the extra `box2d` is not installed")
    subject = subject_for("LunarLander-v3", tmp_path)
    made = replay(subject, subject.protocol.episode_seeds()[0], most_steps=15)
    assert not made.is_drawn
    assert len(made.rows) == 15
    assert made.unshown_steps == made.episode.length - 15
    assert made.rows[3].frame != made.rows[12].frame


def test_drawings_hold_any_number() -> None:
    shown = flat_observation({"a": np.array([np.nan, np.inf, -3.0]), "pixels": np.zeros((64, 64, 3), np.uint8)})
    assert list(shown) == ["a[0]", "a[1]", "a[2]"]
    assert state_drawing(shown, 4).shape[2] == 3
    assert state_drawing({}, 0).shape[2] == 3
