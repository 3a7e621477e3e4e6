"""From an experiment to an SB3 algorithm: the class, its policy and its constructor arguments."""

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

from rlx.config.schema import ALGORITHMS, CustomAlgo, Experiment, QrDqn, RecurrentPpo, Schedule, Tqc
from rlx.envs.source import load_object, user_error
from rlx.errors import ConfigError


class CountedArs(ARS):
    """ARS whose step counter is the environments' own: SB3's multiplies by the number of environments twice."""

    def _trigger_callback(self, _locals: Any, _globals: Any, callback: Any, n_envs: int) -> None:
        self.num_timesteps = self.env.unwrapped.steps  # type: ignore[union-attr]
        callback.on_step()


CLASSES: dict[str, type[BaseAlgorithm]] = {
    "ppo": stable_baselines3.PPO,
    "a2c": stable_baselines3.A2C,
    "dqn": stable_baselines3.DQN,
    "sac": stable_baselines3.SAC,
    "td3": stable_baselines3.TD3,
    "ddpg": stable_baselines3.DDPG,
    "tqc": sb3_contrib.TQC,
    "qrdqn": sb3_contrib.QRDQN,
    "trpo": sb3_contrib.TRPO,
    "ars": CountedArs,
    "recurrent_ppo": sb3_contrib.RecurrentPPO,
    "maskable_ppo": sb3_contrib.MaskablePPO,
}
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
WITHOUT = {  # keys an algorithm inherits in the schema but has no use for
    "trpo": {"entropy_coef", "value_coef", "max_grad_norm"},
    "ars": {"gamma"},
    "maskable_ppo": {"use_sde"},
}
ACTIVATIONS = {
    "tanh": torch.nn.Tanh,
    "relu": torch.nn.ReLU,
    "elu": torch.nn.ELU,
    "gelu": torch.nn.GELU,
    "silu": torch.nn.SiLU,
}
POLICY_PREFIX = {"mlp": "Mlp", "cnn": "Cnn", "multi": "MultiInput"}
ALIGNMENT = 64  # bytes; torch's own memory always is
SMALL_ROLLOUT = {"n_steps": 2, "batch_size": 2}  # to predict, no memory is needed for what is never collected
SMALL_REPLAY = {"buffer_size": 1}


def build(
    experiment: Experiment, env: VecEnv, *, root: Path, seed: int | None, device: str, is_inference: bool = False
) -> BaseAlgorithm:
    """Construct the algorithm with freshly initialised networks; without a seed, no random generator is seeded."""
    kind = algorithm_class(experiment, root=root)
    accepted = inspect.signature(kind).parameters
    arguments = {
        **_arguments(experiment, env, accepted),
        "policy": _policy(experiment, kind, root=root),
        "policy_kwargs": _policy_arguments(experiment, kind, root=root),
        "env": env,
        "seed": seed,
        "device": device,
    }
    if is_inference:
        small = SMALL_ROLLOUT if issubclass(kind, OnPolicyAlgorithm) else SMALL_REPLAY
        arguments |= {key: value for key, value in small.items() if key in accepted}
    try:
        algorithm = kind(**arguments)
    except (AssertionError, TypeError, ValueError) as error:
        raise user_error(error, root=root, doing=f"building `{experiment.algo.name}`") from error
    _align_inputs(algorithm.policy)
    _change_modes_once(algorithm.policy)
    return algorithm


def _change_modes_once(policy: Any) -> None:
    """Skip the walk through all modules (a tenth of DQN's time) where the mode is already the one asked for."""
    change = policy.set_training_mode

    def set_training_mode(mode: bool) -> None:
        if policy.training != mode:
            change(mode)

    policy.set_training_mode = set_training_mode


def _align_inputs(policy: torch.nn.Module) -> None:
    """Make results independent of where and in which order NumPy put an observation.

    SB3 shares an observation's memory with torch. NumPy aligns it to 16 bytes and turns a picture by its strides
    alone; a product rounds differently for another alignment, a convolution for another order, so a resumed run
    would drift from the original by a last bit.
    """
    for module in policy.modules():
        if isinstance(module, BaseFeaturesExtractor):
            module.register_forward_pre_hook(_aligned)


def _aligned(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_aligned_part(part) for part in inputs)


