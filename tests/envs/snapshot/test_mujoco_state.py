from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.snapshot import Uncapturable, capture, probe, restore
from tests.envs.worlds import through_json


class Randomised(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives the robot another mass and gravity in every episode."""

    def reset(self, **options: Any) -> Any:
        result = self.env.reset(**options)
        model = self.unwrapped.model  # type: ignore[attr-defined]
        model.body_mass[:] *= self.np_random.uniform(0.9, 1.1)
        model.opt.gravity[2] = -9.81 * self.np_random.uniform(0.9, 1.1)
        return result


def hopper(root: Path) -> Any:
    return make_env(Env(id="Hopper-v5"), root=root)


def test_a_randomised_model_is_part_of_the_state(tmp_path: Path) -> None:
    first, second = Randomised(hopper(tmp_path)), Randomised(hopper(tmp_path))
    first.reset(seed=0)
    restore(second, through_json(capture(first)))
    mine, theirs = first.unwrapped.model, second.unwrapped.model  # type: ignore[attr-defined]
    assert np.array_equal(mine.body_mass, theirs.body_mass)
    assert np.array_equal(mine.opt.gravity, theirs.opt.gravity)
    assert probe(lambda: Randomised(hopper(tmp_path))).is_exact


def test_derived_quantities_of_the_last_sub_step_are_kept(tmp_path: Path) -> None:
    first, second = (make_env(Env(id="Ant-v5"), root=tmp_path) for _ in range(2))
    first.reset(seed=0)
    for _ in range(5):
        first.step(first.action_space.sample())
    restore(second, through_json(capture(first)))
    for name in ("xpos", "cfrc_ext", "qacc_warmstart", "qpos"):
        mine, theirs = (getattr(each.unwrapped.data, name) for each in (first, second))  # type: ignore[attr-defined]
        assert np.array_equal(mine, theirs)


def test_a_state_of_another_robot_is_refused(tmp_path: Path) -> None:
    state = capture(hopper(tmp_path))
    physics = next(node for node in state["nodes"] if node[0] == "physics")
    physics[2]["state"] = physics[2]["state"][:-1]
    with pytest.raises(Uncapturable, match="another size"):
        restore(hopper(tmp_path), state)


def test_a_state_that_names_other_fields_is_refused(tmp_path: Path) -> None:
    state = capture(hopper(tmp_path))
    model = next(node for node in state["nodes"] if node[0] == "model")
    model[1]["names"][0] = "body_parentid"
    with pytest.raises(Uncapturable, match="another MuJoCo model"):
        restore(hopper(tmp_path), state)
