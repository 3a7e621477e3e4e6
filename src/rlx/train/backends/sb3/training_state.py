"""The state of an SB3 training as plain values and arrays, and back: the parts of an exact resume.

Two things are left out because nothing reads them after an update: rollout buffers, which are emptied when a rollout
starts, and gSDE's noise matrices, which are redrawn from the saved generator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.ars.ars import ARS
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import VectorizedActionNoise
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.save_util import recursive_getattr
from stable_baselines3.common.vec_env import VecNormalize

from rlx.errors import CheckpointInvalid

if TYPE_CHECKING:
    Arrays = dict[str, NDArray[Any]]

COUNTERS = (
    "num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate", "_current_progress_remaining",
)  # fmt: skip
LAST = ("_last_obs", "_last_episode_starts", "_last_original_obs")
EPISODES_KEPT = 100


# Weights and optimizers


def policy_arrays(algorithm: BaseAlgorithm) -> Arrays:
    """Return a copy of the network's parameters and buffers, including target networks."""
    return {name: _array(tensor) for name, tensor in algorithm.policy.state_dict().items()}


def load_policy(policy: torch.nn.Module, arrays: Arrays, *, where: str) -> None:
    """Load all parameters; each must be there with the right shape."""
    try:
        policy.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()}, strict=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise CheckpointInvalid(
            f"checkpoint {where}: its weights do not fit the network of its config: {reason[:300]}",
            hint="the policy class or the SB3 version changed since it was written",
        ) from None


def optimizer_state(algorithm: BaseAlgorithm) -> tuple[Arrays, dict[str, Any]]:
    """Return the tensors of all optimizers (and of learned scalars next to the network), and their plain values."""
    arrays: Arrays = {}
    plain: dict[str, Any] = {}
    for name in _optimizer_names(algorithm):
        state = recursive_getattr(algorithm, name).state_dict()
        values: dict[int, dict[str, Any]] = {}
        for index, entries in state["state"].items():
            values[index] = {}
            for key, value in entries.items():
                if isinstance(value, torch.Tensor):
                    arrays[f"{name}/{index}/{key}"] = _array(value)
                else:
                    values[index][key] = _plain(value)
        plain[name] = {"values": values, "groups": [_plain(group) for group in state["param_groups"]]}
    for name in algorithm._get_torch_save_params()[1]:
        arrays[f"{name}/value"] = _array(recursive_getattr(algorithm, name))
    return arrays, plain


def load_optimizers(algorithm: BaseAlgorithm, arrays: Arrays, plain: Mapping[str, Any]) -> None:
    """Restore optimizers and learned scalars. Scalars change in place, because their optimizer refers to them."""
    for name in _optimizer_names(algorithm):
        state: dict[int, dict[str, Any]] = {index: dict(values) for index, values in plain[name]["values"].items()}
        prefix = f"{name}/"
        for key, array in arrays.items():
            if key.startswith(prefix):
                index, _, field = key.removeprefix(prefix).partition("/")
                state.setdefault(int(index), {})[field] = torch.tensor(array)
        recursive_getattr(algorithm, name).load_state_dict({"state": state, "param_groups": plain[name]["groups"]})
    for name in algorithm._get_torch_save_params()[1]:
        recursive_getattr(algorithm, name).data.copy_(torch.tensor(arrays[f"{name}/value"]))


def _optimizer_names(algorithm: BaseAlgorithm) -> list[str]:
    return [name for name in algorithm._get_torch_save_params()[0] if name != "policy"]


# What a rollout changes


def progress_state(algorithm: BaseAlgorithm) -> dict[str, Any]:
    """Return counters, last observations, recent episodes, and the states of exploration and memory."""
    state: dict[str, Any] = {
        "counters": {name: _plain(getattr(algorithm, name)) for name in COUNTERS if hasattr(algorithm, name)},
        **{name.removeprefix("_"): _plain(getattr(algorithm, name)) for name in LAST},
        "episodes": [dict(episode) for episode in algorithm.ep_info_buffer or ()],
        "successes": list(algorithm.ep_success_buffer or ()),
        "action_space": algorithm.action_space.np_random.bit_generator.state,
        "action_noise": [_plain(getattr(noise, "noise_prev", None)) for noise in _noises(algorithm)],
    }
    memory = getattr(algorithm, "_last_lstm_states", None)
    if memory is not None:
        state["lstm"] = {"pi": [_array(part) for part in memory.pi], "vf": [_array(part) for part in memory.vf]}
    return state