def _aligned_part(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _aligned_part(item) for key, item in part.items()}
    if not isinstance(part, torch.Tensor) or (part.data_ptr() % ALIGNMENT == 0 and _is_in_order(part)):
        return part
    return part.clone(memory_format=torch.contiguous_format)


def _is_in_order(part: torch.Tensor) -> bool:
    """Say whether the strides are a plain array's; `is_contiguous` passes any for a dimension of size one."""
    sizes = (*part.shape[1:], 1)
    return part.stride() == tuple(math.prod(sizes[place:]) for place in range(part.ndim))


def algorithm_class(experiment: Experiment, *, root: Path) -> type[BaseAlgorithm]:
    """Return the SB3 class an experiment names, or the project's own subclass of one."""
    name = experiment.algo.name
    if name in CLASSES:
        return CLASSES[name]
    kind = load_object(name, root=root, kind="algorithm")
    if not (isinstance(kind, type) and issubclass(kind, (OnPolicyAlgorithm, OffPolicyAlgorithm))):
        raise ConfigError(
            f"`{name}` is not a subclass of an SB3 algorithm",
            hint="derive it from OnPolicyAlgorithm or OffPolicyAlgorithm of stable_baselines3, or from one of theirs",
        )
    return kind


def is_custom(experiment: Experiment) -> bool:
    """Say whether the algorithm is the project's own class."""
    return experiment.algo.name not in ALGORITHMS


def device_for(experiment: Experiment) -> str:
    """Return the torch device; `auto` uses a GPU only where it pays: images, and off-policy updates every step."""
    if experiment.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError(f"device `{experiment.device}` is not available to torch", hint="-s device=cpu")
    if experiment.device != "auto":
        return experiment.device
    is_heavy = experiment.policy.type == "cnn" or hasattr(experiment.algo, "buffer_size")
    return "cuda" if is_heavy and torch.cuda.is_available() else "cpu"


def _arguments(experiment: Experiment, env: VecEnv, accepted: Any) -> dict[str, Any]:
    algo = experiment.algo
    if isinstance(algo, CustomAlgo):
        shared = {"learning_rate": _rate(algo.learning_rate), "gamma": algo.gamma}
        return {**{key: value for key, value in shared.items() if key in accepted}, **algo.kwargs}
    skipped = ELSEWHERE | WITHOUT.get(algo.name, set())
    values = {name: getattr(algo, name) for name in type(algo).model_fields if name not in skipped}
    arguments = {SB3_NAMES.get(name, name): _rate(value) for name, value in values.items()}
    sigma = getattr(algo, "action_noise", None)
    if sigma:
        size = int(np.prod(env.action_space.shape or ()))
        arguments["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, sigma))
    return arguments


def _rate(value: Any) -> Any:
    return _scheduled(value) if isinstance(value, Schedule) else value


def _scheduled(schedule: Schedule) -> Callable[[float], float]:
    # The last rollout may end past the planned total: what remains is then nothing, not less.
    return lambda remaining: schedule.at(max(0.0, remaining))


def _policy(experiment: Experiment, kind: type[BaseAlgorithm], *, root: Path) -> Any:
    name = experiment.policy.type
    if ":" in name:
        return load_object(name, root=root, kind="policy")
    prefix = POLICY_PREFIX[name]
    for alias in (f"{prefix}Policy", f"{prefix}LstmPolicy"):
        if alias in kind.policy_aliases:
            return alias
    known = ", ".join(
        key for key, start in POLICY_PREFIX.items() if any(a.startswith(start) for a in kind.policy_aliases)
    )
    raise ConfigError(f"`{experiment.algo.name}` has no `{name}` policy", hint=f"it has: {known or 'none'}")


def _policy_arguments(experiment: Experiment, kind: type[BaseAlgorithm], *, root: Path) -> dict[str, Any]:
    policy, algo = experiment.policy, experiment.algo
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
    return {**arguments, **{key: _class_named(key, value, root) for key, value in policy.kwargs.items()}}


def _accepted(kind: type, arguments: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a policy class of one's own does not take."""
    parameters = inspect.signature(kind).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return arguments
    names = {parameter.name for parameter in parameters}
    return {key: value for key, value in arguments.items() if key in names}


def _class_named(key: str, value: Any, root: Path) -> Any:
    """Read `features_extractor_class: nets.py:Extractor` and its like; everything else is plain data."""
    if key.endswith(("_class", "_fn")) and isinstance(value, str):
        return load_object(value, root=root, kind=key)
    return value
