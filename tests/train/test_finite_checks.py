"""Numbers that are not finite are found and named."""

from __future__ import annotations

import numpy as np
import pytest

from rlx.train import finite_checks
from rlx.train.finite_checks import Diverged


def test_a_loss_is_named_and_a_ratio_is_not_a_loss() -> None:
    finite_checks.check_losses({"train/explained_variance": float("nan"), "train/loss": 1.0}, step=5)
    with pytest.raises(Diverged, match="loss `train/value_loss` is inf at step 5"):
        finite_checks.check_losses({"train/value_loss": float("inf")}, step=5)


def test_an_observation_is_named_with_its_environment() -> None:
    values = np.zeros((3, 2))
    finite_checks.check_observations(values, step=1)
    finite_checks.check_observations(np.zeros((3, 2), dtype=np.uint8), step=1)
    values[2, 1] = np.nan
    with pytest.raises(Diverged, match="observation of environment 2 is nan at step 1"):
        finite_checks.check_observations(values, step=1)
    with pytest.raises(Diverged, match="observation `b` of environment 2"):
        finite_checks.check_observations({"a": np.zeros((3, 1)), "b": values}, step=1)


def test_a_reward_is_named_with_its_environment() -> None:
    with pytest.raises(Diverged, match="reward of environment 1 is inf at step 8"):
        finite_checks.check_rewards(np.array([0, np.inf]), step=8)
