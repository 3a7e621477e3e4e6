"""A policy in a separate process: it receives observations and answers actions. Anything else is its failure.

The policy's process has its own sandbox inside the evaluator's. It has no network, may write only a scratch folder,
and cannot reach the evaluator's folder, its seeds or its results.

Not covered: a policy can use everything that its observations reveal.
"""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs.remote import wire
from rlx.errors import EvidenceInvalid, Refused
from rlx.evaluate.checkpoint_evaluation import evaluation_command, python_argv
from rlx.evaluate.policy import Batch, Masks, count_rows
from rlx.sandbox.popen import PIPE, SandboxedProcess, last_line, run
from rlx.sandbox.spec import SandboxSpec, system_reads

if TYPE_CHECKING:
    from gymnasium import Space

_ROUNDING = 1e-6
_LAST_SECONDS = 1.0
EXTRA_ANSWER_BYTES = 2**20


@dataclass(frozen=True)
class PolicyServerSpec:
    """How to load a policy (`path/file.py:load` in the folder `root`), and how much it may use.

    `hidden` are paths that it must not be able to read. `scratch` is a folder that it may write.
    """

    reference: str
    root: Path
    scratch: Path
    hidden: tuple[Path, ...] = ()
    load_seconds: float = 120.0
    answer_seconds: float = 20.0
    memory_bytes: int = 16 * 2**30
    file_bytes: int = 2**28
    processes: int = 64
    may_go_unenforced: bool = False

    def sandbox(self, checkpoint: Path) -> SandboxSpec:
        """Return the policy's sandbox: it reads its own code and its checkpoint."""
        return SandboxSpec(
            reads=(*system_reads(), self.root, checkpoint),
            writes=(self.scratch,),
            memory_bytes=self.memory_bytes,
            file_bytes=self.file_bytes,
            processes=self.processes,
        )


class PolicyFailed(EvidenceInvalid):
    """A policy that did not answer, or answered something that is not an action."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the policy failed: {problem}", hint="the failure counts as the policy's own")


class PolicyClient:
    """A policy whose code runs in a separate process."""

    def __init__(self, process: SandboxedProcess, space: Space[Any], server: PolicyServerSpec, log: IO[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._space = space
        self._server = server
        self._log = log
        self._requests = process.stdin.fileno()
        self._answers = process.stdout.fileno()
        for descriptor in (self._requests, self._answers):
            os.set_blocking(descriptor, False)
        self._deadline = time.monotonic() + server.load_seconds
        self._batch_spaces: dict[int, Space[Any]] = {}
        self._receive("ready")

    def predict(self, observations: Batch, *, deterministic: bool = True, masks: Masks = None) -> Any:
        """Return the actions that the policy answers, checked against the action space."""
        space = self._batch_space(count_rows(observations))
        tree = {"observations": observations}
        if masks is not None:
            tree["masks"] = masks
        self._send(wire.pack("act", tree, deterministic=deterministic))
        actions = self._receive("actions", most_bytes=_largest(space))
        return _checked(actions, space, where="its answer")

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Tell the policy which rows begin a new episode."""
        self._send(wire.pack("reset", finished))
        self._receive("done")

    def _batch_space(self, rows: int) -> Space[Any]:
        from gymnasium.vector.utils import batch_space

        if rows not in self._batch_spaces:
            self._batch_spaces[rows] = batch_space(self._space, rows)
        return self._batch_spaces[rows]

    def _send(self, frame: bytes) -> None:
        # An answer before its request could be an answer to the next one that the policy prepared in advance.
        if select.select([self._answers], [], [], 0)[0] and os.read(self._answers, 1):
            raise self._failure("it answers more than it was asked")
        self._deadline = time.monotonic() + self._server.answer_seconds
        unsent = memoryview(frame)
        while unsent:
            self._wait([], [self._requests])
            try:
                unsent = unsent[os.write(self._requests, unsent) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended() from None

    def _receive(self, expected: str, *, most_bytes: int = 0) -> Any:
        try:
            kind, tree, facts = wire.read(self._read_exactly, most_bytes=most_bytes)
        except wire.InvalidFrame as error:
            raise self._failure(f"its answer is garbled: {error}") from None
        if kind == "failed":
            raise PolicyFailed(f"it raised {' '.join(str(facts.get('says')).split())[:300]}")
        if kind != expected:
            raise self._failure(f"it answered `{kind[:20]}` instead of `{expected}`")
        return tree

    def _read_exactly(self, count: int) -> bytes:
        content = bytearray()
        while len(content) < count:
            self._wait([self._answers], [])
            try:
                block = os.read(self._answers, count - len(content))
            except BlockingIOError:
                continue
            if not block:
                raise self._ended()
            content += block
        return bytes(content)

    def _wait(self, readers: list[int], writers: list[int]) -> None:
        seconds = self._deadline - time.monotonic()
        if seconds <= 0 or not any(select.select(readers, writers, [], seconds)):
            raise self._failure("it did not answer in time")

    def _ended(self) -> PolicyFailed:
        """Return the failure of a process that ended. Wait a moment for its exit code."""
        deadline = time.monotonic() + _LAST_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_LAST_SECONDS / 100)
        return self._failure(f"it ended with exit code {self._process.returncode}")

    def _failure(self, problem: str) -> PolicyFailed:
        line = last_line(self._log)
        if line:
            problem += f" ({line[:200]})"
        return PolicyFailed(problem)


