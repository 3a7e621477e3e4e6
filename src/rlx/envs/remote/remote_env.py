"""Environments of another process, as the learner sees them: one that is played, and a vector that is trained."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from rlx.config.schema import Env
from rlx.envs.remote import wire
from rlx.envs.remote.env_process import STEP, EnvProcess, error_of, opaque
from rlx.envs.remote.shared_arrays import ALIGNMENT, DTYPES, SharedArrays, layout, plain_leaves, rebuild
from rlx.envs.spaces import build
from rlx.errors import JobFailed

MOST_NAMES = 256
LONGEST_NAME = 200
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_HINT = "the environment and its wrappers must keep to their spaces"


class _Described:
    """What both kinds have: the process, a number there, and the facts that it told when it made the environment."""

    def _describe(self, process: EnvProcess, document: Mapping[str, Any]) -> None:
        self.process = process
        self.number = _whole(document.get("number"))
        self.module_files = {str(name): file for name, file in (document.get("modules") or {}).items()}
        self.max_episode_steps = None
        horizon = document.get("horizon")
        if type(horizon) is int and horizon > 0:
            self.max_episode_steps = horizon


class RemoteEnv(_Described, gymnasium.Env[Any, Any]):
    """One environment in another process. `step_together` steps several with a single exchange."""

    def __init__(self, process: EnvProcess, env: Env, *, render_mode: str | None = None) -> None:
        document = process.make("make env", env, render_mode=render_mode)
        self._describe(process, document)
        self.observation_space = build(document.get("observation_space"))
        self.action_space = build(document.get("action_space"))
        self.render_mode = render_mode
        self._prepared: Any = None
        if document.get("has_masks"):
            self.action_masks = self._action_masks

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._prepared = None
        tree, _ = self.process.call("reset env", number=self.number, seed=seed)
        return self._observation(tree), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self._prepared is None:
            step_together([self], [action])
        outcome = self._prepared
        self._prepared = None
        if isinstance(outcome, Exception):
            raise outcome
        observation, reward, terminated, truncated, info = outcome
        return self._observation(observation), reward, terminated, truncated, info

    def close(self) -> None:
        _close(self.process, self.number)

    def _action_masks(self) -> NDArray[np.bool_]:
        tree, _ = self.process.call("masks", numbers=[self.number])
        return _masks(tree, 1)[0]

    def _observation(self, tree: wire.Tree) -> Any:
        return _checked_observation(self.observation_space, tree)


def step_together(envs: Sequence[RemoteEnv], actions: Sequence[Any]) -> None:
    """Step environments of one process with one exchange. The next `step` of each returns its part."""
    process = envs[0].process
    tree, facts = process.call("step envs", tuple(actions), numbers=[env.number for env in envs])
    outcomes = facts.get("outcomes")
    if not isinstance(tree, tuple) or not isinstance(outcomes, list) or not len(tree) == len(outcomes) == len(envs):
        raise JobFailed("the environment's process did not answer for every environment", hint=_HINT)
    for env, observation, outcome in zip(envs, tree, outcomes, strict=True):
        env._prepared = _outcome(observation, outcome)


def _outcome(observation: wire.Tree, outcome: Any) -> Any:
    """Return the result of one step, or the exception that it raised."""
    if not isinstance(outcome, dict):
        raise JobFailed("the environment's process sent no outcome of a step", hint=_HINT)
    if "error" in outcome:
        return error_of(outcome)
    reward = outcome.get("reward")
    if type(reward) not in (int, float):
        raise JobFailed(f"the environment's reward is {str(reward)[:100]}, not a number", hint=_HINT)
    info = _scalars(outcome.get("info") or {})
    return observation, reward, bool(outcome.get("terminated")), bool(outcome.get("truncated")), info


class RemoteVector(_Described, VectorEnv[Any, Any, Any]):
    """A vector environment in another process, with actions, observations, rewards and flags in shared memory.

    Infos hold reward terms, successes and final observations; with `keeps_infos` also every other number per
    environment. The other process can write the shared memory at any time, so everything is copied before use.
    """

    def __init__(self, process: EnvProcess, env: Env, *, num_envs: int, takes_late: bool) -> None:
        document = process.make("make vector", env, num_envs=num_envs, takes_late=takes_late)
        self._describe(process, document)
        self.num_envs = num_envs
        self.single_observation_space = build(document.get("observation_space"))
        self.single_action_space = build(document.get("action_space"))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode(document.get("autoreset_mode"))}
        self.render_mode = None
        self._keeps_infos = False
        if document.get("has_single_envs"):  # a native vector has no `call`
            self.call = self._call
        self._share()

    @property
    def keeps_infos(self) -> bool:
        return self._keeps_infos

    @keeps_infos.setter
    def keeps_infos(self, value: bool) -> None:
        self._keeps_infos = value
        self.process.call("keep infos", number=self.number, value=value)

    def _share(self) -> None:
        """Make the shared memory and send it. Its size is sealed: a file that shrinks would crash its readers."""
        self._layout = layout(self.single_observation_space, self.single_action_space, self.num_envs)
        descriptor = os.memfd_create("rlx-env", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, max(self._layout.size, ALIGNMENT))
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
            self._shared = SharedArrays(mmap.mmap(descriptor, self._layout.size), self._layout)
            self.process.send_file("share", descriptor, number=self.number)
        finally:
            os.close(descriptor)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if seed is not None and not isinstance(seed, int):
            seed = [int(number) for number in seed]
        _, facts = self.process.call("reset vector", number=self.number, seed=seed)
        self._set_dtypes(facts.get("dtypes"))
        return self._observations(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        actions = np.asarray(actions)
        self.process.begin_step(self.number, self._shared.write_actions(actions))
        first = self.process.first_bytes()
        infos: dict[str, Any] = {}
        if first[:4] != STEP:
            tree, facts = self.process.answer(first)
            infos = self._infos(tree, facts)
        shared = self._shared
        return (
            self._observations(),
            shared.rewards.copy(),
            shared.terminated != 0,
            shared.truncated != 0,
            infos,
        )

    def close_extras(self, **kwargs: Any) -> None:
        _close(self.process, self.number)

    def capture(self) -> dict[str, Any]:
        """Return the environments' state as bytes that only the other process reads."""
        return {"process": opaque(self.process.call("capture", number=self.number)[0])}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Give the environments the state that `capture` returned."""
        _, facts = self.process.call("restore", np.asarray(state["process"], dtype=np.uint8), number=self.number)
        self._set_dtypes(facts.get("dtypes"))

    def _call(self, name: str, *_arguments: Any, **_keywords: Any) -> tuple[Any, ...]:
        if name != "action_masks":
            raise AttributeError(f"environments in another process have no `{name}`")
        tree, _ = self.process.call("masks", number=self.number)
        return tuple(_masks(tree, self.num_envs))

    def _set_dtypes(self, names: Any) -> None:
        is_sound = isinstance(names, list) and len(names) == len(self._layout.observations)
        if not is_sound or not all(name in DTYPES for name in names):
            raise JobFailed("the environment's observations are not numbers", hint=_HINT)
        self._shared.set_observation_dtypes(names)

    def _observations(self) -> Any:
        arrays = [view.copy() for view in self._shared.observations]
        for array, (_, leaf) in zip(arrays, plain_leaves(self.single_observation_space), strict=True):
            refuse_outside(array, leaf)
        return rebuild(self.single_observation_space, arrays)

    def _infos(self, tree: wire.Tree, facts: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(tree, dict):
            raise JobFailed("the environment's process sent invalid infos", hint=_HINT)
        infos = _columns(tree.get("infos", {}), self.num_envs)
        ended = facts.get("ended")
        if ended:
            finals = tree.get("final")
            indices = range(self.num_envs)
            if not isinstance(finals, tuple) or not isinstance(ended, list) or len(ended) != len(finals):
                raise JobFailed("the environment's process sent invalid final observations", hint=_HINT)
            if not all(type(index) is int and index in indices for index in ended):
                raise JobFailed("the environment's process sent invalid final observations", hint=_HINT)
            last = np.full(self.num_envs, None, dtype=object)
            mask = np.zeros(self.num_envs, dtype=np.bool_)
            for index, observation in zip(ended, finals, strict=True):
                last[index] = _checked_observation(self.single_observation_space, observation)
                mask[index] = True
            infos |= {"final_obs": last, "_final_obs": mask}
        return infos


def _close(process: EnvProcess, number: int) -> None:
    """Close an environment; if its process is gone, so is the environment."""
    try:
        process.call("close", number=number)
    except JobFailed:
        return


def _checked_observation(space: spaces.Space[Any], tree: wire.Tree) -> Any:
    """Return one observation of a space. Raise if it has another structure or shape."""
    arrays = []
    for path, leaf in plain_leaves(space):
        part = tree
        for key in path:
            is_part = (isinstance(part, dict) and key in part) or (isinstance(part, tuple) and key < len(part))
            if not is_part:
                raise JobFailed(f"the environment's observation lacks `{key}`", hint=_HINT)
            part = part[key]
        if not isinstance(part, np.ndarray) or part.shape != leaf.shape:
            shape = getattr(part, "shape", type(part).__name__)
            raise JobFailed(f"the environment's observation has shape {shape}, not {leaf.shape}", hint=_HINT)
        refuse_outside(part, leaf)
        arrays.append(part.copy() if part.ndim else part[()])
    return rebuild(space, arrays)


def refuse_outside(array: NDArray[Any], leaf: spaces.Space[Any]) -> None:
    """Raise if a choice is not one of its space's: networks use it as an index."""
    if isinstance(leaf, spaces.Discrete):
        low, high = leaf.start, leaf.start + leaf.n
    elif isinstance(leaf, spaces.MultiDiscrete):
        low, high = leaf.start, leaf.start + leaf.nvec
    else:
        return
    if array.dtype.kind not in "iub" or (array < low).any() or (array >= high).any():
        raise JobFailed(f"the environment's observation is not in {leaf}", hint=_HINT)


