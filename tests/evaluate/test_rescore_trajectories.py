from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import ConfigError, NotFound, Refused, UsageError
from rlx.evaluate.rescore_trajectories import rescore
from tests.evaluate.test_trajectory import trajectory

REWARDS = """
import numpy as np

SCALE = 2.0


def height(obs, next_obs, action, info, terminated, step, *, scale=SCALE):
    terms = {"height": scale * info["height"], "end": 10.0 * terminated}
    return sum(terms.values()), terms


def constant():
    return np.float32(0.5)


def missing(goal):
    return goal


def breaks(observation):
    return observation["arm"]


def nothing(reward):
    return float("nan") if reward else 0.0


def words():
    return "many"


class Shaped:
    pass
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rewards.py").write_text(REWARDS)
    return tmp_path


def test_a_function_gets_what_its_parameters_name(root: Path) -> None:
    (score,) = rescore("rewards.py:height", [trajectory(3)], root=root)
    assert score.total == 2.0 * (1 + 2 + 3) + 10.0
    assert score.terms == {"height": 12.0, "end": 10.0}


def test_a_function_without_parameters_is_paid_by_the_step(root: Path) -> None:
    assert [one.total for one in rescore("rewards.py:constant", [trajectory(4), trajectory(2)], root=root)] == [
        2.0,
        1.0,
    ]


def test_steps_without_a_finite_number_are_counted(root: Path) -> None:
    assert rescore("rewards.py:nothing", [trajectory(4)], root=root)[0].not_finite == 4


def test_a_parameter_that_no_step_has_is_named(root: Path) -> None:
    with pytest.raises(UsageError, match="needs `goal`") as caught:
        rescore("rewards.py:missing", [trajectory()], root=root)
    assert "observation, obs" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "what"), [("breaks", r"^rewards\.py:\d+: .*IndexError"), ("words", "raised ValueError")]
)
def test_what_a_function_raises_is_one_line(root: Path, name: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        rescore(f"rewards.py:{name}", [trajectory()], root=root)


def test_what_is_no_function_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="is a class"):
        rescore("rewards.py:Shaped", [trajectory()], root=root)
    with pytest.raises(UsageError, match="is a float"):
        rescore("rewards.py:SCALE", [trajectory()], root=root)
    with pytest.raises(NotFound):
        rescore("rewards.py:hieght", [trajectory()], root=root)
    with pytest.raises(NotFound):
        rescore("nowhere.py:height", [trajectory()], root=root)


def test_nothing_in_a_run_folder_is_executed(root: Path) -> None:
    (root / "runs/a_001").mkdir(parents=True)
    (root / "runs/a_001/rewards.py").write_text(REWARDS)
    with pytest.raises(Refused):
        rescore("runs/a_001/rewards.py:height", [trajectory()], root=root)
