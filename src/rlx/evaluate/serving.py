"""The process a foreign policy lives in: it loads it, receives observations on its input and answers actions.

`load` of `path/file.py:load` is called with the checkpoint's path. What it returns is a policy as rlx knows it (with
`predict` for batches), or a function from one observation to one action; one that has `reset` is loaded once a row.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from rlx.envs.source import load_object
from rlx.evaluate import wire

OWN = "rlx"
"""As a reference: the checkpoint is rlx's own, of a policy whose code is not the baseline's."""
LARGEST_REQUEST = 2**32
LONGEST_WORDS = 300
Load = Callable[[str], Any]


def main(argv: list[str]) -> None:
    """Serve the policy that `argv` names: reference, the folder its code is in, its checkpoint."""
    requests, answers = _streams()
    reference, root, checkpoint = argv
    try:
        policy = _loaded(reference, Path(root), checkpoint)
        _say(answers, wire.pack("ready"))
        while (request := _next(requests)) is not None:
            _say(answers, _answer(policy, *request))
    except Exception as error:  # noqa: BLE001  other people's code may raise anything, and the evaluator must hear of it
        traceback.print_exc()
        _say(answers, wire.pack("failed", says=f"{type(error).__name__}: {error}"[:LONGEST_WORDS]))


def _streams() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the evaluator's pipes to ourselves: what the policy's code prints must not be taken for an answer."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, answers


def _say(answers: IO[bytes], frame: bytes) -> None:
    view = memoryview(frame)
    while view:
        view = view[answers.write(view) :]


def _next(requests: IO[bytes]) -> tuple[str, Any, dict[str, Any]] | None:
    first = requests.read(wire.LENGTHS.size)
    if not first:
        return None
    parts = iter([first])
    return wire.read(lambda size: next(parts, None) or requests.read(size), most_bytes=LARGEST_REQUEST)


def _loaded(reference: str, root: Path, checkpoint: str) -> Any:
    sys.path.insert(0, str(root))
    if reference == OWN:
        from rlx.evaluate.policy import code_named_in, rebuild
        from rlx.runs import checkpoint as checkpoints

        bundle = checkpoints.read(Path(checkpoint), with_replay=False)
        return rebuild(bundle, named=code_named_in(bundle.config))  # any: it is its own code, in its own box
    load: Load = load_object(reference, root=root, kind="policy")
    policy = load(checkpoint)
    return policy if hasattr(policy, "predict") else _Rows(policy, lambda: load(checkpoint))


def _answer(policy: Any, kind: str, tree: Any, about: dict[str, Any]) -> bytes:
    if kind == "reset":
        policy.reset(None if tree is None else tree.astype(bool))
        return wire.pack("done")
    masks = tree.get("masks")
    actions = policy.predict(
        tree["observations"],
        deterministic=bool(about["deterministic"]),
        masks=None if masks is None else masks.astype(bool),
    )
    return wire.pack("actions", actions)


class _Rows:
    """A function of one observation, applied row by row; one with a memory has a copy for each."""

    def __init__(self, function: Any, again: Callable[[], Any]) -> None:
        self._functions = [function]
        self._again = again
        self._remembers = hasattr(function, "reset")

    def predict(self, observations: Any, *, deterministic: bool, masks: Any = None) -> Any:
        rows = _rows(observations)
        while self._remembers and len(self._functions) < len(rows):
            self._functions.append(self._again())
        count = len(self._functions)
        return _stacked([self._functions[index % count](row) for index, row in enumerate(rows)])

    def reset(self, finished: Any = None) -> None:
        if self._remembers:
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
