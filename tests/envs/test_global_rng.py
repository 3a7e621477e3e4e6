from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rlx.envs.global_rng import GlobalGenerators, global_generators_kept


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(1))


def test_the_same_numbers_come_again_after_putting_back() -> None:
    kept = GlobalGenerators.now()
    first = draw()
    assert draw() != first
    kept.put_back()
    assert draw() == first


def test_they_are_kept_through_an_error() -> None:
    kept = GlobalGenerators.now()
    expected = draw()
    kept.put_back()
    with pytest.raises(ZeroDivisionError), global_generators_kept():
        draw()[0] / 0
    assert draw() == expected
