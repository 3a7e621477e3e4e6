"""A policy in another process: it gets observations, it answers actions, and whatever else it does is its own failure.

It runs in a box of its own inside the evaluator's: without network, with a scratch folder as the only place to write,
and without a way to the evaluator's folder, its seeds or its results.

What is not covered: a policy is told nothing about an episode but its observations; what those give away, it can use.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import rlx
from rlx import sandbox
from rlx.errors import EvidenceInvalid, Refused
from rlx.evaluate import wire
from rlx.evaluate.policy import Batch, rows_of
from rlx.evaluate.variables import plain_environment
from rlx.sandbox import Box

if TYPE_CHECKING:
    from gymnasium import Space

_CODE = "import sys; sys.path.append(sys.argv.pop(1)); from rlx.evaluate.serving import main; main(sys.argv[1:])"
_ROUNDING = 1e-6
_TAIL_BYTES = 4096
_LAST_SECONDS = 1.0
READY_BYTES = 0
MORE_THAN_THE_ACTIONS = 2**20


@dataclass(frozen=True)
class Service:
    """How a policy is loaded: `path/file.py:load` in the folder `root`, and how long it may take.

    `hidden` is what it must not be able to read; `scratch` is a folder it may write.
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


class PolicyFailed(EvidenceInvalid):
    """A policy that did not do its part: no answer, or one that is no action."""