@contextlib.contextmanager
def serve_policy(server: PolicyServerSpec, checkpoint: Path, space: Space[Any]) -> Iterator[PolicyClient]:
    """Start a policy in its sandbox. Kill it with all its descendants when the block ends."""
    spec = server.sandbox(checkpoint)
    for path in server.hidden:
        if spec.can_read(path):
            raise Refused(
                f"the policy could read {path}, which it must not see",
                hint="move it out of the folders that every sandbox can read",
            )
    command = evaluation_command(
        python_argv("rlx.evaluate.policy_server.policy_server", server.reference, str(server.root), str(checkpoint)),
        spec,
        cwd=server.root,
        home=server.scratch,
        may_go_unenforced=server.may_go_unenforced,
        RLX_ROOT=str(server.root),
    )
    with tempfile.TemporaryFile() as log, run(command, stdin=PIPE, stdout=PIPE, stderr=log) as process:
        yield PolicyClient(process, space, server, log)


def _largest(space: Space[Any]) -> int:
    """Return how many bytes actions of a space can take, in the widest numbers."""
    from gymnasium.vector.utils import create_empty_array

    return 8 * _count(create_empty_array(space, n=1)) + EXTRA_ANSWER_BYTES


def _count(tree: Any) -> int:
    if isinstance(tree, dict):
        return sum(map(_count, tree.values()))
    if isinstance(tree, tuple):
        return sum(map(_count, tree))
    return int(np.asarray(tree).size)


def _checked(value: Any, space: Space[Any], *, where: str) -> Any:
    """Return an answer as actions of the space. Raise the policy's failure if it is not one."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict) or set(value) != set(space.spaces):
            raise PolicyFailed(f"{where} is not made of {', '.join(map(str, space.spaces))}")
        return {key: _checked(value[key], part, where=f"{where}, {key}") for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple) or len(value) != len(space.spaces):
            raise PolicyFailed(f"{where} is not made of {len(space.spaces)} parts")
        return tuple(_checked(item, part, where=where) for item, part in zip(value, space.spaces, strict=True))
    return _leaf(value, space, where=where)


def _leaf(value: Any, space: Space[Any], *, where: str) -> NDArray[Any]:
    from gymnasium import spaces

    if not isinstance(value, np.ndarray) or value.shape != space.shape:
        shape = getattr(value, "shape", type(value).__name__)
        raise PolicyFailed(f"{where} has the shape {shape}, the actions have {space.shape}")
    assert space.dtype is not None
    if not np.can_cast(value.dtype, space.dtype, casting="same_kind"):
        raise PolicyFailed(f"{where} has the type {value.dtype}, the actions have {space.dtype}")
    if not np.isfinite(value).all():
        raise PolicyFailed(f"{where} is not finite")
    if isinstance(space, spaces.Box):
        return _within(value, space, where=where)
    actions = value.astype(space.dtype)
    if not space.contains(actions):
        raise PolicyFailed(f"{where} is not in the action space {space}")
    return actions


def _within(value: NDArray[Any], space: Any, *, where: str) -> NDArray[Any]:
    """Return actions within a space's bounds. Values that only rounding put outside are clipped."""
    wide = value.astype(np.float64)
    slack = _ROUNDING * np.maximum(1.0, np.abs(wide))
    if (wide < space.low - slack).any() or (wide > space.high + slack).any():
        worst = float(wide.flat[int(np.argmax(np.abs(wide)))])
        raise PolicyFailed(f"{where} is outside the action space (up to {worst:g})")
    actions: NDArray[Any] = np.clip(wide, space.low, space.high).astype(space.dtype)
    return actions
