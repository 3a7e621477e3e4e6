"""Policies: a batch of raw observations in, a batch of actions out. Also: how to rebuild one from a checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rlx import plugins
from rlx.errors import CheckpointInvalid
from rlx.evaluate.stored_code import code_problems, code_references
from rlx.runs import project

if TYPE_CHECKING:
    from gymnasium import Space

    from rlx.runs.checkpoints.checkpoint import Checkpoint

# Observations of several environments as their space batches them: an array, or a dict or tuple of arrays.
Masks = NDArray[np.bool_] | None
Batch = NDArray[Any] | dict[str, Any] | tuple[Any, ...]

# For continuous actions: far above the rounding of another machine, far below the effect of a lost normaliser.
ACTION_TOLERANCE = 1e-3
# The share of discrete actions that may differ, because another machine can round a tie differently.
NEAR_TIES = 1 / 16


class Policy(Protocol):
    """A policy as evaluation sees it. Its normaliser and frame order are inside, so they cannot be forgotten."""

    def predict(self, observations: Batch, *, deterministic: bool = True, masks: Masks = None) -> NDArray[Any]:
        """Return one action per row for raw observations. `masks` (rows, actions) are the allowed actions."""
        ...

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Forget the recurrent state of the rows that begin a new episode, or of all rows without an argument."""
        ...


class RandomPolicy:
    """Draws every action from the action space: the score that a trained policy must beat."""

    def __init__(self, action_space: Space[Any], seed: int = 0) -> None:
        from gymnasium.spaces import Box

        self._space = copy.deepcopy(action_space)
        self._space.seed(seed)
        is_real = isinstance(self._space, Box) and np.issubdtype(self._space.dtype, np.floating)
        self._is_bounded = is_real and cast("Box", self._space).is_bounded()

    def predict(self, observations: Batch, *, deterministic: bool = True, masks: Masks = None) -> NDArray[Any]:
        """Return one random action per row."""
        count = count_rows(observations)
        if self._is_bounded and masks is None:
            return self._uniform(count)
        rows: Any = masks
        if masks is None:
            rows = [None] * count
        batch: NDArray[Any] = stack(self._space, [self.sample(mask) for mask in rows])
        return batch

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Keep nothing between steps."""

    def _uniform(self, count: int) -> NDArray[Any]:
        """Return the same as `count` calls of the space's own `sample`, in one call."""
        space: Any = self._space
        drawn: NDArray[Any] = space.np_random.uniform(space.low, space.high, size=(count, *space.shape))
        return drawn.astype(space.dtype)

    def sample(self, mask: NDArray[np.bool_] | None = None) -> Any:
        """Return one random action among those that the mask allows."""
        from gymnasium.spaces import MultiDiscrete

        if mask is None:
            return self._space.sample()
        flat = np.asarray(mask, dtype=np.int8)
        if isinstance(self._space, MultiDiscrete):
            return self._space.sample(mask=tuple(np.split(flat, np.cumsum(self._space.nvec)[:-1])))
        return self._space.sample(mask=flat)


def rebuild(checkpoint: Checkpoint, *, named: Collection[str] | None = None) -> Policy:
    """Rebuild the policy of a checkpoint that was read and verified. Nothing stored in it is executed.

    It may name code to run (`policy.type: file.py:Net`) if it belongs to this project. With `named`, only that code.
    """
    if named is None:
        refuse_named_code(checkpoint)
    else:
        _refuse_other_code(checkpoint, named)
    policy: Policy = plugins.load(plugins.BACKENDS, checkpoint.backend, kind="backend")().load(checkpoint)
    refuse_changed_actions(policy, checkpoint)
    return policy


def refuse_changed_actions(policy: Policy, checkpoint: Checkpoint) -> None:
    """Refuse a rebuilt policy that acts differently than the training path did on the stored observations."""
    replay = checkpoint.parity
    if "greedy" not in replay:
        return
    policy.reset()
    actions = np.asarray(policy.predict(replay["observations"]))
    greedy = np.asarray(replay["greedy"])
    policy.reset()
    differing = _differing(actions, greedy)
    if differing:
        raise CheckpointInvalid(
            f"checkpoint {checkpoint.path}: the policy acts differently than in training "
            f"(on {differing} of {len(greedy)} stored observations)",
            hint="its weights, its normaliser or its code have changed since the training",
        )


def _differing(actions: NDArray[Any], greedy: NDArray[Any]) -> int:
    if actions.shape != greedy.shape:
        return len(greedy)
    if np.issubdtype(greedy.dtype, np.floating):
        is_same = np.isclose(actions, greedy, rtol=ACTION_TOLERANCE, atol=ACTION_TOLERANCE, equal_nan=True)
        return int((~is_same.reshape(len(greedy), -1).all(axis=1)).sum())
    differing = int((actions != greedy).reshape(len(greedy), -1).any(axis=1).sum())
    if differing <= NEAR_TIES * len(greedy):
        return 0
    return differing


def refuse_named_code(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint from outside this project that names code to run (`module:name`, `file.py:Class`)."""
    for problem in code_problems(checkpoint.config, place=checkpoint.path, root=project.root()):
        raise CheckpointInvalid(
            f"{checkpoint.path} {problem}",
            hint="if you trust it, repeat the command with --trust, or train once in its own project folder",
        )


def _refuse_other_code(checkpoint: Checkpoint, named: Collection[str]) -> None:
    for name in code_references(checkpoint.config):
        if name not in named:
            raise CheckpointInvalid(
                f"checkpoint {checkpoint.path.name} names code to run that the baseline does not: `{name}`",
                hint="set `adapter.policy` in task.yaml: a policy with its own code needs a separate process",
            )


def count_rows(observations: Batch) -> int:
    """Return how many observations a batch holds."""
    leaf: Any = observations
    while isinstance(leaf, (dict, tuple)):
        leaf = next(iter(leaf.values())) if isinstance(leaf, dict) else leaf[0]
    return len(leaf)


def stack(space: Space[Any], items: Sequence[Any]) -> Any:
    """Return elements of a space as one batch: arrays of shape (rows, …) in the space's own structure."""
    from gymnasium.vector.utils import concatenate, create_empty_array

    empty: Any = create_empty_array(space, n=len(items))
    return concatenate(space, items, empty)


def batcher(space: Space[Any], count: int) -> Callable[[Sequence[Any]], Any]:
    """Return a `stack` for `count` elements at a time. For array spaces it reuses the same memory."""
    from gymnasium.spaces import Box

    if not isinstance(space, Box):
        return lambda items: stack(space, items)
    memory = np.zeros((count, *space.shape), dtype=space.dtype)
    return lambda items: np.stack(items, out=memory)


def splitter(space: Space[Any], count: int) -> Callable[[Any], Any]:
    """Return a function that splits a batch of `count` elements of a space. An array is split by its rows."""
    from gymnasium.vector.utils import batch_space, iterate

    batched = batch_space(space, count)
    return lambda batch: batch if isinstance(batch, np.ndarray) else list(iterate(batched, batch))
