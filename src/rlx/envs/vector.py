"""Makes vector environments, always with same-step autoreset, and the seeds that they start from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import iterate

from rlx.config.schema import Env
from rlx.envs import vector_acrobot
from rlx.envs.batched_worlds import is_batched_class
from rlx.envs.check_kwargs import refuse_unknown
from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.import_object import user_error
from rlx.envs.make import make_env, make_worlds, named_by, quiet
from rlx.envs.native_vector import AUTORESET, AnyVector, NativeVector, is_worlds, resets_late
from rlx.envs.record_episodes import SUCCESS_KEYS
from rlx.envs.remote.env_process import connected
from rlx.envs.reward_terms import TERMS, terms_of
from rlx.errors import ConfigError

# Training uses seeds in [2**30, 2**31). Simulators take 32-bit signed seeds, so they are below 2**31. The lower half is
# for evaluation, so that no evaluation episode is ever a training episode.
FIRST_SEED = 2**30
_INDEX_BITS = 10
_SEED_BITS = 20
_SCRAMBLE = 0x2545F491  # odd, so multiplying by it is one to one modulo 2**30


def env_seeds(training_seed: int, count: int) -> list[int]:
    """Return the reset seeds of a training seed's environments, in [2**30, 2**31).

    For training seeds below 2**20 and up to 1024 environments, no two of them are equal. Beyond that, NumPy's
    SeedSequence draws them from the same range.
    """
    if 0 <= training_seed < 2**_SEED_BITS and count <= 2**_INDEX_BITS:
        first = training_seed << _INDEX_BITS
        return [FIRST_SEED + (first + index) * _SCRAMBLE % FIRST_SEED for index in range(count)]
    drawn = np.random.SeedSequence(training_seed).generate_state(count, np.uint32)
    return [FIRST_SEED + int(seed) % FIRST_SEED for seed in drawn]


def make_vector(env: Env, *, root: Path, num_envs: int | None = None, takes_late: bool = False) -> AnyVector:
    """Make the vector that a config asks for: native if it resets in the same step, otherwise sync; or async.

    An episode's last observation and info are in `infos["final_obs"]` and `infos["final_info"]`. With `takes_late`, a
    native vector may also reset late (`resets_late`): the caller then has to ignore its idle steps.
    """
    count = num_envs or env.num_envs or 1
    if (process := connected()) is not None:
        from rlx.envs.remote.remote_env import RemoteVector

        return RemoteVector(process, env, num_envs=count, takes_late=takes_late)
    if env.vectorization == "async":
        return _make_async(env, root=root, count=count)
    if env.vectorization == "auto" and not env.wrappers:
        native = _make_native(env, root=root, count=count, takes_late=takes_late)
        if native is not None:
            return native
    with quiet():
        return _checked(lambda: SyncVector(_makers(env, root, count)), env.id)


def is_batched(env: Env, *, root: Path) -> bool:
    """Return whether an environment is a class that steps its worlds as arrays, and is trained that way."""
    if (process := connected()) is not None:
        return process.ask("is batched", env=env.model_dump(mode="json")) is True
    creator = named_by(env.id, root=root)
    is_plain = env.vectorization == "auto" and not env.wrappers and is_worlds(creator)
    return is_plain and (is_batched_class(creator) or creator.metadata.get("autoreset_mode") in AUTORESET)


def _makers(env: Env, root: Path, count: int) -> list[Callable[[], gymnasium.Env[Any, Any]]]:
    return [functools.partial(make_env, env, root=root)] * count


def _checked(build: Callable[[], AnyVector], label: str) -> AnyVector:
    try:
        return build()
    except RuntimeError as error:  # Gymnasium raises it if the sub-environments' spaces differ
        raise ConfigError(
            f"`{label}` does not have the same spaces every time it is made",
            hint="the spaces may depend on kwargs, but not on random numbers",
        ) from error


class SyncVector(SyncVectorEnv[Any, Any]):
    """Gymnasium's sync vector with same-step resets: the same results, faster for observations that are plain arrays.

    The reset after an episode does not overwrite its last observation. Set `keeps_infos` to False to get only reward
    terms and the infos of ended episodes: simulators fill infos at every step, which takes time.
    """

    def __init__(self, makers: Sequence[Callable[[], gymnasium.Env[Any, Any]]]) -> None:
        super().__init__(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        self.keeps_infos = True
        space = self.single_observation_space
        self._is_plain = isinstance(space, gymnasium.spaces.Box) and bool(space.shape)
        self._foreseen = vector_acrobot.places(self.envs)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if not self._is_plain:
            return super().step(actions)
        rewards = np.empty(self.num_envs)
        terminated, truncated = np.empty((2, self.num_envs), dtype=np.bool_)
        infos: dict[str, Any] = {}
        shown: list[Any] = self._env_obs
        if self._foreseen:
            vector_acrobot.prepare(self._foreseen, actions)
        for index, (env, action) in enumerate(zip(self.envs, iterate(self.action_space, actions), strict=True)):
            shown[index], rewards[index], is_terminated, is_truncated, info = env.step(action)
            terminated[index] = is_terminated
            truncated[index] = is_truncated
            if is_terminated or is_truncated:
                infos = self._add_info(infos, {"final_obs": shown[index], "final_info": info}, index)
                shown[index], info = env.reset()
            if info and self.keeps_infos:
                infos = self._add_info(infos, info, index)
            elif TERMS in info:
                infos = self._add_info(infos, {TERMS: info[TERMS]}, index)
        observations = np.empty_like(self._observations)
        np.concatenate(shown, out=observations.reshape(-1, *observations.shape[2:]))
        return observations, rewards, terminated, truncated, infos

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        if "final_obs" in env_info:
            env_info = {**env_info, "final_obs": deepcopy(env_info["final_obs"])}
        return super()._add_info(vector_infos, _with_float_terms(env_info), env_num)


class AsyncVector(AsyncVectorEnv[Any, Any]):
    """Gymnasium's vector of processes; reward terms come out as they were."""

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        return super()._add_info(vector_infos, _with_float_terms(env_info), env_num)


