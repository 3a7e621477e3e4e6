"""Many environments at once, always with same-step autoreset, and the seeds they start from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import iterate

from rlx.config.schema import Env
from rlx.envs import acrobot
from rlx.envs.arguments import refuse_unknown
from rlx.envs.make import make_env, make_worlds, named_by, quiet
from rlx.envs.record import reward_terms
from rlx.envs.source import user_error
from rlx.envs.terms import TERMS
from rlx.envs.worlds import AUTORESET, AnyVector, NativeVector, is_worlds, resets_late
from rlx.errors import ConfigError

# Training starts from seeds in [2**30, 2**31): below 2**31 because simulators take 32-bit signed seeds, and the lower
# half is left to evaluation, so that no evaluation episode is ever a training episode.
FIRST_SEED = 2**30
_INDEX_BITS, _SEED_BITS = 10, 20
_SCRAMBLE = 0x2545F491  # odd, so multiplying by it is one to one modulo 2**30


def env_seeds(training_seed: int, count: int) -> list[int]:
    """Return the reset seeds of a training seed's environments, in [2**30, 2**31).

    For training seeds below 2**20 and up to 1024 environments no two of them ever coincide; beyond that they are
    drawn by NumPy's SeedSequence from the same range.
    """
    if 0 <= training_seed < 2**_SEED_BITS and count <= 2**_INDEX_BITS:
        first = training_seed << _INDEX_BITS
        return [FIRST_SEED + (first + index) * _SCRAMBLE % FIRST_SEED for index in range(count)]
    drawn = np.random.SeedSequence(training_seed).generate_state(count, np.uint32)
    return [FIRST_SEED + int(seed) % FIRST_SEED for seed in drawn]


def make_vector(env: Env, *, root: Path, num_envs: int | None = None, takes_late: bool = False) -> AnyVector:
    """Make what a config asks for: the native vector where it resets in the same step, else sync; async if asked.

    An episode's last observation and info are in `infos["final_obs"]` and `infos["final_info"]`. Who can tell the
    idle steps of a class that resets late (`resets_late`) from real ones gets it as it is, others get sync copies.
    """
    count = num_envs or env.num_envs or 1
    if env.vectorization == "async":
        return _make_async(env, root=root, count=count)
    if env.vectorization == "auto" and not env.wrappers:
        native = _make_native(env, root=root, count=count, takes_late=takes_late)
        if native is not None:
            return native
    with quiet():
        return _checked(lambda: SyncVector(_makers(env, root, count)), env.id)


def is_batched(env: Env, *, root: Path) -> bool:
    """Say whether an environment is a class that steps its worlds as arrays, and is trained as such."""
    creator = named_by(env.id, root=root)
    is_plain = env.vectorization == "auto" and not env.wrappers and is_worlds(creator)
    return is_plain and creator.metadata.get("autoreset_mode") in AUTORESET


def _makers(env: Env, root: Path, count: int) -> list[Callable[[], gymnasium.Env[Any, Any]]]:
    return [functools.partial(make_env, env, root=root)] * count


def _checked(build: Callable[[], AnyVector], label: str) -> AnyVector:
    try:
        return build()
    except RuntimeError as error:  # Gymnasium's word for sub-environments whose spaces differ
        raise ConfigError(
            f"`{label}` has not the same spaces every time it is made",
            hint="the spaces may depend on kwargs, not on chance",
        ) from error


class SyncVector(SyncVectorEnv[Any, Any]):
    """Gymnasium's sync vector with same-step resets: the same answers, faster where observations are plain arrays.

    The last observation is kept from being overwritten by the reset that follows it. Who reads no infos but reward
    terms and those of ended episodes sets `keeps_infos` to False: simulators fill them at every step.
    """

    def __init__(self, makers: Sequence[Callable[[], gymnasium.Env[Any, Any]]]) -> None:
        super().__init__(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        self.keeps_infos = True
        space = self.single_observation_space
        self._is_plain = isinstance(space, gymnasium.spaces.Box) and bool(space.shape)
        self._foreseen = acrobot.places(self.envs)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if not self._is_plain:
            return super().step(actions)
        rewards = np.empty(self.num_envs)
        terminated, truncated = np.empty((2, self.num_envs), dtype=np.bool_)
        infos: dict[str, Any] = {}
        shown: list[Any] = self._env_obs
        if self._foreseen:
            acrobot.prepare(self._foreseen, actions)
        for index, (env, action) in enumerate(zip(self.envs, iterate(self.action_space, actions), strict=True)):
            shown[index], rewards[index], ends, is_cut, info = env.step(action)
            terminated[index], truncated[index] = ends, is_cut
            if ends or is_cut:
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
    """Return an info whose reward terms are floats: the first value decides the type of all, and 0 would cut .5 off."""
    return {**info, TERMS: reward_terms(info)} if TERMS in info else info


class _FreshObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Copies observations: a worker sends the last one only after the reset that may overwrite it."""

    def observation(self, observation: Any) -> Any:
        return deepcopy(observation)


def _make_fresh(env: Env, root: Path) -> gymnasium.Env[Any, Any]:
    return _FreshObservations(make_env(env, root=root))


def _make_async(env: Env, *, root: Path, count: int) -> AnyVector:
    make_env(env, root=root).close()  # what is wrong with it shows here, not in a half-made vector
    makers = [functools.partial(_make_fresh, env, root)] * count

    def build(shared_memory: bool) -> AnyVector:
        return AsyncVector(makers, shared_memory=shared_memory, autoreset_mode=AutoresetMode.SAME_STEP)

    with quiet():
        try:
            return _checked(lambda: build(True), env.id)
        except ValueError:  # a space that shared memory cannot hold
            return _checked(lambda: build(False), env.id)


def _make_native(env: Env, *, root: Path, count: int, takes_late: bool) -> AnyVector | None:
    """Make the environment's own vector version, where it has one that can reset within the step."""
    spec = named_by(env.id, root=root)
    if is_worlds(spec):
        worlds = NativeVector(make_worlds(env, spec, root=root, count=count))
        return worlds if takes_late or not resets_late(worlds) else None
    if not isinstance(spec, EnvSpec) or spec.vector_entry_point is None or spec.additional_wrappers:
        return None
    creator = spec.vector_entry_point if callable(spec.vector_entry_point) else _creator(spec)
    declared = getattr(creator, "metadata", None)
    if creator is None or (isinstance(declared, dict) and declared.get("autoreset_mode") == AutoresetMode.NEXT_STEP):
        return None
    refuse_unknown(creator, env.kwargs, label=env.id, extra=("max_episode_steps",))
    try:
        with quiet():
            made = gymnasium.make_vec(spec, count, "vector_entry_point", **deepcopy(env.kwargs))
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        raise user_error(error, root=root, doing=f"making `{env.id}`") from error
    if made.metadata.get("autoreset_mode") in AUTORESET:
        return NativeVector(made)
    made.close()
    return None


def _creator(spec: EnvSpec) -> Callable[..., Any] | None:
    try:
        return load_env_creator(str(spec.vector_entry_point))
    except ImportError:  # its package is absent; the single environment says so in a better place
        return None
