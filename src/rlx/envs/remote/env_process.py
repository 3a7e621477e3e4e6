"""The learner's end of the process that runs a candidate's environments, wrappers and rewards.

While a process is `connected`, `make_env` and `make_vector` make their environments there.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx import errors
from rlx.envs.remote import wire
from rlx.errors import JobFailed

if TYPE_CHECKING:
    from rlx.config.schema import Env

STEP = b"STEP"
"""Begins a request for one step of a vector, and its answer if that has no infos."""
LARGEST_ANSWER = 2**31
LONGEST_TEXT = 4000
KNOWN_ERRORS = ("UsageError", "ConfigError", "NotFound", "Refused", "JobFailed", "EvidenceInvalid")
# How often each side looks for the other's answer before it sleeps. A look takes a few microseconds.
LEAST_LOOKS = 30
MOST_LOOKS = 240
SHORT_SLEEP_SECONDS = 0.001

_connected: list[EnvProcess] = []


def connected() -> EnvProcess | None:
    """Return the process that makes this process's environments; None if it makes them itself."""
    return _connected[-1] if _connected else None


class EnvProcess:
    """A connection to a process that makes, resets, steps and saves environments."""

    def __init__(self, connection: socket.socket, how_it_ended: Callable[[], str] = lambda: "ended") -> None:
        """Use a connection; `how_it_ended` describes the end of the process at its other end."""
        self._connection = connection
        self._receiver = Receiver(connection)
        self._how_it_ended = how_it_ended

    def connect(self) -> None:
        """Make this process's environments there from now on."""
        _connected.append(self)

    def disconnect(self) -> None:
        """Make this process's environments here again."""
        if self in _connected:
            _connected.remove(self)

    def close(self) -> None:
        """End the connection; the process ends with it."""
        self.disconnect()
        self._connection.close()

    def call(self, kind: str, tree: wire.Tree = None, **facts: Any) -> tuple[wire.Tree, dict[str, Any]]:
        """Send a request and return the answer's arrays and facts. Raise the error that the environment raised."""
        self._send(wire.pack(kind, tree, **facts))
        return self.answer(self.first_bytes())

    def send_file(self, kind: str, descriptor: int, **facts: Any) -> None:
        """Send a request with an open file, and wait for its answer."""
        self._send(wire.pack(kind, None, **facts))
        socket.send_fds(self._connection, [b"f"], [descriptor])
        self.answer(self.first_bytes())

    def begin_step(self, number: int, detail: int) -> None:
        """Ask a vector for a step; `detail` is a number that both ends know."""
        self._send(wire.LENGTHS.pack(STEP, number, detail))

    def first_bytes(self) -> bytes:
        """Wait for an answer and return its first bytes."""
        return self._receiver.first_bytes() or self._end()

    def answer(self, first: bytes) -> tuple[wire.Tree, dict[str, Any]]:
        """Return the rest of an answer."""
        try:
            kind, tree, facts = wire.read_rest(first, self._exactly, most_bytes=LARGEST_ANSWER)
        except wire.InvalidFrame as error:
            raise JobFailed(f"the environment's process sent an invalid answer: {error}", hint=_HINT) from None
        if kind == "failed":
            raise error_of(facts)
        return tree, facts

    def ask(self, kind: str, **facts: Any) -> Any:
        """Send a request and return the `value` of its answer."""
        return self.call(kind, **facts)[1].get("value")

    def make(self, kind: str, env: Env, **facts: Any) -> dict[str, Any]:
        """Make an environment there and return its description."""
        tree, _ = self.call(kind, env=env.model_dump(mode="json"), **facts)
        return _document(tree)

    def loaded_modules(self) -> dict[str, Any]:
        """Return the modules that the process loaded, as `module_recorder` records them."""
        return _document(self.call("modules")[0])

    def random_state(self) -> NDArray[np.uint8]:
        """Return the states of the process's global random generators, as bytes that only it reads."""
        return opaque(self.call("random state")[0])

    def set_random_state(self, state: NDArray[np.uint8]) -> None:
        """Put its global random generators back."""
        self.call("set random state", state)

    def seed_generators(self, seed: int) -> None:
        """Seed its global random generators."""
        self.call("seed", seed=seed)

    def _send(self, content: bytes) -> None:
        try:
            self._connection.sendall(content)
        except OSError:
            self._end()

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._connection.recv(min(size, 2**20))
            if not part:
                self._end()
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _end(self) -> Any:
        raise JobFailed(f"the environment's process {self._how_it_ended()}", hint=_HINT)


_HINT = "the seed's log shows its last output"


class Receiver:
    """Waits for the other end's messages: it looks for one several times before it sleeps.

    A wake-up takes longer than most steps, so it looks for about as long as the last messages took. It gives its core
    away between two looks, because the other side may need this very core. Messages that take long, or a machine
    without a free core, make it sleep soon: then looking only takes time from the others.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._looks = LEAST_LOOKS

    def first_bytes(self, size: int = wire.LENGTHS.size) -> bytes:
        """Wait for the first bytes of a message and return them; nothing if the other end is gone."""
        connection = self._connection
        content = b""
        for look in range(self._looks):
            try:
                content = connection.recv(size, socket.MSG_DONTWAIT)
                if look > LEAST_LOOKS:
                    self._looks = min(2 * look, MOST_LOOKS)
                break
            except BlockingIOError:
                os.sched_yield()
            except OSError:
                return b""
        try:
            if not content:
                content = self._sleep(size)
            while content and len(content) < size:
                part = connection.recv(size - len(content))
                content = content + part if part else b""
        except OSError:
            return b""
        return content

    def _sleep(self, size: int) -> bytes:
        """Sleep until the first bytes come; look for longer from now on if that was short, and else less."""
        began = time.perf_counter()
        content = self._connection.recv(size)
        if time.perf_counter() - began < SHORT_SLEEP_SECONDS:
            self._looks = min(2 * self._looks, MOST_LOOKS)
        else:
            self._looks = max(self._looks // 2, LEAST_LOOKS)
        return content


def opaque(tree: wire.Tree) -> NDArray[np.uint8]:
    """Return bytes that only the other process reads."""
    if not isinstance(tree, np.ndarray) or tree.dtype != np.uint8 or tree.ndim != 1:
        raise JobFailed("the environment's process sent something else than bytes", hint=_HINT)
    return tree.copy()


def _document(tree: wire.Tree) -> dict[str, Any]:
    """Return a JSON document that was sent as bytes, because it can be longer than a header."""
    import json

    try:
        document = json.loads(opaque(tree).tobytes())
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise JobFailed("the environment's process sent something else than a description", hint=_HINT)
    return document


def error_of(facts: dict[str, Any]) -> Exception:
    """Return the error that an answer describes: one of rlx's, or one with the name that it had there."""
    name = str(facts.get("error"))[:100]
    message = str(facts.get("message"))[:LONGEST_TEXT]
    hint = facts.get("hint")
    if hint is not None:
        hint = str(hint)[:LONGEST_TEXT]
    if name in KNOWN_ERRORS:
        kind: type[errors.RlxError] = getattr(errors, name)
        return kind(message, hint=hint)
    if facts.get("is_known"):
        return errors.RlxError(message, hint=hint)
    if not re.fullmatch(r"[A-Za-z_]\w{0,60}", name):
        name = "RuntimeError"
    # Built here, under the name that people know: nothing of the other process's class comes along.
    kind_there: type[RuntimeError] = type(name, (RuntimeError,), {"__module__": "builtins"})
    return kind_there(message)
