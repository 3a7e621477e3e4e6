"""Builds an SB3 algorithm from an experiment: the class, its policy and its constructor arguments."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from sb3_contrib.ars.ars import ARS
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

from rlx.config.schema import CustomAlgo, Experiment, QrDqn, RecurrentPpo, Schedule, Tqc
from rlx.envs.import_object import load_object, user_error
from rlx.errors import ConfigError


class CountedArs(ARS):
    """ARS with the environments' own step count: SB3 multiplies by the number of environments twice."""

    def _trigger_callback(self, _locals: Any, _globals: Any, callback: Any, n_envs: int) -> None:
        self.num_timesteps = self.env.unwrapped.steps  # type: ignore[union-attr]
        callback.on_step()


CLASSES: dict[str, type[BaseAlgorithm]] = {
    "ppo": stable_baselines3.PPO, "a2c": stable_baselines3.A2C, "dqn": stable_baselines3.DQN,
    "sac": stable_baselines3.SAC, "td3": stable_baselines3.TD3, "ddpg": stable_baselines3.DDPG,
    "tqc": sb3_contrib.TQC, "qrdqn": sb3_contrib.QRDQN, "trpo": sb3_contrib.TRPO, "ars": CountedArs,
    "recurrent_ppo": sb3_contrib.RecurrentPPO, "maskable_ppo": sb3_contrib.MaskablePPO,
}  # fmt: skip
SB3_NAMES = {
    "rollout_steps": "n_steps",
    "entropy_coef": "ent_coef",
    "value_coef": "vf_coef",
    "update_epochs": "n_epochs",
    "clip_range_value": "clip_range_vf",
    "rms_prop": "use_rms_prop",
    "critic_updates": "n_critic_updates",
    "train_every": "train_freq",
    "target_update_every": "target_update_interval",
    "exploration_initial": "exploration_initial_eps",
    "exploration_final": "exploration_final_eps",
    "dropped_quantiles": "top_quantiles_to_drop_per_net",
    "target_noise": "target_policy_noise",
    "deltas": "n_delta",
    "top_deltas": "n_top",
    "eval_episodes": "n_eval_episodes",
}
ELSEWHERE = {"name", "total_timesteps", "kwargs", "action_noise", "lstm_size", "quantiles", "critics"}
WITHOUT = {  # keys that an algorithm inherits in the schema but does not use
    "trpo": {"entropy_coef", "value_coef", "max_grad_norm"},
    "ars": {"gamma"},
    "maskable_ppo": {"use_sde"},
}
ACTIVATIONS = {
    "tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "elu": torch.nn.ELU, "gelu": torch.nn.GELU, "silu": torch.nn.SiLU,
}  # fmt: skip
POLICY_PREFIX = {"mlp": "Mlp", "cnn": "Cnn", "multi": "MultiInput"}
ALIGNMENT = 64  # bytes; torch always aligns its own memory so
SMALL_MEMORY = {"n_steps": 2, "batch_size": 2, "buffer_size": 1}  # for a policy that only predicts


def build(
    experiment: Experiment, env: VecEnv, *, root: Path, seed: int | None, device: str, is_inference: bool = False
) -> BaseAlgorithm:
    """Construct the algorithm with freshly initialised networks; with `seed=None`, no random generator is seeded."""
    kind = algorithm_class(experiment, root=root)
    accepted = inspect.signature(kind).parameters
    arguments = {
        **_arguments(experiment, env, accepted),
        "policy": _policy(experiment, kind, root=root),
        "policy_kwargs": _policy_arguments(experiment, root=root),
        "env": env,
        "seed": seed,
        "device": device,
    }
    if is_inference:
        names = ("n_steps", "batch_size") if issubclass(kind, OnPolicyAlgorithm) else ("buffer_size",)
        arguments |= {name: SMALL_MEMORY[name] for name in names if name in accepted}
    try:
        algorithm = kind(**arguments)
    except (AssertionError, TypeError, ValueError) as error:
        raise user_error(error, root=root, doing=f"building `{experiment.algo.name}`") from error
    _align_inputs(algorithm.policy)
    _change_modes_once(algorithm.policy)
    return algorithm


def _change_modes_once(policy: Any) -> None:
    """Change the training mode only if it differs: the walk through all modules is a tenth of DQN's time."""
    change = policy.set_training_mode

    def set_training_mode(mode: bool) -> None:
        if policy.training != mode:
            change(mode)

    policy.set_training_mode = set_training_mode


def _align_inputs(policy: torch.nn.Module) -> None:
    """Make results independent of an observation's address and memory layout.

    SB3 shares an observation's memory with torch. NumPy aligns it to 16 bytes, and transposes an image by its strides
    alone. Matrix products round differently with another alignment, and convolutions with another layout, so a resumed
    run would differ from the original in the last bit.
    """
    for module in policy.modules():
        if isinstance(module, BaseFeaturesExtractor):
            module.register_forward_pre_hook(lambda _, inputs: tuple(_aligned(part) for part in inputs))