class ServedPolicy:
    """A policy whose code runs in a process of its own."""

    def __init__(self, process: sandbox.Program, space: Space[Any], service: Service, words: IO[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._space, self._service, self._words = process, space, service, words
        self._requests, self._answers = process.stdin.fileno(), process.stdout.fileno()
        for descriptor in (self._requests, self._answers):
            os.set_blocking(descriptor, False)
        self._deadline = time.monotonic() + service.load_seconds
        self._batched: dict[int, Space[Any]] = {}
        self._expect("ready", most_bytes=READY_BYTES)

    def predict(
        self, observations: Batch, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> Any:
        """Return the actions it answers, checked against the action space."""
        space = self._space_of(rows_of(observations))
        tree = {"observations": observations, **({} if masks is None else {"masks": masks})}
        self._ask(wire.pack("act", tree, deterministic=deterministic))
        actions = self._expect("actions", most_bytes=_largest(space))
        return _checked(actions, space, where="its answer")

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Tell it which rows begin a new episode."""
        self._ask(wire.pack("reset", finished))
        self._expect("done", most_bytes=READY_BYTES)

    def _space_of(self, rows: int) -> Space[Any]:
        from gymnasium.vector.utils import batch_space

        if rows not in self._batched:
            self._batched[rows] = batch_space(self._space, rows)
        return self._batched[rows]

    def _ask(self, frame: bytes) -> None:
        if select.select([self._answers], [], [], 0)[0] and os.read(self._answers, 1):
            raise self._failure("it says more than it was asked")
        self._deadline = time.monotonic() + self._service.answer_seconds
        view = memoryview(frame)
        while view:
            self._wait(writes=True)
            try:
                view = view[os.write(self._requests, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._failure("it ended") from None

    def _expect(self, kind: str, *, most_bytes: int) -> Any:
        try:
            told, tree, about = wire.read(self._exactly, most_bytes=most_bytes)
        except wire.Garbled as error:
            raise self._failure(f"its answer is garbled: {error}") from None
        if told == "failed":
            raise self._failure(f"it raised {' '.join(str(about.get('says')).split())[:300]}")
        if told != kind:
            raise self._failure(f"it answered `{told[:20]}` where `{kind}` was due")
        return tree

    def _exactly(self, count: int) -> bytes:
        content = bytearray()
        while len(content) < count:
            self._wait(writes=False)
            try:
                block = os.read(self._answers, count - len(content))
            except BlockingIOError:
                continue
            if not block:
                raise self._failure("it ended")
            content += block
        return bytes(content)

    def _wait(self, *, writes: bool) -> None:
        left = self._deadline - time.monotonic()
        ends: tuple[list[int], list[int]] = ([], [self._requests]) if writes else ([self._answers], [])
        if left <= 0 or not any(select.select(*ends, [], left)):
            raise self._failure("it did not answer in time")

    def _failure(self, what: str) -> PolicyFailed:
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - _TAIL_BYTES))
        last = self._words.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        ended = f" with exit code {self._exit_code()}" if what == "it ended" else ""
        said = f" ({last[0][:200]})" if last and not what.startswith("it raised") else ""
        return PolicyFailed(f"the policy failed: {what}{ended}{said}", hint="the failure counts as the policy's own")

    def _exit_code(self) -> int | None:
        deadline = time.monotonic() + _LAST_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_LAST_SECONDS / 100)
        return self._process.returncode


@contextlib.contextmanager
def served(service: Service, checkpoint: Path, space: Space[Any]) -> Iterator[ServedPolicy]:
    """Start a policy in its box, and kill it with everything it started when the block ends."""
    box = _box(service, checkpoint)
    for one in service.hidden:
        if box.shows(one):
            raise Refused(f"the policy could read {one}, which it must not see", hint="it lies below a system folder")
    python = [sys.executable, "-s", "-P", "-B", "-c", _CODE, str(Path(rlx.__file__).parents[1])]
    environment = {**plain_environment(), **sandbox.private(service.scratch), "RLX_ROOT": str(service.root)}
    with tempfile.TemporaryFile() as words:
        process = sandbox.start(
            [*python, service.reference, str(service.root), str(checkpoint)], box, env=environment, cwd=service.root,
            stdin=sandbox.PIPE, stdout=sandbox.PIPE, stderr=words, may_go_unenforced=service.may_go_unenforced,
        )  # fmt: skip
        try:
            yield ServedPolicy(process, space, service, words)
        finally:
            sandbox.kill(process)
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]


def _box(service: Service, checkpoint: Path) -> Box:
    return Box(
        reads=(*sandbox.system_reads(), service.root, checkpoint),
        writes=(service.scratch,),
        memory_bytes=service.memory_bytes,
        file_bytes=service.file_bytes,
        processes=service.processes,
    )


def _largest(space: Space[Any]) -> int:
    """Return how many bytes actions of a space can have, in the widest numbers."""
    from gymnasium.vector.utils import create_empty_array

    return 8 * _count(create_empty_array(space, n=1)) + MORE_THAN_THE_ACTIONS


def _count(tree: Any) -> int:
    if isinstance(tree, dict):
        return sum(map(_count, tree.values()))
    return sum(map(_count, tree)) if isinstance(tree, tuple) else int(np.asarray(tree).size)


def _checked(value: Any, space: Space[Any], *, where: str) -> Any:
    """Return an answer as actions of the space; one that is none is the policy's failure."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict) or set(value) != set(space.spaces):
            raise PolicyFailed(f"the policy failed: {where} is not made of {', '.join(map(str, space.spaces))}")
        return {key: _checked(value[key], part, where=f"{where}, {key}") for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple) or len(value) != len(space.spaces):
            raise PolicyFailed(f"the policy failed: {where} is not made of {len(space.spaces)} parts")
        return tuple(_checked(one, part, where=where) for one, part in zip(value, space.spaces, strict=True))
    return _leaf(value, space, where=where)


def _leaf(value: Any, space: Space[Any], *, where: str) -> NDArray[Any]:
    from gymnasium import spaces

    if not isinstance(value, np.ndarray) or value.shape != space.shape:
        found = value.shape if isinstance(value, np.ndarray) else type(value).__name__
        raise PolicyFailed(f"the policy failed: {where} has the shape {found}, the actions have {space.shape}")
    assert space.dtype is not None
    if not np.can_cast(value.dtype, space.dtype, casting="same_kind"):
        raise PolicyFailed(f"the policy failed: {where} has the type {value.dtype}, the actions have {space.dtype}")
    if not np.isfinite(value).all():
        raise PolicyFailed(f"the policy failed: {where} is not finite")
    if isinstance(space, spaces.Box):
        return _within(value, space, where=where)
    actions = value.astype(space.dtype)
    if not space.contains(actions):
        raise PolicyFailed(f"the policy failed: {where} is not in the action space {space}")
    return actions


def _within(value: NDArray[Any], space: Any, *, where: str) -> NDArray[Any]:
    """Return actions of a box, with what rounding put outside of it put back."""
    wide = value.astype(np.float64)
    slack = _ROUNDING * np.maximum(1.0, np.abs(wide))
    if (wide < space.low - slack).any() or (wide > space.high + slack).any():
        worst = float(wide.flat[int(np.argmax(np.abs(wide)))])
        raise PolicyFailed(f"the policy failed: {where} is outside the action space (up to {worst:g})")
    actions: NDArray[Any] = np.clip(wide, space.low, space.high).astype(space.dtype)
    return actions