def _with_float_terms(info: dict[str, Any]) -> dict[str, Any]:
    """Return an info whose reward terms are floats: Gymnasium takes the type of the first, and 0 would truncate .5."""
    return {**info, TERMS: terms_of(info)} if TERMS in info else info


class _FreshObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Copies observations: a worker sends the last one only after the reset that may overwrite it."""

    def observation(self, observation: Any) -> Any:
        return deepcopy(observation)


def _make_fresh(env: Env, root: Path) -> gymnasium.Env[Any, Any]:
    return _FreshObservations(make_env(env, root=root))


def _make_async(env: Env, *, root: Path, count: int) -> AnyVector:
    make_env(env, root=root).close()  # its errors show here, not in a half-made vector
    makers = [functools.partial(_make_fresh, env, root)] * count

    def build(shared_memory: bool) -> AnyVector:
        return AsyncVector(makers, shared_memory=shared_memory, autoreset_mode=AutoresetMode.SAME_STEP)

    with quiet():
        try:
            return _checked(lambda: build(True), env.id)
        except ValueError:  # a space that shared memory cannot hold
            return _checked(lambda: build(False), env.id)


def _make_native(env: Env, *, root: Path, count: int, takes_late: bool) -> AnyVector | None:
    """Make the environment's own vector version, if it has one that can reset within the step."""
    spec = named_by(env.id, root=root)
    if is_worlds(spec):
        worlds = NativeVector(make_worlds(env, spec, root=root, count=count))
        return worlds if takes_late or not resets_late(worlds) else None
    if not isinstance(spec, EnvSpec) or spec.vector_entry_point is None or spec.additional_wrappers:
        return None
    creator: Any = spec.vector_entry_point
    if isinstance(creator, str):
        try:
            creator = load_env_creator(creator)
        except ImportError:  # its package is absent; making a single environment explains that better
            return None
    declared = getattr(creator, "metadata", None)
    if isinstance(declared, dict) and declared.get("autoreset_mode") == AutoresetMode.NEXT_STEP:
        return None
    refuse_unknown(creator, env.kwargs, label=f"`{env.id}`", extra=("max_episode_steps",))
    try:
        with quiet():
            kwargs = deepcopy(env.kwargs)
            made = call_foreign(lambda: gymnasium.make_vec(spec, count, "vector_entry_point", **kwargs))
    except ForeignError as error:
        raise user_error(error.cause, root=root, doing=f"making `{env.id}`") from error.cause
    if made.metadata.get("autoreset_mode") in AUTORESET:
        return NativeVector(made)
    made.close()
    return None


def last_observation(infos: Mapping[str, Any], index: int) -> Any:
    """Return the final observation of the episode that has just ended in environment `index`."""
    return _element(infos["final_obs"], index)


def was_success(infos: Mapping[str, Any], index: int) -> float | None:
    """Return 1 or 0 if the environment reports whether its episode was a success, otherwise None."""
    final = infos.get("final_info")
    for key in SUCCESS_KEYS:
        if isinstance(final, dict) and key in final:
            mask = final.get(f"_{key}")
            if mask is None or mask[index]:
                return float(final[key][index])
    return None


def _element(batch: Any, index: int) -> Any:
    if isinstance(batch, dict):
        return {key: _element(part, index) for key, part in batch.items()}
    return batch[index]
