"""A policy in NumPy: takes raw observations, normalises them, and returns actions for the environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.envs.spaces import build
from rlx.errors import CheckpointInvalid
from rlx.evaluate.policy import count_rows
from rlx.evaluate.policy_internals import PolicyInternals
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.train.backends.fast.action_distributions import ActionDistribution, distribution_for
from rlx.train.backends.fast.env_runner import normalizer_for
from rlx.train.backends.fast.features import Features, Scale
from rlx.train.backends.fast.network import NetworkPass, NetworkShape, Weights, aligned


class FastPolicy:
    """Acts with the current weights of the first seed in `weights`."""

    def __init__(
        self, weights: Weights, distribution: ActionDistribution, features: Features, scale: Scale | None
    ) -> None:
        self._weights = weights
        self._distribution = distribution
        self._features = features
        self._scale = scale
        self._memory: dict[int, tuple[NetworkPass, NDArray[Any]]] = {}

    def predict(
        self, observations: Any, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return one action per row; a stochastic policy draws from the process's global generator."""
        actor, inputs = self._memory_for(count_rows(observations))
        self._features.write(observations, inputs[0, :, :-1], self._scale)
        actor.forward(inputs)
        noise = None
        if not deterministic:
            generator = np.random.default_rng(np.random.randint(2**31))
            noise = self._distribution.noise(generator, actor.actor_out.shape, actor.actor_out.dtype)
        if masks is not None:
            masks = np.asarray(masks, dtype=np.bool_).reshape(1, len(masks), -1).transpose(0, 2, 1)
        actions = self._distribution.sample(actor.actor_out, self._weights.log_std, noise, masks)
        return self._distribution.to_env(actions[0])

    def inputs(self, observations: Any) -> NDArray[Any]:
        """Return the observations as the network sees them: flat and normalised."""
        rows = np.empty((count_rows(observations), self._features.size), dtype=self._weights.dtype)
        self._features.write(observations, rows, self._scale)
        return rows

    def internals(self, observations: Any, masks: NDArray[np.bool_] | None = None) -> PolicyInternals:
        """Return values, entropies and action distributions."""
        rows = self.inputs(observations)
        network = self._forward(rows)
        allowed = None
        if masks is not None:
            allowed = np.asarray(masks, dtype=np.bool_).reshape(1, len(masks), -1)
        likely = self._distribution.sample(network.actor_out.copy(), self._weights.log_std, None)
        encoded = self._distribution.encode(likely, self._weights.dtype)
        mean = network.actor_out[0].T.astype(np.float64)
        _, entropy = self._distribution.evaluate(network.actor_out, encoded, self._weights.log_std, allowed)
        values = network.values[0, 0].astype(np.float64)
        entropies = np.broadcast_to(np.asarray(entropy, dtype=np.float64)[0], len(rows)).copy()
        probabilities = self._distribution.probabilities
        if probabilities is not None:
            return PolicyInternals(values, entropies, probabilities[0].T.astype(np.float64))
        std = np.broadcast_to(np.exp(self._weights.log_std[0].astype(np.float64)), mean.shape).copy()
        return PolicyInternals(values, entropies, mean=mean, std=std)

    def outputs(self, inputs: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the actor's outputs and the values for rows that the network sees."""
        network = self._forward(inputs)
        return network.actor_out[0].T.astype(np.float64), network.values[0, 0].astype(np.float64)

    def gradients(self, inputs: NDArray[Any], weights: NDArray[np.float64], value_weight: float) -> NDArray[np.float64]:
        """Return the gradient of `outputs · weights + value_weight · value` with respect to every input."""
        exact = Weights(self._weights.shape, dtype=np.float64)
        exact.load(self._weights.arrays(), where="memory")
        network = NetworkPass(exact, len(inputs), is_training=True)
        network.forward(_with_bias(inputs, np.float64))
        d_values = np.full((1, 1, len(inputs)), value_weight)
        gradients = network.input_gradients(weights.T[None].astype(np.float64), d_values)
        return np.asarray(gradients[0], dtype=np.float64)

    def _forward(self, inputs: NDArray[Any]) -> NetworkPass:
        network = NetworkPass(self._weights, len(inputs))
        network.forward(_with_bias(inputs, self._weights.dtype))
        return network

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Do nothing: the policy has no memory."""

    def _memory_for(self, rows: int) -> tuple[NetworkPass, NDArray[Any]]:
        if rows not in self._memory:
            inputs = aligned((1, rows, self._weights.shape.inputs + 1), self._weights.dtype)
            inputs[..., -1] = 1.0
            self._memory[rows] = NetworkPass(self._weights, rows, nets=slice(0, 1)), inputs
        return self._memory[rows]


def _with_bias(inputs: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return rows as the network takes them: one seed, and a 1 as last feature."""
    rows = np.ones((1, len(inputs), inputs.shape[1] + 1), dtype=dtype)
    rows[0, :, :-1] = inputs
    return rows


def shape_for(experiment: Experiment, features: Features, distribution: ActionDistribution) -> NetworkShape:
    """Return the sizes of the networks that a config describes."""
    hidden = experiment.policy.hidden_sizes
    return NetworkShape(
        inputs=features.size,
        hidden=(64, 64) if hidden is None else tuple(hidden),
        outputs=distribution.num_outputs,
        activation=experiment.policy.activation or "tanh",
        has_log_std=distribution.has_log_std,
    )


def load(checkpoint: Checkpoint) -> FastPolicy:
    """Rebuild a checkpoint's policy from its config and spaces, with its weights and normaliser."""
    experiment = parse(checkpoint.config, source=str(checkpoint.path / "manifest.json"))
    observation_space = build(checkpoint.spaces.get("observation"))
    features = Features(observation_space)
    has_masks = experiment.algo.name == "maskable_ppo"
    distribution = distribution_for(build(checkpoint.spaces.get("action")), has_masks=has_masks)
    weights = Weights(shape_for(experiment, features, distribution))
    weights.load(checkpoint.policy, where=str(checkpoint.path))
    policy = FastPolicy(weights, distribution, features, _scale(experiment, observation_space, checkpoint))
    parity = checkpoint.parity
    if "inputs" in parity and not np.array_equal(policy.inputs(parity["observations"]), parity["inputs"]):
        raise _broken(checkpoint, "the normaliser of the observations is not the one of its training")
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


def _broken(checkpoint: Checkpoint, problem: str) -> CheckpointInvalid:
    return CheckpointInvalid(
        f"checkpoint {checkpoint.path}: {problem}",
        hint="the policy needs its normaliser: use another checkpoint",
    )
