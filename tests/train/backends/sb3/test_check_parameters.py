"""Parameters that are not finite are found and named."""

from __future__ import annotations

import pytest
import torch

from rlx.train.backends.sb3 import sb3_loop
from rlx.train.finite_checks import Diverged


def test_a_parameter_is_named() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    sb3_loop.check_parameters(network, step=1)
    network[1].weight.data[0, 1] = float("-inf")
    with pytest.raises(Diverged, match=r"parameter `1\.weight` is -inf at step 1"):
        sb3_loop.check_parameters(network, step=1)


def test_large_parameters_are_not_called_infinite() -> None:
    network = torch.nn.Linear(2, 2)
    network.weight.data[:] = 1e30  # their norm overflows, they do not
    sb3_loop.check_parameters(network, step=1)
    sb3_loop.check_parameters(torch.nn.Identity(), step=1)
