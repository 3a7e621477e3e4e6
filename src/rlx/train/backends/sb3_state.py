"""Everything an SB3 training consists of, as plain values and arrays, and back: the ingredients of an exact resume.

Left out because nothing reads them after a boundary: rollout buffers (emptied when a rollout starts) and the noise
matrices of gSDE (drawn anew, from the saved generator, when a rollout or an update starts).
"""

from __future__ import annotations

import contextlib
import random
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
    from rlx.runs.checkpoint import Checkpoint
    from rlx.train.backends.sb3_vecenv import SameStepVecEnv

    Arrays = dict[str, NDArray[Any]]

COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_n_calls",
    "exploration_rate",
    "_current_progress_remaining",
)
EPISODES_KEPT = 100


# Random generators


def random_state() -> dict[str, Any]:
    """Return the states of the process's generators: Python's, NumPy's and torch's."""
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),
        "torch": torch.get_rng_state().numpy(),
    }
    if torch.cuda.is_available():
        state["cuda"] = [generator.numpy() for generator in torch.cuda.get_rng_state_all()]
    return state


def set_random_state(state: Mapping[str, Any]) -> None:
    """Put the generators where `random_state` found them."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(torch.from_numpy(np.array(state["torch"])))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([torch.from_numpy(np.array(part)) for part in state["cuda"]])


@contextlib.contextmanager
def untouched_randomness() -> Iterator[dict[str, Any]]:
    """Leave the process's generators as they were, whatever the block draws; yields their state."""
    state = random_state()
    try:
        yield state
    finally:
        set_random_state(state)


# Weights


def policy_arrays(algorithm: BaseAlgorithm) -> Arrays:
    """Return a copy of the network's parameters and buffers, target networks included."""
    return {name: _array(tensor) for name, tensor in algorithm.policy.state_dict().items()}


def load_policy(policy: torch.nn.Module, arrays: Arrays, *, where: str) -> None:
    """Load parameters strictly: every one, in its shape."""
    try:
        policy.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()}, strict=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise CheckpointInvalid(
            f"checkpoint {where}: its weights do not fit the network of its config: {reason[:300]}",
            hint="the policy class or the SB3 version changed since it was written",
        ) from None


def optimizer_state(algorithm: BaseAlgorithm) -> tuple[Arrays, dict[str, Any]]:
    """Return the tensors of all optimizers (and of learned scalars beside the network), and their plain values."""
    arrays: Arrays = {}
    plain: dict[str, Any] = {}
    names, variables = algorithm._get_torch_save_params()
    for name in names:
        if name == "policy":
            continue
        document = recursive_getattr(algorithm, name).state_dict()
        values: dict[int, dict[str, Any]] = {}
        for index, entries in document["state"].items():
            tensors = {key: value for key, value in entries.items() if isinstance(value, torch.Tensor)}
            arrays |= {f"{name}/{index}/{key}": _array(value) for key, value in tensors.items()}
            values[index] = {key: _plain(value) for key, value in entries.items() if key not in tensors}
        plain[name] = {"values": values, "groups": [_plain(group) for group in document["param_groups"]]}
    for name in variables:
        arrays[f"{name}/value"] = _array(recursive_getattr(algorithm, name))
    return arrays, plain


def load_optimizers(algorithm: BaseAlgorithm, arrays: Arrays, plain: Mapping[str, Any]) -> None:
    """Put the optimizers and learned scalars back, the latter in place: their optimizer holds on to them."""
    names, variables = algorithm._get_torch_save_params()
    for name in names:
        if name == "policy":
            continue
        state: dict[int, dict[str, Any]] = {index: dict(values) for index, values in plain[name]["values"].items()}
        prefix = f"{name}/"
        for key, array in arrays.items():
            if key.startswith(prefix):
                index, _, field = key.removeprefix(prefix).partition("/")
                state.setdefault(int(index), {})[field] = torch.tensor(array)
        recursive_getattr(algorithm, name).load_state_dict({"state": state, "param_groups": plain[name]["groups"]})
    for name in variables:
        recursive_getattr(algorithm, name).data.copy_(torch.tensor(arrays[f"{name}/value"]))


# What a rollout changes


def progress_state(algorithm: BaseAlgorithm) -> dict[str, Any]:
    """Return counters, last observations, recent episodes, and the states of exploration and memory."""
    state: dict[str, Any] = {
        "counters": {name: _plain(getattr(algorithm, name)) for name in COUNTERS if hasattr(algorithm, name)},
        "last_obs": _plain(algorithm._last_obs),
        "last_episode_starts": _plain(algorithm._last_episode_starts),
        "last_original_obs": _plain(algorithm._last_original_obs),
        "episodes": [dict(episode) for episode in algorithm.ep_info_buffer or ()],
        "successes": list(algorithm.ep_success_buffer or ()),
        "action_space": algorithm.action_space.np_random.bit_generator.state,
        "action_noise": [_plain(getattr(noise, "noise_prev", None)) for noise in _noises(algorithm)],
    }
    memory = getattr(algorithm, "_last_lstm_states", None)
    if memory is not None:
        state["lstm"] = {"pi": [_array(part) for part in memory.pi], "vf": [_array(part) for part in memory.vf]}
    return state


