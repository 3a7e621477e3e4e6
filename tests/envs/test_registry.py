from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlx.envs.registry import describe, listing, matches
from rlx.errors import NotFound


def test_lists_the_newest_version_with_its_facts(tmp_path: Path) -> None:
    (row,) = listing("cartpole-v", root=tmp_path)[:1]
    assert (row.id, row.observation, row.action) == ("CartPole-v1", "Box(4)", "Discrete(2)")
    assert (row.horizon, row.threshold, row.is_installed, row.problem) == (500, 475.0, True, None)


def test_older_versions_are_listed_when_asked(tmp_path: Path) -> None:
    assert "CartPole-v0" in [row.id for row in listing("cartpole", root=tmp_path, include_old=True)]


def test_what_is_not_installed_says_what_to_install(tmp_path: Path) -> None:
    (row,) = listing("phys2d/Pendulum*", root=tmp_path)
    assert not row.is_installed
    assert row.hint == "pip install jax"
    assert row.horizon == 200


def test_lists_the_projects_own_first(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "reach.py").write_text(
        "import gymnasium as gym\nfrom gymnasium import spaces\n"
        "class Reach(gym.Env):\n    max_episode_steps = 40\n"
        "    observation_space = spaces.Discrete(3)\n    action_space = spaces.Discrete(2)\n"
        "class Broken(gym.Env):\n    def __init__(self):\n        raise OSError('no arm attached')\n"
    )
    reach, broken = [row for row in listing("reach", root=tmp_path) if row.is_own]
    assert (reach.id, reach.observation, reach.horizon) == ("envs/reach.py:Reach", "Discrete(3)", 40)
    assert broken.id == "envs/reach.py:Broken"
    assert "envs/reach.py:9" in (broken.problem or "")
    assert "no arm attached" in (broken.problem or "")


def test_nothing_found_names_what_was_meant(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        listing("CartPoel", root=tmp_path)
    assert caught.value.hint == "did you mean `CartPole-v1`?"
    with pytest.raises(NotFound) as caught:
        listing("CartPole-v0", root=tmp_path)
    assert "--all" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("pattern", "is_match"),
    [(None, True), ("cart", True), ("CART", True), ("Cart*", True), ("*-v1", True), ("pole*", False), ("pend", False)],
)
def test_patterns_are_parts_or_globs(pattern: str | None, is_match: bool) -> None:
    assert matches("CartPole-v1", pattern) is is_match


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(-2, 2, (3,), np.float32), "Box(3) in [-2, 2]"),
        (spaces.Box(-np.inf, np.inf, (2, 5), np.float64), "Box(2×5) float64"),
        (spaces.Box(np.zeros(2, np.float32), np.array([1, 2], np.float32)), "Box(2)"),
        (spaces.Box(0, 1, (), np.float32), "Box() in [0, 1]"),
        (spaces.Discrete(4, start=1), "Discrete(4) from 1"),
        (spaces.MultiDiscrete([2, 3]), "MultiDiscrete(2, 3)"),
        (spaces.MultiBinary(4), "MultiBinary(4)"),
        (spaces.Dict(a=spaces.Discrete(2), b=spaces.Tuple([])), "Dict(a: Discrete(2), b: Tuple())"),
        (spaces.Text(3), "Text"),
    ],
)  # fmt: skip
def test_spaces_in_a_few_words(space: gymnasium.Space[object], text: str) -> None:
    assert describe(space) == text
