from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.schema import Env
from rlx.diagnose.reward_review.review import _review_env, review
from rlx.errors import ConfigError, NotFound
from tests.conftest import Project
from tests.diagnose.worlds import CORRIDORS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/corridors.py").write_text(CORRIDORS)
    (tmp_path / "rewards.py").write_text("raise SystemExit\n\n\ndef reward(distance):\n    return 1 / distance\n")
    return tmp_path


def rules(target: str, root: Path) -> list[str]:
    return [one.rule for one in review(target, root=root).findings]


def test_a_file_is_read_and_never_run(root: Path) -> None:
    found = review("rewards.py:reward", root=root)
    assert [one.rule for one in found.findings] == ["reward_unbounded"]
    assert found.looked_at == ("rewards.py:4 reward (source)",)


def test_a_projects_environment_is_read_and_played(root: Path) -> None:
    found = review("envs/corridors.py:Farm", root=root)
    assert found.looked_at[0].endswith("Corridor.step (source)")
    assert found.looked_at[1].startswith("10 episodes of the random policy")
    assert [one.rule for one in found.findings] == ["reward_ranks_failures"]
    assert rules("envs/corridors.py:Corridor", root) == []


def test_a_registered_environment_is_played(root: Path) -> None:
    assert rules("CartPole-v1", root) == []
    assert rules("MountainCar-v0", root) == ["reward_sparse"]


def test_a_run_is_reviewed_with_its_evaluations(corridors: Project) -> None:
    found = review("farm_001", root=corridors.root)
    assert found.findings[0].rule == "reward_ranks_failures"
    assert found.looked_at[-1].endswith("evaluation episodes of farm_001")
    assert review("corridor_001", root=corridors.root).findings == ()


def test_what_cannot_be_found_or_read_is_one_line(root: Path) -> None:
    with pytest.raises(NotFound, match="neither a run nor an environment"):
        review("nothing", root=root)
    with pytest.raises(NotFound, match=r"cannot read `nowhere\.py`: No such file"):
        review("nowhere.py", root=root)
    (root / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        review("binary.py", root=root)


PAYS = """
import gymnasium


class Pays(gymnasium.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward + 1e6 * self.env.unwrapped.cell, terminated, truncated, info


class Passes(gymnasium.Wrapper):
    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, info
"""


def test_the_wrappers_of_an_environment_that_change_its_reward_are_reviewed(root: Path) -> None:
    (root / "envs/pays.py").write_text(PAYS)
    wrappers = tuple({"name": f"envs/pays.py:{name}"} for name in ("Pays", "Passes"))
    env = Env.model_validate({"id": "envs/corridors.py:Corridor", "wrappers": wrappers})
    looked_at = _review_env(env, root=root).looked_at
    assert any("Pays.step (source)" in line for line in looked_at)
    assert not any("Passes" in line for line in looked_at)