def set_progress_state(algorithm: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Put back what `progress_state` returned."""
    for name, value in state["counters"].items():
        setattr(algorithm, name, value)
    algorithm._last_obs = state["last_obs"]
    algorithm._last_episode_starts = state["last_episode_starts"]
    algorithm._last_original_obs = state["last_original_obs"]
    algorithm.ep_info_buffer = deque(state["episodes"], maxlen=EPISODES_KEPT)
    algorithm.ep_success_buffer = deque(state["successes"], maxlen=EPISODES_KEPT)
    algorithm.action_space.np_random.bit_generator.state = state["action_space"]
    for noise, previous in zip(_noises(algorithm), state["action_noise"], strict=True):
        if previous is not None:
            noise.noise_prev = previous
    if "lstm" in state:
        memory = algorithm._last_lstm_states  # type: ignore[attr-defined]
        parts = {name: tuple(torch.tensor(part, device=algorithm.device) for part in state["lstm"][name])
                 for name in ("pi", "vf")}  # fmt: skip
        algorithm._last_lstm_states = memory._replace(**parts)  # type: ignore[attr-defined]
    if isinstance(algorithm, ARS):
        weights: Any = torch.nn.utils.parameters_to_vector(algorithm.policy.parameters()).detach()
        algorithm.weights = weights


def _noises(algorithm: BaseAlgorithm) -> list[Any]:
    noise = algorithm.action_noise
    if noise is None:
        return []
    return list(noise.noises) if isinstance(noise, VectorizedActionNoise) else [noise]


def account_state(env: SameStepVecEnv) -> dict[str, Any]:
    """Return the unfinished episodes' accounts."""
    counts = {"steps": env.steps, "episodes": env.episodes}
    sums = {"returns": env.returns.copy(), "lengths": env.lengths.copy(), "terms": env.terms.document()}
    return {**counts, **sums}


def set_account_state(env: SameStepVecEnv, state: Mapping[str, Any]) -> None:
    """Put back what `account_state` returned."""
    env.steps, env.episodes = state["steps"], state["episodes"]
    env.returns[:] = state["returns"]
    env.lengths[:] = state["lengths"]
    if "terms" in state:  # absent in older checkpoints
        env.terms.restore(state["terms"])


# Normalisation


def normalizer_state(normalizer: VecNormalize | None) -> dict[str, Any] | None:
    """Return running statistics and discounted returns; None where nothing is normalised."""
    if normalizer is None:
        return None
    statistics = getattr(normalizer, "obs_rms", {})  # absent where observations are left alone
    parts = statistics if isinstance(statistics, dict) else {"": statistics}
    return {
        "obs": {key: _moments(part) for key, part in parts.items()},
        "reward": _moments(normalizer.ret_rms),
        "returns": normalizer.returns.copy(),
        "clip": float(normalizer.clip_obs),
        "epsilon": float(normalizer.epsilon),
    }


def set_normalizer_state(normalizer: VecNormalize | None, state: Mapping[str, Any] | None) -> None:
    """Put back what `normalizer_state` returned."""
    if normalizer is None or state is None:
        return
    statistics = getattr(normalizer, "obs_rms", {})
    parts = statistics if isinstance(statistics, dict) else {"": statistics}
    for key, part in parts.items():
        _set_moments(part, state["obs"][key])
    _set_moments(normalizer.ret_rms, state["reward"])
    normalizer.returns = state["returns"].copy()


def _moments(statistics: RunningMeanStd) -> dict[str, Any]:
    mean, var = np.array(statistics.mean), np.array(statistics.var)
    return {"mean": mean, "var": var, "count": float(statistics.count)}


def _set_moments(statistics: RunningMeanStd, state: Mapping[str, Any]) -> None:
    statistics.mean, statistics.var, statistics.count = state["mean"], state["var"], state["count"]


# Replay


def replay_arrays(buffer: ReplayBuffer) -> tuple[Arrays, dict[str, Any]]:
    """Return views of the buffer's filled rows (nothing is copied) and its position."""
    rows = buffer.size()
    if getattr(buffer, "optimize_memory_usage", False):
        rows = min(rows + 1, buffer.buffer_size)  # the last observation stands in the row after
    arrays = {name: array[:rows] for name, array in _columns(buffer)}
    return arrays, {"pos": int(buffer.pos), "full": bool(buffer.full), "rows": rows}


def load_replay(buffer: ReplayBuffer, arrays: Arrays, position: Mapping[str, Any], *, where: str) -> None:
    """Fill the buffer as `replay_arrays` found it."""
    for name, column in _columns(buffer):
        rows = arrays.get(name)
        if rows is None or rows.shape[1:] != column.shape[1:] or len(rows) > len(column):
            found = "absent" if rows is None else f"of shape {rows.shape}"
            raise CheckpointInvalid(
                f"checkpoint {where}: replay `{name}` is {found}, the buffer's is {column.shape}",
                hint="algo.buffer_size and env.num_envs must stay as they were",
            )
        column[: len(rows)] = rows
    buffer.pos, buffer.full = position["pos"], position["full"]


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
    """Return a value as the checkpoint's tree takes it: containers and arrays copied, tensors as arrays."""
    if isinstance(value, torch.Tensor):
        return _array(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(item) for item in value)
    return value


def check_fits(checkpoint: Checkpoint, *, algorithm: str) -> None:
    """Refuse a checkpoint of another algorithm."""
    if checkpoint.algorithm != algorithm:
        raise CheckpointInvalid(
            f"checkpoint {checkpoint.path} is of `{checkpoint.algorithm}`, not of `{algorithm}`",
            hint="resume with the config it was trained with",
        )
