"""Acrobots that are stepped together take the steps they would take alone, whatever is done to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.acrobot import AcrobotEnv

from rlx.envs import vector_acrobot
from rlx.envs.vector import SyncVector

Maker = Callable[[], gymnasium.Env[Any, Any]]


def make(**arguments: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("Acrobot-v1", **arguments)


class Reversed(gymnasium.ActionWrapper[Any, Any, Any]):
    def action(self, action: Any) -> Any:
        return 2 - action


class Pushed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Changes the state in place within a step."""

    def step(self, action: Any) -> Any:
        self.unwrapped.state[2] += 0.25  # type: ignore[attr-defined]
        return self.env.step(action)


class Heavier(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Changes its own physics at every reset."""

    def reset(self, **arguments: Any) -> Any:
        self.unwrapped.LINK_MASS_2 = 1.5  # type: ignore[attr-defined]
        return self.env.reset(**arguments)


class Half(AcrobotEnv):
    dt = 0.1


def played(step: Callable[[list[gymnasium.Env[Any, Any]], Any], list[Any]], maker: Maker, steps: int) -> list[Any]:
    envs = [maker() for _ in range(5)]
    shown = [env.reset(seed=seed)[0] for seed, env in enumerate(envs)]
    rng = np.random.default_rng(7)
    course: list[Any] = [[row.tobytes() for row in shown]]
    for _ in range(steps):
        answers = step(envs, rng.integers(0, 3, len(envs)))
        for env, (observation, reward, ends, is_cut, _) in zip(envs, answers, strict=True):
            state = env.unwrapped.state  # type: ignore[attr-defined]
            course.append((observation.tobytes(), observation.dtype, reward, ends, is_cut, state.tobytes()))
            if ends or is_cut:
                env.reset()
    return course


def alone(envs: list[gymnasium.Env[Any, Any]], actions: Any) -> list[Any]:
    return [env.step(action) for env, action in zip(envs, actions, strict=True)]


def together(envs: list[gymnasium.Env[Any, Any]], actions: Any) -> list[Any]:
    vector_acrobot.prepare(vector_acrobot.places(envs), actions)
    return alone(envs, actions)


@pytest.mark.parametrize(
    "maker",
    [make, lambda: Reversed(make()), lambda: Pushed(make()), lambda: Heavier(make())],
    ids=["as it comes", "actions changed on the way", "pushed within the step", "heavier since the reset"],
)
def test_together_every_bit_is_as_alone(maker: Maker) -> None:
    assert played(together, maker, 2000) == played(alone, maker, 2000)


def test_steps_given_in_advance_are_the_ones_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = [make() for _ in range(3)]
    for env in envs:
        env.reset(seed=1)
    vector_acrobot.prepare(vector_acrobot.places(envs), np.array([0, 1, 2]))
    monkeypatch.setattr(AcrobotEnv, "step", lambda *_: pytest.fail("stepped alone"))
    alone(envs, [0, 1, 2])


def test_other_physics_are_left_alone() -> None:
    assert not vector_acrobot.places([gymnasium.wrappers.TimeLimit(Half(), 10) for _ in range(3)])
    noisy = [make() for _ in range(3)]
    for env in noisy:
        env.unwrapped.torque_noise_max = 0.1  # type: ignore[attr-defined]
    assert not vector_acrobot.places(noisy)
    assert not vector_acrobot.places([gymnasium.make("CartPole-v1") for _ in range(3)])
    assert not vector_acrobot.places([AcrobotEnv() for _ in range(3)]), "there is no wrapper to stand in"
    assert not vector_acrobot.places([make()]), "one alone gains nothing"


def test_a_class_changed_later_is_not_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = [make() for _ in range(3)]
    for env in envs:
        env.reset(seed=1)
    places = vector_acrobot.places(envs)
    monkeypatch.setattr(AcrobotEnv, "LINK_MOI", 2.0)
    vector_acrobot.prepare(places, np.array([0, 1, 2]))
    others = [make() for _ in range(3)]
    for env in others:
        env.reset(seed=1)
    states = [answer[0].tobytes() for answer in alone(envs, [0, 1, 2])]
    assert states == [answer[0].tobytes() for answer in alone(others, [0, 1, 2])]


def test_places_are_made_once() -> None:
    envs = [make() for _ in range(2)]
    first = vector_acrobot.places(envs)
    assert vector_acrobot.places(envs) == first
    assert [str(env).count("Foreseen") for env in envs] == [1, 1]


def _only_given(place: vector_acrobot.Foreseen, action: Any, step: Any = vector_acrobot.Foreseen.step) -> Any:
    assert place._next is not None
    assert place._next[1] == action
    return step(place, action)


def test_a_vector_of_them_steps_as_gymnasium_s(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = (
        SyncVector([make] * 4),
        gymnasium.vector.SyncVectorEnv([make] * 4, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP),
    )
    monkeypatch.setattr(vector_acrobot.Foreseen, "step", _only_given)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    for _ in range(1200):  # beyond the time limit
        actions = rng.integers(0, 3, 4)
        for mine, his in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(mine, his)
