"""The process of a foreign policy: loads it, receives observations on standard input, and answers actions.

`load` of `path/file.py:load` is called with the checkpoint's path. It returns a policy as rlx knows it (with `predict`
for batches), or a function from one observation to one action. A function with `reset` is loaded once per row.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from rlx.envs.import_object import load_object
from rlx.envs.remote import wire
from rlx.evaluate.foreign_code import ForeignCode, one_line

# The reference for a checkpoint of rlx whose policy has other code than the baseline's.
OWN = "rlx"
LARGEST_REQUEST = 2**32
LONGEST_MESSAGE = 300
Load = Callable[[str], Any]


def main(argv: list[str]) -> None:
    """Serve the policy that `argv` names: its reference, the folder of its code, its checkpoint."""
    requests, answers = _take_streams()
    reference, root, checkpoint = argv

    def report(error: Exception) -> None:
        traceback.print_exc()
        _send(answers, wire.pack("failed", says=one_line(error)[:LONGEST_MESSAGE]))

    with ForeignCode(report):
        policy = _load(reference, Path(root), checkpoint)
        _send(answers, wire.pack("ready"))
        while (request := _next_request(requests)) is not None:
            _send(answers, _answer(policy, *request))


def _take_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return the evaluator's pipes, and replace them: the policy's code must not read or print there."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, answers


def _send(answers: IO[bytes], frame: bytes) -> None:
    unsent = memoryview(frame)
    while unsent:
        unsent = unsent[answers.write(unsent) :]


def _next_request(requests: IO[bytes]) -> tuple[str, Any, dict[str, Any]] | None:
    first = requests.read(wire.LENGTHS.size)
    if not first:
        return None
    parts = iter([first])
    return wire.read(lambda size: next(parts, None) or requests.read(size), most_bytes=LARGEST_REQUEST)


def _load(reference: str, root: Path, checkpoint: str) -> Any:
    sys.path.insert(0, str(root))
    if reference == OWN:
        from rlx.evaluate.policy import rebuild
        from rlx.evaluate.stored_code import code_references
        from rlx.runs.checkpoints import checkpoint as checkpoints

        bundle = checkpoints.read(Path(checkpoint), with_replay=False)
        # It may run any code that it names: the code is its own, and so is the sandbox.
        return rebuild(bundle, named=code_references(bundle.config))
    load: Load = load_object(reference, root=root, kind="policy")
    policy = load(checkpoint)
    if hasattr(policy, "predict"):
        return policy
    return _RowPolicy(policy, lambda: load(checkpoint))


def _answer(policy: Any, kind: str, tree: Any, facts: dict[str, Any]) -> bytes:
    if kind == "reset":
        policy.reset(_as_bool(tree))
        return wire.pack("done")
    masks = _as_bool(tree.get("masks"))
    actions = policy.predict(tree["observations"], deterministic=bool(facts["deterministic"]), masks=masks)
    return wire.pack("actions", actions)


def _as_bool(array: Any) -> Any:
    return None if array is None else array.astype(bool)


class _RowPolicy:
    """A policy made of a function of one observation, applied row by row. If it has a memory, each row has a copy."""

    def __init__(self, function: Any, load_again: Callable[[], Any]) -> None:
        self._functions = [function]
        self._load_again = load_again
        self._has_memory = hasattr(function, "reset")

    def predict(self, observations: Any, *, deterministic: bool, masks: Any = None) -> Any:
        rows = _rows(observations)
        while self._has_memory and len(self._functions) < len(rows):
            self._functions.append(self._load_again())
        count = len(self._functions)
        return _stacked([self._functions[index % count](row) for index, row in enumerate(rows)])

    def reset(self, finished: Any = None) -> None:
        if self._has_memory:
            for index, function in enumerate(self._functions):
                if finished is None or finished[index]:
                    function.reset()


def _rows(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        parts = {key: _rows(part) for key, part in tree.items()}
        return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]
    if isinstance(tree, tuple):
        return list(zip(*(_rows(part) for part in tree), strict=True))
    return list(tree)


def _stacked(actions: list[Any]) -> Any:
    if isinstance(actions[0], dict):
        return {key: _stacked([action[key] for action in actions]) for key in actions[0]}
    if isinstance(actions[0], tuple):
        return tuple(_stacked(list(parts)) for parts in zip(*actions, strict=True))
    return np.asarray([np.asarray(action) for action in actions])
