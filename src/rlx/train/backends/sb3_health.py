"""A network's parameter that is not finite stops a seed, with its name and the step."""

from __future__ import annotations

import math

import torch

from rlx.train.health import Diverged


def check_parameters(module: torch.nn.Module, *, step: int) -> None:
    """Stop where a network's parameter is not finite; one fused pass unless something is wrong."""
    parameters = [parameter.detach() for parameter in module.parameters()]
    if not parameters or math.isfinite(float(torch.stack(torch._foreach_norm(parameters)).sum())):
        return
    for name, parameter in module.named_parameters():
        bad = parameter.detach()[~torch.isfinite(parameter.detach())]
        if len(bad):
            raise Diverged(f"parameter `{name}`", float(bad[0]), step)
