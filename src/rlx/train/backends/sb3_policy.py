"""An SB3 network as a policy: raw observations in, environment actions out, normaliser and memory inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import BasePolicy

from rlx.config.load import parse
from rlx.envs import spaces
from rlx.errors import CheckpointInvalid
from rlx.runs import project
from rlx.runs.checkpoint import Checkpoint
from rlx.train.backends import sb3_algorithms, sb3_state
from rlx.train.backends.sb3_vecenv import SpacesOnly

Normalise = Callable[[Any], Any]


class Sb3Policy:
    """Predicts with an SB3 network; keeps recurrent state a row until `reset` forgets it."""

    def __init__(self, network: BasePolicy, normalise: Normalise | None = None) -> None:
        self.network = network
        self._normalise = normalise
        self._is_recurrent = hasattr(network, "lstm_actor")
        self._is_masked = isinstance(network, MaskableActorCriticPolicy)
        self._memory: Any = None
        self._starts: NDArray[np.bool_] | None = None

    def predict(
        self, observations: Any, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return one action a row."""
        if self._normalise is not None:
            observations = self._normalise(observations)
        if self._is_recurrent:
            actions = self._remembering(observations, deterministic)
        elif self._is_masked:
            actions, _ = self.network.predict(  # type: ignore[call-arg]
                observations, deterministic=deterministic, action_masks=masks
            )
        else:
            actions, _ = self.network.predict(observations, deterministic=deterministic)
        return np.asarray(actions).astype(self.network.action_space.dtype, copy=False)

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Forget the memory of the finished rows, or of all."""
        if finished is None:
            self._memory = self._starts = None
        elif self._starts is None or len(self._starts) != len(finished):
            self._starts = np.array(finished, dtype=bool)
        else:
            self._starts = self._starts | finished

    def _remembering(self, observations: Any, deterministic: bool) -> Any:
        rows = len(next(iter(observations.values())) if isinstance(observations, dict) else observations)
        if self._memory is None or self._memory[0].shape[1] != rows:
            self._memory, self._starts = None, np.ones(rows, dtype=bool)
        starts = np.zeros(rows, dtype=bool) if self._starts is None else self._starts
        actions, self._memory = self.network.predict(observations, self._memory, starts, deterministic)
        self._starts = np.zeros(rows, dtype=bool)
        return actions


def load(checkpoint: Checkpoint) -> Sb3Policy:
    """Rebuild a checkpoint's policy from its config and spaces, on the CPU, with its weights and normaliser."""
    experiment = parse(checkpoint.config, source=str(checkpoint.path / "manifest.json"))
    root = project_root(checkpoint.path)
    env = SpacesOnly(spaces.build(checkpoint.spaces.get("observation")), spaces.build(checkpoint.spaces.get("action")))
    with sb3_state.untouched_randomness():  # new networks draw their weights before they are given the stored ones
        algorithm = sb3_algorithms.build(experiment, env, root=root, seed=None, device="cpu", is_inference=True)
        sb3_state.load_policy(algorithm.policy, checkpoint.policy, where=str(checkpoint.path))
        _draw_noise(algorithm.policy)
    return Sb3Policy(algorithm.policy, _normaliser(checkpoint, is_needed=experiment.env.normalize.obs))


def _draw_noise(policy: Any) -> None:
    """Draw gSDE's noise from the loaded deviations, not from those the network was born with."""
    for module in (policy, getattr(policy, "actor", None)):
        if module is not None and getattr(module, "use_sde", False):
            module.reset_noise()


def _normaliser(checkpoint: Checkpoint, *, is_needed: bool) -> Normalise | None:
    """Return the training normaliser; one that is not there, or scales otherwise than in training, is refused."""
    state = checkpoint.state.get("normalizer")
    normalise = _scaling(state) if state and state["obs"] else None
    told = checkpoint.parity
    if is_needed and normalise is None:
        _refuse_normaliser(checkpoint, "the normaliser of the observations is missing")
    if normalise is not None and "inputs" in told and not _is_same(normalise(told["observations"]), told["inputs"]):
        _refuse_normaliser(checkpoint, "the normaliser of the observations is not the one of its training")
    return normalise


def _refuse_normaliser(checkpoint: Checkpoint, why: str) -> NoReturn:
    raise CheckpointInvalid(
        f"checkpoint {checkpoint.path}: {why}", hint="a policy is worth nothing without it: use another checkpoint"
    )


def _is_same(inputs: Any, told: Any) -> bool:
    if isinstance(inputs, dict):
        return all(_is_same(part, told.get(key)) for key, part in inputs.items())
    return told is not None and inputs.shape == told.shape and np.allclose(inputs, told, rtol=1e-5, atol=1e-6)


def _scaling(state: Mapping[str, Any]) -> Normalise:
    clip, epsilon = state["clip"], state["epsilon"]
    # the same arithmetic as VecNormalize, to the last bit
    scales = {key: (part["mean"], np.sqrt(part["var"] + epsilon)) for key, part in state["obs"].items()}

    def scaled(values: Any, key: str) -> Any:
        mean, deviation = scales[key]
        return np.clip((values - mean) / deviation, -clip, clip).astype(np.float32)

    def normalise(observations: Any) -> Any:
        if isinstance(observations, dict):
            return {key: scaled(part, key) if key in scales else part for key, part in observations.items()}
        return scaled(observations, "")

    return normalise


def project_root(path: Path) -> Path:
    """Return the project of a checkpoint: `RLX_ROOT`, the nearest rlx.toml upwards, else where its `runs` folder is."""
    if os.environ.get("RLX_ROOT"):
        return project.root()
    found = project.root(path)
    if found != path.resolve():
        return found
    return next((folder.parent for folder in path.resolve().parents if folder.name == "runs"), path.parent)