def _aligned(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _aligned(item) for key, item in part.items()}
    if not isinstance(part, torch.Tensor) or (part.data_ptr() % ALIGNMENT == 0 and _is_row_major(part)):
        return part
    return part.clone(memory_format=torch.contiguous_format)


def _is_row_major(part: torch.Tensor) -> bool:
    """Return whether the strides are a plain array's; `is_contiguous` ignores those of dimensions of size one."""
    sizes = (*part.shape[1:], 1)
    return part.stride() == tuple(math.prod(sizes[axis:]) for axis in range(part.ndim))


def algorithm_class(experiment: Experiment, *, root: Path) -> type[BaseAlgorithm]:
    """Return the SB3 class that an experiment names, or the project's own subclass of one."""
    name = experiment.algo.name
    if name in CLASSES:
        return CLASSES[name]
    kind = load_object(name, root=root, kind="algorithm")
    if not (isinstance(kind, type) and issubclass(kind, (OnPolicyAlgorithm, OffPolicyAlgorithm))):
        raise ConfigError(
            f"`{name}` is not a subclass of an SB3 algorithm",
            hint="derive it from OnPolicyAlgorithm or OffPolicyAlgorithm of stable_baselines3, or from a subclass",
        )
    return kind


def device_for(experiment: Experiment) -> str:
    """Return the torch device. `auto` uses a GPU for images and for off-policy updates only."""
    if experiment.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device `{experiment.device}` is not available to torch", hint="-s device=cpu")
    if experiment.device != "auto":
        return experiment.device
    is_heavy = experiment.policy.type == "cnn" or hasattr(experiment.algo, "buffer_size")
    return "cuda" if is_heavy and torch.cuda.is_available() else "cpu"


def _arguments(experiment: Experiment, env: VecEnv, accepted: Any) -> dict[str, Any]:
    algo = experiment.algo
    if isinstance(algo, CustomAlgo):
        shared = {"learning_rate": _schedule(algo.learning_rate), "gamma": algo.gamma}
        return {**{key: value for key, value in shared.items() if key in accepted}, **algo.kwargs}
    skipped = ELSEWHERE | WITHOUT.get(algo.name, set())
    names = [name for name in type(algo).model_fields if name not in skipped]
    arguments = {SB3_NAMES.get(name, name): _schedule(getattr(algo, name)) for name in names}
    sigma = getattr(algo, "action_noise", None)
    if sigma:
        size = math.prod(env.action_space.shape or ())
        arguments["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, sigma))
    return arguments


def _schedule(value: Any) -> Any:
    """Return a schedule as the function that SB3 expects, and everything else unchanged."""
    if not isinstance(value, Schedule):
        return value
    schedule: Callable[[float], float] = lambda remaining: value.at(max(0.0, remaining))  # noqa: E731
    return schedule  # the last rollout may end after the planned total: `remaining` is then below 0


def _policy(experiment: Experiment, kind: type[BaseAlgorithm], *, root: Path) -> Any:
    name = experiment.policy.type
    if ":" in name:
        return load_object(name, root=root, kind="policy")
    prefix = POLICY_PREFIX[name]
    for alias in (f"{prefix}Policy", f"{prefix}LstmPolicy"):
        if alias in kind.policy_aliases:
            return alias
    aliases = " ".join(kind.policy_aliases)
    known = ", ".join(key for key, start in POLICY_PREFIX.items() if start in aliases)
    raise ConfigError(f"`{experiment.algo.name}` has no `{name}` policy", hint=f"it has: {known or 'none'}")


def _policy_arguments(experiment: Experiment, *, root: Path) -> dict[str, Any]:
    policy = experiment.policy
    algo = experiment.algo
    arguments: dict[str, Any] = {}
    if policy.hidden_sizes is not None:
        arguments["net_arch"] = list(policy.hidden_sizes)
    if policy.activation is not None:
        arguments["activation_fn"] = ACTIVATIONS[policy.activation]
    if isinstance(algo, RecurrentPpo):
        arguments["lstm_hidden_size"] = algo.lstm_size
    if isinstance(algo, (QrDqn, Tqc)):
        arguments["n_quantiles"] = algo.quantiles
    if isinstance(algo, Tqc):
        arguments["n_critics"] = algo.critics
    if ":" in policy.type:
        arguments = _accepted(load_object(policy.type, root=root, kind="policy"), arguments)
    for key, value in policy.kwargs.items():
        if key.endswith(("_class", "_fn")) and isinstance(value, str):  # features_extractor_class: nets.py:Extractor
            value = load_object(value, root=root, kind=key)
        arguments[key] = value
    return arguments


def _accepted(kind: type, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a project's own policy class takes."""
    parameters = inspect.signature(kind).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return arguments
    return {key: value for key, value in arguments.items() if key in parameters}
