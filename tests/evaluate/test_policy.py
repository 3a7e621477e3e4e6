"""The random policy, and batches of structured spaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from rlx.errors import CheckpointInvalid, NotFound
from rlx.evaluate.policy import RandomPolicy, stack
from rlx.evaluate.trained_policy import load


def test_the_random_policy_draws_the_same_actions_from_the_same_seed() -> None:
    observations = np.zeros((5, 4))
    space = spaces.Box(-2, 2, (3,))
    one, same, other = (RandomPolicy(space, seed).predict(observations) for seed in (1, 1, 2))
    assert one.shape == (5, 3)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_random_policy_leaves_the_environments_own_space_alone() -> None:
    space = spaces.Discrete(1000)
    space.seed(7)
    expected = [int(space.sample()) for _ in range(3)]
    space.seed(7)
    RandomPolicy(space, 1).predict(np.zeros((9, 1)))
    assert [int(space.sample()) for _ in range(3)] == expected


def test_the_random_policy_takes_only_allowed_actions() -> None:
    masks = np.array([[True, False, False], [False, False, True]])
    for _ in range(20):
        assert RandomPolicy(spaces.Discrete(3)).predict(np.zeros((2, 1)), masks=masks).tolist() == [0, 2]
    two = RandomPolicy(spaces.MultiDiscrete([2, 3]))
    allowed = np.array([[False, True, True, False, False]])
    assert two.predict(np.zeros((1, 1)), masks=allowed).tolist() == [[1, 0]]


def test_rows_are_counted_in_structured_observations() -> None:
    policy = RandomPolicy(spaces.Discrete(2))
    policy.reset(np.array([True]))
    assert policy.predict({"image": np.zeros((3, 8, 8)), "goal": np.zeros((3, 2))}).shape == (3,)
    assert policy.predict((np.zeros((4, 2)), np.zeros(4))).shape == (4,)


def test_elements_of_a_dict_space_become_one_batch() -> None:
    space = spaces.Dict({"turn": spaces.Discrete(2), "push": spaces.Box(-1, 1, (2,))})
    batch = stack(space, [space.sample(), space.sample(), space.sample()])
    assert batch["turn"].shape == (3,)
    assert batch["push"].shape == (3, 2)


def test_loading_something_that_is_no_checkpoint_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load(tmp_path / "nowhere")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/manifest.json").write_text("{}")
    with pytest.raises(CheckpointInvalid):
        load(tmp_path / "bad")
