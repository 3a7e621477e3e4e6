"""The process that runs a study's environments, wrappers and rewards, apart from the learner.

It runs as `python -P -m rlx.train.env_server ROOT` in a sandbox of its own; stdin is a socket to the learner. It does
what `EnvProcess` asks and ends with the connection. The code of a candidate runs here and may do anything to this
process, so nothing that it sends is trusted: see `rlx.envs.remote`.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlx.config.schema import Env
from rlx.envs import snapshot, spaces
from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.global_rng import GlobalGenerators
from rlx.envs.import_object import where
from rlx.envs.make import changes_only_reward, horizon, make_env
from rlx.envs.record_episodes import SUCCESS_KEYS
from rlx.envs.remote import wire
from rlx.envs.remote.env_process import LONGEST_TEXT, STEP, Receiver
from rlx.envs.remote.shared_arrays import SharedArrays, layout, parts_of
from rlx.envs.reward_terms import TERMS, terms_of
from rlx.envs.vector import SyncVector, is_batched, last_observation, make_vector
from rlx.errors import RlxError
from rlx.evaluate.env_sources import module_files
from rlx.runs import module_recorder
from rlx.runs.checkpoints import state_tree

LARGEST_REQUEST = 2**31
_STEPPED = wire.LENGTHS.pack(STEP, 0, 0)


def main(argv: list[str]) -> int:
    """Serve the learner on the socket at stdin, with the project in the folder `argv[0]`."""
    root = Path(argv[0])
    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    sys.path.insert(0, str(root))
    server = EnvServer(connection, root)
    receiver = Receiver(connection)
    while first := receiver.first_bytes():
        server.serve(first)
    return 0


class EnvServer:
    """The environments of one learner, by number."""

    def __init__(self, connection: socket.socket, root: Path) -> None:
        self._connection = connection
        self._root = root
        self._envs: dict[int, Any] = {}
        self._vectors: dict[int, _Vector] = {}
        self._count = 0
        self._calls: dict[str, Callable[..., bytes]] = {
            "make env": self._make_env,
            "make vector": self._make_vector,
            "share": self._share,
            "keep infos": self._keep_infos,
            "reset env": self._reset_env,
            "reset vector": self._reset_vector,
            "step envs": self._step_envs,
            "masks": self._masks,
            "close": self._close,
            "capture": self._capture,
            "restore": self._restore,
            "probe": self._probe,
            "is batched": lambda _, env: _value(is_batched(Env(**env), root=self._root)),
            "changes only reward": lambda _, name: _value(changes_only_reward(name, root=self._root)),
            "random state": lambda _: wire.pack("bytes", _encoded(GlobalGenerators.now().document())),
            "set random state": self._set_random_state,
            "seed": self._seed,
            "modules": lambda _: wire.pack("bytes", _json(module_recorder.modules())),
        }

    def serve(self, first: bytes) -> None:
        """Read the rest of a request, do it, and answer."""
        magic, number, detail = wire.LENGTHS.unpack(first)
        try:
            if magic == STEP:
                answer = call_foreign(lambda: self._vectors[number].step(detail))
            else:
                kind, tree, facts = wire.read_rest(first, self._exactly, most_bytes=LARGEST_REQUEST)
                answer = call_foreign(lambda: self._calls[kind](tree, **facts))
        except (RlxError, ForeignError) as error:
            answer = wire.pack("failed", **self._failure(error))
        self._connection.sendall(answer)

    def _failure(self, error: RlxError | ForeignError) -> dict[str, Any]:
        """Describe an error; the traceback of the project's code goes into the seed's log."""
        if isinstance(error, RlxError):
            facts = {"error": type(error).__name__, "message": error.message[:LONGEST_TEXT], "is_known": True}
            return {**facts, "hint": error.hint}
        cause = error.cause
        traceback.print_exception(cause)
        message = str(cause)[:LONGEST_TEXT]
        place = where(cause, root=self._root)
        if place:
            message += f" ({place})"
        return {"error": type(cause).__name__, "message": message}

    def _exactly(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            part = self._connection.recv(min(size - len(content), 2**20))
            if not part:
                sys.exit(0)  # the learner is gone
            content += part
        return bytes(content)

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _make_env(self, _: Any, env: dict[str, Any], render_mode: str | None) -> bytes:
        made = make_env(Env(**env), root=self._root, render_mode=render_mode)
        number = self._number()
        self._envs[number] = made
        document = {
            "number": number,
            "observation_space": spaces.describe(made.observation_space),
            "action_space": spaces.describe(made.action_space),
            "horizon": horizon(made),
            "has_masks": made.has_wrapper_attr("action_masks"),
            "modules": module_files(made),
        }
        return wire.pack("bytes", _json(document))

    def _make_vector(self, _: Any, env: dict[str, Any], num_envs: int, takes_late: bool) -> bytes:
        made = make_vector(Env(**env), root=self._root, num_envs=num_envs, takes_late=takes_late)
        if isinstance(made, SyncVector):
            made.keeps_infos = False
        number = self._number()
        self._vectors[number] = _Vector(made)
        document = {
            "number": number,
            "observation_space": spaces.describe(made.single_observation_space),
            "action_space": spaces.describe(made.single_action_space),
            "autoreset_mode": made.metadata["autoreset_mode"].value,
            "has_single_envs": hasattr(made, "call"),
            "horizon": getattr(made.unwrapped, "max_episode_steps", None),
        }
        return wire.pack("bytes", _json(document))

    def _share(self, _: Any, number: int) -> bytes:
        _, descriptors, _, _ = socket.recv_fds(self._connection, 1, 1)
        self._vectors[number].share(descriptors[0])
        os.close(descriptors[0])
        return wire.pack("done")

    def _keep_infos(self, _: Any, number: int, value: bool) -> bytes:
        vector = self._vectors[number]
        vector.keeps_infos = value
        if isinstance(vector.env, SyncVector):
            vector.env.keeps_infos = value
        return wire.pack("done")

    def _reset_env(self, _: Any, number: int, seed: int | None) -> bytes:
        observation, _info = self._envs[number].reset(seed=seed)
        return wire.pack("observation", observation)

    def _reset_vector(self, _: Any, number: int, seed: Any) -> bytes:
        vector = self._vectors[number]
        observations, _infos = vector.env.reset(seed=seed)
        vector.announce(observations)
        vector.show(observations)
        return wire.pack("observations", dtypes=vector.dtypes)

    def _step_envs(self, actions: Any, numbers: list[int]) -> bytes:
        outcomes: list[dict[str, Any]] = []
        shown = []
        for number, action in zip(numbers, actions, strict=True):
            env = self._envs[number]
            try:
                outcome = call_foreign(lambda: env.step(_own_action(action)))  # noqa: B023  called at once
            except (RlxError, ForeignError) as error:
                outcomes.append(self._failure(error))
                shown.append(np.zeros(0))
                continue
            observation, reward, terminated, truncated, info = outcome
            shown.append(observation)
            outcomes.append(
                {"reward": float(reward), "terminated": bool(terminated), "truncated": bool(truncated),
                 "info": _numbers_of(info)}
            )  # fmt: skip
        return wire.pack("stepped", tuple(shown), outcomes=outcomes)

    def _masks(self, _: Any, number: int = 0, numbers: tuple[int, ...] = ()) -> bytes:
        if number:
            masks = self._vectors[number].env.call("action_masks")
        else:
            masks = [self._envs[one].get_wrapper_attr("action_masks")() for one in numbers]
        return wire.pack("masks", tuple(np.asarray(mask) for mask in masks))

    def _close(self, _: Any, number: int) -> bytes:
        if number in self._envs:
            self._envs.pop(number).close()
        elif number in self._vectors:
            self._vectors.pop(number).env.close()
        return wire.pack("done")

    def _capture(self, _: Any, number: int) -> bytes:
        vector = self._vectors[number]
        state = {"env": snapshot.capture(vector.env), "dtypes": vector.dtypes}
        return wire.pack("bytes", _encoded(state))

    def _restore(self, content: Any, number: int) -> bytes:
        vector = self._vectors[number]
        state = _decoded(content)
        snapshot.restore(vector.env, state["env"])
        vector.set_dtypes(state["dtypes"])
        return wire.pack("done", dtypes=vector.dtypes)

    def _probe(self, _: Any, env: dict[str, Any], takes_late: bool) -> bytes:
        settings = Env(**env)
        probed = snapshot.probe(lambda: make_vector(settings, root=self._root, num_envs=1, takes_late=takes_late))
        return wire.pack("probed", is_exact=probed.is_exact, missing=probed.missing[:LONGEST_TEXT])

    def _set_random_state(self, content: Any) -> bytes:
        GlobalGenerators.read(_decoded(content)).put_back()
        return wire.pack("done")

    def _seed(self, _: Any, seed: int) -> bytes:
        GlobalGenerators.seed(seed)
        return wire.pack("done")


class _Vector:
    """A vector environment and the memory that it shares with the learner."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.keeps_infos = False
        self.dtypes: list[str] = []
        self._layout = layout(env.single_observation_space, env.single_action_space, env.num_envs)

    def share(self, descriptor: int) -> None:
        """Map the learner's shared memory."""
        self._shared = SharedArrays(mmap.mmap(descriptor, self._layout.size), self._layout)

    def announce(self, observations: Any) -> None:
        """Choose the dtypes of shared observations: those that the environment uses."""
        parts = parts_of(self.env.single_observation_space, observations)
        self.set_dtypes([part.dtype.newbyteorder("<").str for part in parts])

    def set_dtypes(self, names: list[str]) -> None:
        """Use these dtypes."""
        self.dtypes = list(names)
        self._shared.set_observation_dtypes(self.dtypes)

    def show(self, observations: Any) -> None:
        """Write observations where the learner reads them."""
        parts = parts_of(self.env.single_observation_space, observations)
        for view, part in zip(self._shared.observations, parts, strict=True):
            view[...] = part

    def step(self, dtype: int) -> bytes:
        """Step with the shared actions, of the dtype with this number, and return the answer."""
        actions = self._shared.actions(dtype).copy()
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self.show(observations)
        self._shared.rewards[...] = rewards
        self._shared.terminated[...] = terminated
        self._shared.truncated[...] = truncated
        if not infos:
            return _STEPPED
        tree: dict[str, Any] = {"infos": self._columns(infos)}
        ended: list[int] = []
        if "final_obs" in infos:
            ended = np.flatnonzero(np.logical_or(terminated, truncated)).tolist()
            tree["final"] = tuple(last_observation(infos, index) for index in ended)
        if not tree["infos"] and not ended:
            return _STEPPED
        return wire.pack("stepped", tree, ended=ended)

    def _columns(self, infos: Mapping[str, Any]) -> dict[str, Any]:
        """Return the infos that are one number per environment: reward terms and successes, or all of them."""
        columns: dict[str, Any] = {}
        for key, values in infos.items():
            name = str(key)
            if name in ("final_obs", "_final_obs"):
                continue
            if isinstance(values, Mapping):
                inner = self._columns(values) if name == "final_info" else self._terms(name, values)
                if inner or name == "final_info":
                    columns[name] = inner
            elif self._is_wanted(name):
                column = _column(values, self.env.num_envs)
                if column is not None:
                    columns[name] = column
        return columns

    def _terms(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        if name != TERMS and not self.keeps_infos:
            return {}
        columns = {str(key): _column(value, self.env.num_envs) for key, value in values.items()}
        return {key: column for key, column in columns.items() if column is not None}

    def _is_wanted(self, name: str) -> bool:
        plain = name.removeprefix("_")
        return self.keeps_infos or plain in (TERMS, "final_info", *SUCCESS_KEYS)


def _column(values: Any, count: int) -> Any:
    """Return one number per environment, or None if these are not numbers."""
    array = np.asarray(values)
    if array.shape != (count,):
        return None
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind != "O":
        return None
    numbers = np.zeros(count)
    for index, value in enumerate(array):
        if isinstance(value, (bool, int, float, np.generic)):
            numbers[index] = float(value)
    return numbers


def _numbers_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reward terms and the success of one step."""
    numbers: dict[str, Any] = {}
    terms = terms_of(info)
    if terms:
        numbers[TERMS] = terms
    for key in SUCCESS_KEYS:
        if info.get(key) is not None:
            numbers[key] = bool(info[key])
    return numbers


def _own_action(action: Any) -> Any:
    """Return an action that the environment may keep and change."""
    if isinstance(action, dict):
        return {key: _own_action(part) for key, part in action.items()}
    if isinstance(action, tuple):
        return tuple(_own_action(part) for part in action)
    return action.copy() if action.ndim else action[()]


def _value(value: Any) -> bytes:
    return wire.pack("value", value=value)


def _json(document: Any) -> Any:
    return np.frombuffer(json.dumps(document).encode(), np.uint8)


def _encoded(state: Any) -> Any:
    """Return a state as bytes that `_decoded` reads; nothing in them is executed."""
    document, arrays = state_tree.pack(state)
    text = json.dumps(document).encode()
    frame = wire.pack("state", (np.frombuffer(text, np.uint8), *arrays.values()))
    return np.frombuffer(frame, np.uint8)


def _decoded(content: Any) -> Any:
    stream = io.BytesIO(np.asarray(content).tobytes())
    first = stream.read(wire.LENGTHS.size)
    _, tree, _ = wire.read_rest(first, stream.read, most_bytes=LARGEST_REQUEST, most_header=LARGEST_REQUEST)
    text, *arrays = tree
    # `state_tree` numbers its arrays in the order in which it meets them.
    named = {str(index): array.copy() for index, array in enumerate(arrays)}
    return state_tree.unpack(json.loads(text.tobytes()), named)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
