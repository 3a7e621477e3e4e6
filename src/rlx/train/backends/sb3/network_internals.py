"""The outputs of SB3's networks by kind: actor-critic, Q-network, or actor with Q-functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.errors import UsageError
from rlx.evaluate.policy_internals import PolicyInternals


def network_outputs(network: Any, tensors: Any) -> tuple[Any, Any]:
    """Return the actor's outputs (logits, means or Q-values) and the values of a batch, as tensors."""
    if hasattr(network, "get_distribution"):
        distribution = network.get_distribution(tensors).distribution
        values = network.predict_values(tensors).reshape(-1)
        if isinstance(distribution, list):
            import torch

            return torch.cat([part.logits for part in distribution], dim=1), values
        if hasattr(distribution, "logits"):
            return distribution.logits, values
        return distribution.mean, values
    q_values = _q_values(network, tensors)
    if q_values is not None:
        return q_values, q_values.max(dim=1).values
    if hasattr(network, "actor"):
        actions = network.actor(tensors, deterministic=True) if _is_sac(network) else network.actor(tensors)
        return actions, _least_q(network, tensors, actions)
    raise UsageError(
        f"rlx cannot read the outputs of {type(network).__name__}", hint="rlx explain RUN --method permutation"
    )


def network_internals(network: Any, tensors: Any, masks: NDArray[np.bool_] | None) -> PolicyInternals:
    """Return the internals of a batch of tensors."""
    if not hasattr(network, "get_distribution"):
        outputs, values = network_outputs(network, tensors)
        if _q_values(network, tensors) is not None:
            return PolicyInternals(_numbers(values))
        return PolicyInternals(_numbers(values), mean=_numbers(outputs))
    if masks is not None:
        wrapped = network.get_distribution(tensors, action_masks=masks)
    else:
        wrapped = network.get_distribution(tensors)
    return distribution_internals(wrapped, _numbers(network.predict_values(tensors).reshape(-1)))


def distribution_internals(wrapped: Any, values: NDArray[np.float64] | None) -> PolicyInternals:
    """Return the internals of SB3's distribution of the actions."""
    entropy = wrapped.entropy()
    distribution = wrapped.distribution
    if isinstance(distribution, list):
        probabilities = np.concatenate([_numbers(part.probs) for part in distribution], axis=1)
        return PolicyInternals(values, _numbers(entropy), probabilities)
    if hasattr(distribution, "probs"):
        return PolicyInternals(values, _numbers(entropy), _numbers(distribution.probs))
    entropies = None if entropy is None else _numbers(entropy)
    return PolicyInternals(values, entropies, mean=_numbers(distribution.mean), std=_numbers(distribution.stddev))


def _q_values(network: Any, tensors: Any) -> Any:
    if hasattr(network, "q_net"):
        return network.q_net(tensors)
    if hasattr(network, "quantile_net"):
        return network.quantile_net(tensors).mean(dim=1)
    return None


def _is_sac(network: Any) -> bool:
    return hasattr(network.actor, "log_std")


def _least_q(network: Any, tensors: Any, actions: Any) -> Any:
    """Return the smallest of the critics' Q-values for these actions; None if there is no such critic."""
    critic = getattr(network, "critic", None)
    if critic is None:
        return None
    import torch

    values = torch.cat(critic(tensors, actions), dim=1)
    return values.reshape(len(values), -1).min(dim=1).values


def _numbers(tensor: Any) -> Any:
    return None if tensor is None else np.asarray(tensor.detach().double().cpu().numpy())
