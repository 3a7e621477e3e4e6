"""A policy in NumPy: raw observations in, environment actions out, the normaliser inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.envs.spaces import build
from rlx.errors import CheckpointInvalid
from rlx.evaluate.policy import rows_of
from rlx.runs.checkpoint import Checkpoint
from rlx.train.backends.fast_actions import Actions, actions_of
from rlx.train.backends.fast_features import Features, Scale
from rlx.train.backends.fast_network import Pass, Shape, Weights, aligned
from rlx.train.backends.fast_stage import normalizer_for


class FastPolicy:
    """Acts with the first seed's weights, as they are at the moment."""

    def __init__(self, weights: Weights, actions: Actions, features: Features, scale: Scale | None) -> None:
        self._weights, self._actions, self._features, self._scale = weights, actions, features, scale
        self._memory: dict[int, tuple[Pass, NDArray[Any]]] = {}

    def predict(
        self, observations: Any, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return one action a row; without `deterministic` the process's generator decides."""
        actor, inputs = self._prepared(rows_of(observations))
        self._features.write(observations, inputs[0, :, :-1], self._scale)
        actor.forward(inputs)
        closed = None if masks is None else np.logical_not(masks).reshape(1, len(masks), -1).transpose(0, 2, 1)
        noise = None if deterministic else self._noise(actor.head)
        return self._actions.for_env(self._actions.choose(actor.head, self._weights, noise, closed)[0])

    def inputs(self, observations: Any) -> NDArray[Any]:
        """Return what the network sees of observations: flat and on their scale."""
        rows = np.empty((rows_of(observations), self._features.size), dtype=self._weights.dtype)
        self._features.write(observations, rows, self._scale)
        return rows

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Keep nothing between steps."""

    def _prepared(self, rows: int) -> tuple[Pass, NDArray[Any]]:
        if rows not in self._memory:
            inputs = aligned((1, rows, self._weights.shape.inputs + 1), self._weights.dtype)
            inputs[..., -1] = 1.0
            self._memory[rows] = Pass(self._weights, rows, nets=slice(0, 1)), inputs
        return self._memory[rows]

    def _noise(self, head: NDArray[Any]) -> NDArray[Any]:
        generator = np.random.default_rng(np.random.randint(2**31))
        return self._actions.noise(generator, head.shape, head.dtype)


def shape_for(experiment: Experiment, features: Features, actions: Actions) -> Shape:
    """Return the sizes of the networks a config asks for."""
    policy = experiment.policy
    return Shape(
        inputs=features.size,
        hidden=tuple(policy.hidden_sizes if policy.hidden_sizes is not None else (64, 64)),
        outputs=actions.outputs,
        activation=policy.activation or "tanh",
        has_deviation=actions.has_deviation,
    )


def load(checkpoint: Checkpoint) -> FastPolicy:
    """Rebuild a checkpoint's policy from its config and spaces, with its weights and normaliser."""
    experiment = parse(checkpoint.config, source=str(checkpoint.path / "manifest.json"))
    seen, acted = (build(checkpoint.spaces.get(key)) for key in ("observation", "action"))
    features, actions = Features(seen), actions_of(acted, is_masked=experiment.algo.name == "maskable_ppo")
    weights = Weights(shape_for(experiment, features, actions))
    weights.load(checkpoint.policy, where=str(checkpoint.path))
    policy = FastPolicy(weights, actions, features, _scale(experiment, seen, checkpoint))
    _refuse_other_inputs(policy, checkpoint)
    return policy


def _scale(experiment: Experiment, space: spaces.Space[Any], checkpoint: Checkpoint) -> Scale | None:
    normalizer = normalizer_for(experiment, space, num_envs=0)
    if normalizer is None:
        return None
    state = checkpoint.state.get("normalizer")
    if state is None:
        raise _broken(checkpoint, "the normaliser of the observations is missing")
    normalizer.restore(state)
    return normalizer.scale


def _refuse_other_inputs(policy: FastPolicy, checkpoint: Checkpoint) -> None:
    told = checkpoint.parity
    if "inputs" in told and not np.array_equal(policy.inputs(told["observations"]), told["inputs"]):
        raise _broken(checkpoint, "the normaliser of the observations is not the one of its training")


def _broken(checkpoint: Checkpoint, why: str) -> CheckpointInvalid:
    return CheckpointInvalid(
        f"checkpoint {checkpoint.path}: {why}", hint="a policy is worth nothing without it: use another checkpoint"
    )
