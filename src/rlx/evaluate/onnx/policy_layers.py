"""The layers between a raw observation and an action, read from a checkpoint without its training library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium import spaces as gym_spaces
from numpy.typing import NDArray

from rlx.config.defaults import resolve
from rlx.config.load import parse
from rlx.envs import spaces
from rlx.errors import CheckpointInvalid, UsageError
from rlx.runs.checkpoints.checkpoint import Checkpoint

Array = NDArray[Any]
Head = Literal["choices", "quantiles", "bits", "clipped", "squashed"]
_NETWORKS = (
    ("mlp_extractor.policy_net", "action_net"),
    ("actor.latent_pi", "actor.mu"),
    ("actor.mu", ""),
    ("q_net.q_net", ""),
    ("quantile_net.quantile_net", ""),
)
"""Where the networks of Stable-Baselines3 (and rlx's `fast`, which uses its names) keep hidden and last layers."""
_SQUASHED = ("sac", "tqc", "td3", "ddpg")


@dataclass(frozen=True)
class ObservationPart:
    """One input of the policy: its name, space, and the numbers that normalise it."""

    name: str
    space: gym_spaces.Box
    mean: Array | None = None
    std: Array | None = None
    clip: float = 0.0


@dataclass(frozen=True)
class PolicyLayers:
    """A policy as matrices: the parts of its observation, its layers and the head that makes actions."""

    parts: tuple[ObservationPart, ...]
    matrices: tuple[tuple[Array, Array], ...]
    activation: str
    head: Head
    action_space: gym_spaces.Space[Any]


def policy_layers(checkpoint: Checkpoint) -> PolicyLayers:
    """Return the layers of a checkpoint's policy; raise for policies that are not plain matrices."""
    experiment = resolve(parse(checkpoint.config, source=str(checkpoint.path / "manifest.json")))
    action_space = spaces.build(checkpoint.spaces.get("action"))
    algorithm = checkpoint.algorithm
    if algorithm == "maskable_ppo":
        raise _unsupported("its actions depend on masks")
    matrices = _matrices(checkpoint.policy)
    return PolicyLayers(
        parts=tuple(_parts(checkpoint)),
        matrices=matrices,
        activation=experiment.policy.activation or "tanh",
        head=_head(action_space, algorithm),
        action_space=action_space,
    )


def _unsupported(reason: str) -> UsageError:
    hint = "ONNX export takes mlp policies without memory and masks; rlx export RUN --to sb3 takes the others"
    return UsageError(f"this policy cannot be exported as ONNX: {reason}", hint=hint)


def _head(space: gym_spaces.Space[Any], algorithm: str) -> Head:
    if isinstance(space, (gym_spaces.Discrete, gym_spaces.MultiDiscrete)):
        return "quantiles" if algorithm == "qrdqn" else "choices"
    if isinstance(space, gym_spaces.MultiBinary):
        return "bits"
    if isinstance(space, gym_spaces.Box):
        return "squashed" if algorithm in _SQUASHED else "clipped"
    raise _unsupported(f"its actions are {space}")


def _parts(checkpoint: Checkpoint) -> list[ObservationPart]:
    normalizer: Mapping[str, Any] = checkpoint.state.get("normalizer") or {}
    moments = normalizer.get("obs") or {}
    parts = []
    for path, leaf in spaces.leaves(spaces.build(checkpoint.spaces.get("observation"))):
        name = ".".join(map(str, path)) or "observation"
        if not isinstance(leaf, gym_spaces.Box) or not np.issubdtype(leaf.dtype, np.floating):
            raise _unsupported(f"its observation `{name}` is {leaf}, not an array of real numbers")
        key = str(path[0]) if path else ""
        if key not in moments:
            parts.append(ObservationPart(name, leaf))
            continue
        mean = np.asarray(moments[key]["mean"], dtype=np.float64).reshape(-1)
        std = np.sqrt(np.asarray(moments[key]["var"], dtype=np.float64).reshape(-1) + normalizer["epsilon"])
        parts.append(ObservationPart(name, leaf, mean, std, float(normalizer["clip"])))
    return parts


def _matrices(arrays: Mapping[str, Array]) -> tuple[tuple[Array, Array], ...]:
    if any("lstm" in name for name in arrays):
        raise _unsupported("it is recurrent")
    if any(name.startswith(("features_extractor.", "actor.features_extractor.")) for name in arrays):
        raise _unsupported("it reads observations through a network of its own (cnn)")
    for hidden, last in _NETWORKS:
        names = _layer_names(arrays, hidden)
        if last and f"{last}.weight" in arrays:
            names.append(last)
        elif last:
            continue
        if names:
            return tuple(_matrix(arrays, name) for name in names)
    raise _unsupported("its layers are not those of a known policy")


def _layer_names(arrays: Mapping[str, Array], prefix: str) -> list[str]:
    """Return the numbered layers below a name, in order; layers without a matrix, such as norms, are not supported."""
    numbers = set()
    for name in arrays:
        match = re.fullmatch(rf"{re.escape(prefix)}\.(\d+)\.(\w+)", name)
        if match is None:
            continue
        if match[2] not in ("weight", "bias") or arrays[name].ndim > 2:
            raise _unsupported(f"layer `{name}` is not a matrix")
        numbers.add(int(match[1]))
    return [f"{prefix}.{number}" for number in sorted(numbers)]


def _matrix(arrays: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    weight = arrays.get(f"{name}.weight")
    bias = arrays.get(f"{name}.bias")
    if weight is None or bias is None or weight.ndim != 2 or bias.shape != (len(weight),):
        raise CheckpointInvalid(f"the checkpoint's layer `{name}` is not complete", hint="use another checkpoint")
    return weight.astype(np.float32), bias.astype(np.float32)
