"""Batteries of disturbances against policies that are known to be good and poor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from rlx.errors import ConfigError, UsageError
from rlx.evaluate.robustness.conditions import RobustnessTrial
from rlx.evaluate.robustness.stress import KINDS, neutral_action, parse_stress_plan, run_stress
from rlx.runs.project import mark_own
from rlx.runs.run_reference import resolve
from tests.evaluate.linear import GOOD, make_run, register


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    make_run(tmp_path, "cartpole", {0: GOOD, 1: GOOD})
    return tmp_path


def stressed(root: Path, *given: str, only: bool = True, run: str = "cartpole_001"):
    with RobustnessTrial(resolve(run, root), root=root, episodes=3) as trial:
        return run_stress(trial, parse_stress_plan(given, is_only=only))


def test_no_strength_at_all_changes_nothing(root: Path) -> None:
    found = stressed(root, "noise=0", "offset=0", "delay=0", "repeat=0")
    assert [one.name for one in found.conditions] == ["noise", "offset", "delay", "repeat"]
    for one in found.conditions:
        assert one.outcome.scores == found.nominal.scores == {0: 500.0, 1: 500.0}


def test_strong_disturbances_break_a_good_policy_and_seeds_are_disturbed_otherwise(root: Path) -> None:
    found = stressed(root, "noise=20", "delay=12", "frozen=1", "offset=50")
    for one in found.conditions:
        assert max(one.outcome.scores.values()) < 300
    noisy = found.conditions[0].outcome.scores
    assert noisy[0] != noisy[1]


def test_the_same_battery_twice_is_the_same(root: Path) -> None:
    assert stressed(root, "noise=2", "repeat=0.5") == stressed(root, "noise=2", "repeat=0.5")


def test_factors_of_the_world_stand_beside_disturbances(root: Path) -> None:
    found = stressed(root, "attr:gravity=9.8,5000", "max_episode_steps=-3,500")
    by_name = {(one.name, one.strength): one.outcome for one in found.conditions}
    assert by_name["attr:gravity", 9.8].scores == found.nominal.scores
    assert by_name["attr:gravity", 5000].scores[0] < 500
    assert by_name["max_episode_steps", -3].refused
    with pytest.raises(ConfigError, match="takes no argument `nothing`"):
        stressed(root, "nothing=1")


def test_without_names_everything_is_tried_that_applies(root: Path) -> None:
    found = stressed(root, only=False)
    assert found.left_out == {"dropout": "discrete actions have no neutral one; use `repeat` instead"}
    named = {one.name for one in found.conditions}
    assert named == set(KINDS) - {"dropout"}


def test_classes_as_observations_leave_the_sensors_out(root: Path) -> None:
    mark_own(root)
    (root / "corridor.py").write_text(
        "import gymnasium\n"
        "from gymnasium import spaces\n"
        "class Corridor(gymnasium.Env):\n"
        "    max_episode_steps = 10\n"
        "    observation_space, action_space = spaces.MultiDiscrete([5, 5, 5, 5]), spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return self.observation_space.sample(), {}\n"
        "    def step(self, action):\n"
        "        return self.observation_space.sample(), float(action), False, False, {}\n"
    )
    make_run(root, "corridor", {0: GOOD}, env={"id": "corridor.py:Corridor"})
    found = stressed(root, only=False, run="corridor_001")
    assert set(found.left_out) == {"noise", "offset", "frozen", "dropout"}
    assert {one.name for one in found.conditions} == {"delay", "repeat"}


@pytest.mark.parametrize("text", ["noise=-1", "frozen=2", "delay=1.5", "noise=big", "noize", "dropout=true", "noise="])
def test_strengths_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_stress_plan([text])


def test_a_named_disturbance_replaces_its_strengths_and_only_drops_the_others() -> None:
    assert parse_stress_plan(["noise=1,2"]).strengths["noise"] == (1.0, 2.0)
    assert parse_stress_plan(["noise=1,2"]).strengths["delay"] == KINDS["delay"].strengths
    assert parse_stress_plan(["delay"], is_only=True).strengths == {"delay": KINDS["delay"].strengths}
    assert parse_stress_plan(["wind=3,4"]).factors[0].values == (3, 4)


def test_neutral_is_zero_or_what_is_nearest_to_it() -> None:
    low, high = np.array([-1.0, 0.5], np.float32), np.array([1.0, 2.0], np.float32)
    assert neutral_action(Discrete(3)) is None
    assert np.asarray(neutral_action(Box(low, high))).tolist() == [0.0, 0.5]