def set_progress_state(algorithm: Any, state: Mapping[str, Any]) -> None:
    """Restore what `progress_state` returned."""
    for name, value in state["counters"].items():
        setattr(algorithm, name, value)
    for name in LAST:
        setattr(algorithm, name, state[name.removeprefix("_")])
    algorithm.ep_info_buffer = deque(state["episodes"], maxlen=EPISODES_KEPT)
    algorithm.ep_success_buffer = deque(state["successes"], maxlen=EPISODES_KEPT)
    algorithm.action_space.np_random.bit_generator.state = state["action_space"]
    for noise, previous in zip(_noises(algorithm), state["action_noise"], strict=True):
        if previous is not None:
            noise.noise_prev = previous
    if "lstm" in state:
        parts = {
            name: tuple(torch.tensor(part, device=algorithm.device) for part in memory)
            for name, memory in state["lstm"].items()
        }
        algorithm._last_lstm_states = algorithm._last_lstm_states._replace(**parts)
    if isinstance(algorithm, ARS):
        weights: Any = torch.nn.utils.parameters_to_vector(algorithm.policy.parameters()).detach()
        algorithm.weights = weights


def _noises(algorithm: BaseAlgorithm) -> list[Any]:
    noise = algorithm.action_noise
    if isinstance(noise, VectorizedActionNoise):
        return list(noise.noises)
    return [] if noise is None else [noise]


# Normalisation


def normalizer_state(normalizer: VecNormalize | None) -> dict[str, Any] | None:
    """Return running statistics and discounted returns, or None without a normaliser."""
    if normalizer is None:
        return None
    return {
        "obs": {key: _moments(part) for key, part in _observation_moments(normalizer).items()},
        "reward": _moments(normalizer.ret_rms),
        "returns": normalizer.returns.copy(),
        "clip": float(normalizer.clip_obs),
        "epsilon": float(normalizer.epsilon),
    }


def set_normalizer_state(normalizer: VecNormalize | None, state: Mapping[str, Any] | None) -> None:
    """Restore what `normalizer_state` returned."""
    if normalizer is None or state is None:
        return
    for key, part in _observation_moments(normalizer).items():
        vars(part).update(state["obs"][key])
    vars(normalizer.ret_rms).update(state["reward"])
    normalizer.returns = state["returns"].copy()


def _observation_moments(normalizer: VecNormalize) -> dict[str, RunningMeanStd]:
    moments = getattr(normalizer, "obs_rms", {})  # absent if observations are not normalised
    return moments if isinstance(moments, dict) else {"": moments}


def _moments(moments: RunningMeanStd) -> dict[str, Any]:
    return {"mean": np.array(moments.mean), "var": np.array(moments.var), "count": float(moments.count)}


# Replay buffer


def replay_arrays(buffer: ReplayBuffer) -> tuple[Arrays, dict[str, Any]]:
    """Return views of the buffer's filled rows, without copying them, and its position."""
    rows = buffer.size()
    if getattr(buffer, "optimize_memory_usage", False):
        rows = min(rows + 1, buffer.buffer_size)  # the last observation is in the row after
    arrays = {name: array[:rows] for name, array in _columns(buffer)}
    return arrays, {"pos": int(buffer.pos), "full": bool(buffer.full), "rows": rows}


def load_replay(buffer: ReplayBuffer, arrays: Arrays, position: Mapping[str, Any], *, where: str) -> None:
    """Fill the buffer with what `replay_arrays` returned."""
    for name, column in _columns(buffer):
        rows = arrays.get(name)
        if rows is None or rows.shape[1:] != column.shape[1:] or len(rows) > len(column):
            problem = "absent" if rows is None else f"of shape {rows.shape}"
            raise CheckpointInvalid(
                f"checkpoint {where}: replay `{name}` is {problem}, the buffer's is {column.shape}",
                hint="algo.buffer_size and env.num_envs must stay as they were",
            )
        column[: len(rows)] = rows
    buffer.pos = position["pos"]
    buffer.full = position["full"]


def _columns(buffer: ReplayBuffer) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, value in vars(buffer).items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for key, part in parts:
            if isinstance(part, np.ndarray) and part.ndim and len(part) == buffer.buffer_size:
                yield f"{name}/{key}" if key else name, part


# Conversion


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy().copy()
    return array


def _plain(value: Any) -> Any:
    """Return a value in the form that a checkpoint stores: containers and arrays copied, tensors as arrays."""
    if isinstance(value, torch.Tensor):
        return _array(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value
