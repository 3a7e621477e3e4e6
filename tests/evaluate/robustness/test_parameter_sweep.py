"""Sweeping one parameter of the world with policies that are not trained further."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import ConfigError, RlxError, UsageError
from rlx.evaluate.robustness.conditions import RobustnessTrial
from rlx.evaluate.robustness.env_parameter import parse_parameter
from rlx.evaluate.robustness.parameter_sweep import count_evaluations, run_sweep
from rlx.runs.project import mark_own
from rlx.runs.run_reference import Reference, resolve
from tests.evaluate.linear import GOOD, POOR, make_run, register

PICKY = """
import gymnasium
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv

class Picky(CartPoleEnv):
    max_episode_steps = 60

    def __init__(self, wind=0.0, size=4, render_mode=None):
        super().__init__(render_mode=render_mode)
        if wind > 50:
            raise ValueError("too windy")
        self.wind, self.size = wind, size
        if size != 4:
            self.observation_space = gymnasium.spaces.Box(-9, 9, (size,), np.float32)

    def reset(self, **given):
        observation, info = super().reset(**given)
        return observation[: self.size], info

    def step(self, action):
        observation, reward, *rest = super().step(action)
        if self.wind < 0:
            raise RuntimeError("no air")
        return observation[: self.size], reward - self.wind if self.wind < 20 else float("nan"), *rest
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    (tmp_path / "picky.py").write_text(PICKY)
    mark_own(tmp_path)
    make_run(tmp_path, "cartpole", {0: GOOD, 3: POOR})
    make_run(tmp_path, "picky", {0: GOOD, 1: GOOD}, env={"id": "picky.py:Picky", "kwargs": {"wind": 0.5}})
    return tmp_path


def tried(root: Path, run: str, text: str, *, episodes: int = 2):
    with RobustnessTrial(resolve(run, root), root=root, episodes=episodes) as trial:
        return run_sweep(trial, parse_parameter(text))


def test_every_seed_and_the_random_policy_are_measured_at_every_value(root: Path) -> None:
    found = tried(root, "cartpole_001", "attr:gravity=9.8,30")
    assert (found.nominal, found.trained) == (9.8, 9.8)
    (at_nominal, same), (high, heavy) = found.at
    assert (at_nominal, high) == (9.8, 30)
    assert same is found.at_nominal
    assert same.scores[0] == 500.0
    assert set(heavy.scores) == {0, 3}
    assert heavy.scores != same.scores
    assert heavy.random is not None


def test_the_nominal_world_is_the_evaluation_world_on_the_same_episodes(root: Path) -> None:
    with RobustnessTrial(resolve("cartpole_001", root), root=root, episodes=3) as trial:
        plain = trial.play()
        assert trial.protocol.purpose == "selection"
        assert run_sweep(trial, parse_parameter("attr:gravity=12,30")).at_nominal.scores == plain.scores


def test_a_value_the_environment_refuses_is_a_row_that_says_so(root: Path) -> None:
    found = dict(tried(root, "picky_001", "wind=-1,0.5,2,30,60").at)
    assert found[0.5].refused is None
    assert found[2].scores[0] == pytest.approx(found[0.5].scores[0] - 1.5 * 60)
    assert "no air" in (found[-1].refused or "")
    assert "not finite" in (found[30].refused or "")
    assert "too windy" in (found[60].refused or "")


def test_a_value_that_changes_what_is_observed_is_refused(root: Path) -> None:
    found = dict(tried(root, "picky_001", "size=3,4").at)
    assert "does not fit" in (found[3].refused or "")
    assert found[4].refused is None


def test_a_parameter_the_environment_does_not_have_is_refused_with_a_hint(root: Path) -> None:
    with pytest.raises(ConfigError, match="takes no argument `wnd`") as raised:
        tried(root, "picky_001", "wnd=1,2")
    assert "did you mean `wind`?" in (raised.value.hint or "")
    with pytest.raises(ConfigError, match="has no attribute `gravty`"):
        tried(root, "cartpole_001", "attr:gravty=1,2")


def test_where_every_value_is_refused_nothing_is_reported(root: Path) -> None:
    with pytest.raises(RlxError, match="too windy"):
        tried(root, "picky_001", "wind=60,70")


def test_progress_counts_the_episodes_of_all_evaluations(root: Path) -> None:
    told: list[tuple[int, int]] = []
    with RobustnessTrial(
        resolve("cartpole_001", root), root=root, episodes=2, progress=lambda *one: told.append(one)
    ) as trial:
        parameter = parse_parameter("attr:gravity=5,30")
        trial.planned = count_evaluations(parameter, len(trial.policies))
        run_sweep(trial, parameter)
    assert told[-1] == (3 * 3 * 2, 3 * 3 * 2)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_only_runs_that_rlx_trained_can_be_tried(root: Path) -> None:
    loose = root / "runs/cartpole_001/seed_0/checkpoints/latest"
    with pytest.raises(UsageError, match="outside any run"):
        RobustnessTrial(Reference(None, path=loose), root=root)
