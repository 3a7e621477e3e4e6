from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pygame
import pytest

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.snapshot import Probe, probe
from rlx.envs.vector import make_vector
from tests.envs import worlds


@pytest.mark.parametrize(
    "env_id",
    ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "FrozenLake-v1",
     "Taxi-v4", "CliffWalking-v1", "Blackjack-v1", "Hopper-v5", "HalfCheetah-v5", "Humanoid-v5"],
)  # fmt: skip
def test_environments_of_plain_python_and_mujoco_are_exact(env_id: str, tmp_path: Path) -> None:
    assert probe(lambda: make_env(Env(id=env_id), root=tmp_path)) == Probe(is_exact=True, missing="")


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "Hopper-v5"])
def test_vectors_of_them_are_exact(env_id: str, tmp_path: Path) -> None:
    env = Env(id=env_id, wrappers=["flatten", {"frame_stack": {"size": 2}}])
    assert probe(lambda: make_vector(env, root=tmp_path, num_envs=2)) == Probe(is_exact=True, missing="")


@pytest.mark.parametrize(
    ("env_id", "missing"), [("LunarLander-v3", "`LunarLander.world`"), ("BipedalWalker-v3", "`BipedalWalker.world`")]
)
def test_box2d_is_not_exact_and_says_what_is_missing(env_id: str, missing: str, tmp_path: Path) -> None:
    answer = probe(lambda: make_env(Env(id=env_id), root=tmp_path))
    assert not answer.is_exact
    assert answer.missing.startswith(missing)


@pytest.mark.parametrize(
    "world",
    [worlds.Walk, worlds.Nested, worlds.Viewing, worlds.Careless, worlds.Clocked],
    ids=lambda world: world.__name__,
)
def test_environments_of_ones_own_are_exact(world: Callable[[], Any]) -> None:
    assert probe(world) == Probe(is_exact=True, missing="")


def test_recorded_episode_times_do_not_count(tmp_path: Path) -> None:
    assert probe(lambda: gymnasium.wrappers.RecordEpisodeStatistics(worlds.Walk())).is_exact


@pytest.mark.parametrize(
    ("world", "missing"),
    [
        (worlds.Generating, "`Generating.noise` is a generator, whose position is hidden"),
        (worlds.Iterating, "`Iterating.ticks` is a count of compiled code"),
        (worlds.Filing, "`Filing.log` is an open file"),
        (worlds.Closing, "the closure variable `count` of `Closing.__init__.<locals>.counted` changes"),
        (worlds.Global, "the module variable `STEPS_EVER` of `worlds.py` changes"),
        (worlds.ClassWide, "the class attribute `ClassWide.total` changes"),
        (worlds.Restless, "the environment is not deterministic"),
        (worlds.Faulty, "the environment raised ZeroDivisionError: no such move"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_exact_is_named(world: Callable[[], Any], missing: str) -> None:
    answer = probe(world)
    assert not answer.is_exact
    assert answer.missing.startswith(missing)


class _Leaking(worlds.Walk):
    """Keeps part of its state where nobody looks: in a default argument of compiled code."""

    def __init__(self) -> None:
        super().__init__()
        cell = [0.0]
        self.total = cell.__iadd__  # a bound method of a list: compiled, with state

    def chance(self) -> float:
        return len(self.total([1.0]))


def test_a_silent_divergence_is_noticed() -> None:
    answer = probe(_Leaking)
    assert not answer.is_exact
    assert answer.missing == "a restored environment continues differently: another observation"


def test_async_vectors_are_not_exact(tmp_path: Path) -> None:
    answer = probe(lambda: make_vector(Env(id="CartPole-v1", vectorization="async"), root=tmp_path, num_envs=2))
    assert answer == Probe(False, "`AsyncVector` runs its environments in other processes and cannot be kept")


def test_an_environment_that_cannot_be_made_is_no_exception(tmp_path: Path) -> None:
    assert probe(lambda: make_env(Env(id="Nothing-v9"), root=tmp_path)) == Probe(False, "no environment `Nothing-v9`")


def test_global_generators_are_left_as_they_were() -> None:
    import torch

    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    expected = random.random(), np.random.rand(), torch.rand(1).item()
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    probe(worlds.Careless)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected


def test_masked_actions_are_never_taken() -> None:
    class Masked(worlds.Walk):
        def action_masks(self) -> Any:
            return np.array([self.elapsed % 2 == 0, self.elapsed % 2 == 1, False])

        def step(self, action: Any) -> Any:
            assert action == self.elapsed % 2
            return super().step(action)

    assert probe(Masked).is_exact
    assert probe(lambda: gymnasium.vector.SyncVectorEnv([Masked] * 2, autoreset_mode="SameStep")).is_exact


class _Bullet(pygame.sprite.Sprite):
    def __init__(self, x: int) -> None:
        super().__init__()
        self.image = pygame.Surface((3, 3))
        self.rect = pygame.Rect(x, 0, 3, 3)
        self.speed = pygame.Vector2(1, 0.5)

    def update(self) -> None:
        self.rect.x += int(self.speed.x)
        self.speed *= 1.05


class _Game(worlds.Walk):
    """A game of sprites, made and lost while stepping."""

    def __init__(self) -> None:
        super().__init__()
        self.bullets: Any = pygame.sprite.Group()

    def chance(self) -> float:
        self.bullets.update()
        if self.np_random.random() < 0.4:
            self.bullets.add(_Bullet(int(self.np_random.integers(9))))
        for bullet in [bullet for bullet in self.bullets if bullet.rect.x > 12]:
            bullet.kill()
        return float(sum(bullet.rect.x + bullet.speed.x for bullet in self.bullets))


def test_a_game_of_pygame_sprites_is_exact() -> None:
    assert probe(_Game) == Probe(is_exact=True, missing="")


class _ExitsInStep(worlds.Walk):
    def chance(self) -> float:
        raise SystemExit(3)


class _OldStyle(worlds.Walk):
    def step(self, action: Any) -> Any:
        return super().step(action)[:4]


class _Chain(worlds.Walk):
    def __init__(self) -> None:
        super().__init__()
        self.head: Any = None
        for _ in range(5000):
            self.head = [self.head]


class _Unreadable(worlds.Walk):
    """Holds something that answers no question."""

    class Thing:
        def __repr__(self) -> str:
            raise ValueError

        def __eq__(self, other: object) -> bool:
            raise ValueError

        def __hash__(self) -> int:
            raise ValueError

    def __init__(self) -> None:
        super().__init__()
        self.things = [self.Thing()]


@pytest.mark.parametrize("world", [_ExitsInStep, _OldStyle, _Chain], ids=lambda world: world.__name__)
def test_no_environment_makes_the_probe_raise(world: Callable[[], Any]) -> None:
    answer = probe(world)
    assert not answer.is_exact
    assert len(answer.missing) < 200


def test_objects_that_answer_no_question_are_kept_all_the_same() -> None:
    assert probe(_Unreadable).is_exact


def test_a_slow_environment_is_tried_for_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlx.envs.snapshot.resumability.BUDGET_SECONDS", 0.0)
    assert probe(worlds.Walk).is_exact
