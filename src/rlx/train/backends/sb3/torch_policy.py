"""An SB3 network as a policy: takes raw observations, normalises them, and returns actions for the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy

from rlx.config.load import parse
from rlx.envs import spaces
from rlx.envs.global_rng import global_generators_kept
from rlx.errors import CheckpointInvalid, UsageError
from rlx.evaluate.policy import count_rows
from rlx.evaluate.policy_internals import PolicyInternals
from rlx.runs import project
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.train.backends.sb3 import algorithms, training_state
from rlx.train.backends.sb3.network_internals import distribution_internals, network_internals, network_outputs
from rlx.train.backends.sb3.vec_env import SpacesOnly

Normalise = Callable[[Any], Any]


class Sb3Policy:
    """Predicts with an SB3 network; keeps recurrent state per row until `reset` clears it."""

    def __init__(self, network: BasePolicy, normalise: Normalise | None = None) -> None:
        self.network: Any = network
        self._normalise = normalise
        self._is_recurrent = hasattr(network, "lstm_actor")
        self._has_masks = isinstance(network, MaskableActorCriticPolicy)
        self._memory: Any = None
        self._starts: NDArray[np.bool_] | None = None

    def predict(
        self, observations: Any, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return one action per row."""
        if self._normalise is not None:
            observations = self._normalise(observations)
        if self._is_recurrent:
            actions = self._predict_recurrent(observations, deterministic)
        elif self._has_masks:
            actions, _ = self.network.predict(observations, deterministic=deterministic, action_masks=masks)
        else:
            actions, _ = self.network.predict(observations, deterministic=deterministic)
        return np.asarray(actions).astype(self.network.action_space.dtype, copy=False)

    def internals(self, observations: Any, masks: NDArray[np.bool_] | None = None) -> PolicyInternals:
        """Return values and action distributions, as far as the algorithm has them; recurrent ones have no values."""
        import torch

        if self._normalise is not None:
            observations = self._normalise(observations)
        with torch.no_grad():
            tensors, _ = self.network.obs_to_tensor(observations)
            if self._is_recurrent:
                return self._recurrent_internals(tensors, count_rows(observations))
            return network_internals(self.network, tensors, masks)

    def inputs(self, observations: Any) -> NDArray[Any]:
        """Return the observations as the network sees them: normalised, one flat row each."""
        hint = "rlx explain RUN --method permutation"
        if self._is_recurrent:
            raise UsageError("the outputs of a recurrent policy also depend on its hidden state", hint=hint)
        if not isinstance(observations, np.ndarray):
            raise UsageError("gradients of an SB3 policy need one array as observation", hint=hint)
        if self._normalise is not None:
            observations = self._normalise(observations)
        return np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)

    def outputs(self, inputs: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the actor's outputs and the values for rows that the network sees."""
        import torch

        with torch.no_grad():
            outputs, values = network_outputs(self.network, self._tensor(inputs))
        as_numbers = None
        if values is not None:
            as_numbers = values.double().numpy()
        return outputs.double().numpy(), as_numbers

    def gradients(self, inputs: NDArray[Any], weights: NDArray[np.float64], value_weight: float) -> NDArray[np.float64]:
        """Return the gradient of `outputs · weights + value_weight · value` with respect to every input."""
        import torch

        tensor = self._tensor(inputs).requires_grad_()
        outputs, values = network_outputs(self.network, tensor)
        total = (outputs * torch.as_tensor(weights, dtype=outputs.dtype)).sum()
        if values is not None and value_weight:
            total = total + value_weight * values.sum()
        (gradient,) = torch.autograd.grad(total, tensor)
        return np.asarray(gradient.double().numpy()).reshape(len(inputs), -1)

    def _tensor(self, inputs: NDArray[Any]) -> Any:
        import torch

        shape = self.network.observation_space.shape
        return torch.as_tensor(np.asarray(inputs, dtype=np.float32).reshape(len(inputs), *shape))

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Clear the memory of the finished rows, or of all rows."""
        if finished is None:
            self._memory = self._starts = None
        elif self._starts is None or len(self._starts) != len(finished):
            self._starts = np.array(finished, dtype=bool)
        else:
            self._starts = self._starts | finished

    def hidden_state(self) -> NDArray[np.float64] | None:
        """Return the hidden state of the first row after the last action; None for a policy without memory."""
        if self._memory is None:
            return None
        return np.asarray(self._memory[0], dtype=np.float64)[:, 0].reshape(-1)

    def _predict_recurrent(self, observations: Any, deterministic: bool) -> Any:
        rows = count_rows(observations)
        if self._memory is None or self._memory[0].shape[1] != rows:
            self._memory = None
            self._starts = np.ones(rows, dtype=bool)
        elif self._starts is None:
            self._starts = np.zeros(rows, dtype=bool)
        actions, self._memory = self.network.predict(observations, self._memory, self._starts, deterministic)
        self._starts = np.zeros(rows, dtype=bool)
        return actions

    def _recurrent_internals(self, tensors: Any, rows: int) -> PolicyInternals:
        """Return the distribution with the memory as it is. The critic has a memory of its own, which is not kept."""
        import torch

        starts = np.ones(rows, dtype=bool)
        memory = [np.zeros((self.network.lstm_actor.num_layers, rows, self.network.lstm_actor.hidden_size))] * 2
        if self._memory is not None and self._memory[0].shape[1] == rows:
            memory = list(self._memory)
            starts = np.zeros(rows, dtype=bool) if self._starts is None else self._starts
        states = tuple(torch.as_tensor(part, dtype=torch.float32) for part in memory)
        wrapped, _ = self.network.get_distribution(tensors, states, torch.as_tensor(starts, dtype=torch.float32))
        return distribution_internals(wrapped, None)


def load(checkpoint: Checkpoint) -> Sb3Policy:
    """Rebuild a checkpoint's policy from its config and spaces, on the CPU, with its weights and normaliser."""
    experiment = parse(checkpoint.config, source=str(checkpoint.path / "manifest.json"))
    root = project_root(checkpoint.path)
    env = SpacesOnly(spaces.build(checkpoint.spaces.get("observation")), spaces.build(checkpoint.spaces.get("action")))
    with global_generators_kept():  # new networks draw weights before they get the stored ones
        algorithm = algorithms.build(experiment, env, root=root, seed=None, device="cpu", is_inference=True)
        training_state.load_policy(algorithm.policy, checkpoint.policy, where=str(checkpoint.path))
        _redraw_noise(algorithm.policy)
    return Sb3Policy(algorithm.policy, _normaliser(checkpoint, is_needed=experiment.env.normalize.obs))


def _redraw_noise(policy: Any) -> None:
    """Draw gSDE's noise with the loaded log_std instead of the initial one."""
    for module in (policy, getattr(policy, "actor", None)):
        if module is not None and getattr(module, "use_sde", False):
            module.reset_noise()


def _normaliser(checkpoint: Checkpoint, *, is_needed: bool) -> Normalise | None:
    """Return the training normaliser; raise if it is missing or scales differently than in training."""
    state = checkpoint.state.get("normalizer")
    if not state or not state["obs"]:
        if is_needed:
            raise _broken(checkpoint, "the normaliser of the observations is missing")
        return None
    normalise = _scaling(state)
    parity = checkpoint.parity
    if "inputs" in parity and not _is_same(normalise(parity["observations"]), parity["inputs"]):
        raise _broken(checkpoint, "the normaliser of the observations is not the one of its training")
    return normalise


def _broken(checkpoint: Checkpoint, problem: str) -> CheckpointInvalid:
    return CheckpointInvalid(
        f"checkpoint {checkpoint.path}: {problem}",
        hint="the policy needs its normaliser: use another checkpoint",
    )


def _is_same(inputs: Any, expected: Any) -> bool:
    if isinstance(inputs, dict):
        return all(_is_same(part, expected.get(key)) for key, part in inputs.items())
    return expected is not None and inputs.shape == expected.shape and np.allclose(inputs, expected, 1e-5, 1e-6)


def _scaling(state: Mapping[str, Any]) -> Normalise:
    """Return VecNormalize's scaling, equal to the last bit."""
    clip = state["clip"]
    scales = {key: (part["mean"], np.sqrt(part["var"] + state["epsilon"])) for key, part in state["obs"].items()}

    def scaled(values: Any, key: str) -> Any:
        if key not in scales:
            return values
        mean, std = scales[key]
        return np.clip((values - mean) / std, -clip, clip).astype(np.float32)

    def normalise(observations: Any) -> Any:
        if isinstance(observations, dict):
            return {key: scaled(part, key) for key, part in observations.items()}
        return scaled(observations, "")

    return normalise


def project_root(path: Path) -> Path:
    """Return a checkpoint's project: `RLX_ROOT`, else the nearest rlx.toml above, else the parent of `runs`."""
    if os.environ.get("RLX_ROOT"):
        return project.root()
    root = project.root(path)
    if root != path.resolve():
        return root
    return next((folder.parent for folder in path.resolve().parents if folder.name == "runs"), path.parent)