def _columns(tree: Any, count: int) -> dict[str, Any]:
    """Return infos with one number per environment, also inside dicts."""
    if not isinstance(tree, dict) or len(tree) > MOST_NAMES or any(len(name) > LONGEST_NAME for name in tree):
        raise JobFailed("the environment's process sent too many infos", hint=_HINT)
    columns: dict[str, Any] = {}
    for name, part in tree.items():
        if isinstance(part, dict):
            columns[name] = _columns(part, count)
        elif isinstance(part, np.ndarray) and part.shape == (count,):
            columns[name] = part
        else:
            raise JobFailed("the environment's process sent infos of another shape", hint=_HINT)
        if name.startswith("_") and isinstance(part, np.ndarray):
            columns[name] = part != 0  # a mask
    return columns


def _scalars(info: Any) -> dict[str, Any]:
    """Return the numbers of one environment's info, with one level of dicts."""
    if not isinstance(info, dict) or len(info) > MOST_NAMES:
        raise JobFailed("the environment's process sent invalid infos", hint=_HINT)
    scalars: dict[str, Any] = {}
    for name, value in info.items():
        if isinstance(value, dict):
            scalars[name] = _scalars(value)
        elif type(value) in (bool, int, float):
            scalars[name] = value
    return scalars


def _masks(tree: wire.Tree, count: int) -> list[NDArray[np.bool_]]:
    if not isinstance(tree, tuple) or len(tree) != count or not all(isinstance(mask, np.ndarray) for mask in tree):
        raise JobFailed("the environment's process sent invalid action masks", hint=_HINT)
    return [np.asarray(mask).astype(np.float64).reshape(-1) != 0 for mask in tree]


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise JobFailed("the environment's process did not say which environment it made", hint=_HINT)
    return value
