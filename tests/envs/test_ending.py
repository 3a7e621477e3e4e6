"""The end of an episode is read from a vector environment's infos."""

from __future__ import annotations

import numpy as np

from rlx.envs.ending import last_observation, was_success


def test_the_last_observation_is_that_of_one_environment_whatever_its_structure() -> None:
    assert last_observation({"final_obs": np.array([3.0, 4.0])}, 1) == 4.0
    nested = {"final_obs": {"a": [1, 2], "b": {"c": [3, 4]}}}
    assert last_observation(nested, 0) == {"a": 1, "b": {"c": 3}}


def test_success_is_told_under_either_name_and_only_where_the_mask_says_so() -> None:
    told = {"is_success": np.array([True, False]), "_is_success": np.array([True, False])}
    assert was_success({"final_info": told}, 0) == 1.0
    assert was_success({"final_info": told}, 1) is None
    assert was_success({"final_info": {"success": np.array([0.0, 1.0])}}, 1) == 1.0
    assert was_success({"final_info": {"other": np.array([1.0])}}, 0) is None
    assert was_success({}, 0) is None
