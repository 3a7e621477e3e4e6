"""What a policy is to rlx: a batch of raw observations in, a batch of actions out; and how one is loaded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rlx import plugins
from rlx.errors import CheckpointInvalid
from rlx.runs import checkpoint as checkpoints
from rlx.runs import project
from rlx.runs.reference import resolve

if TYPE_CHECKING:
    from gymnasium import Space

    from rlx.runs.checkpoint import Checkpoint

Batch = NDArray[Any] | dict[str, Any] | tuple[Any, ...]
"""Observations of several environments as their space batches them: an array, or a dict or tuple of arrays."""

ACTION_TOLERANCE = 1e-3
"""Of continuous actions: far above what another machine's rounding does, far below what a lost normaliser does."""
NEAR_TIES = 1 / 16
"""The share of discrete actions that may differ: another machine's rounding can decide a tie differently."""


class Policy(Protocol):
    """A policy as evaluation knows it; normaliser and frame order are inside, so nothing can be left out."""

    def predict(
        self, observations: Batch, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return one action a row for raw environment observations; `masks` (rows, actions) are the allowed ones."""
        ...

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Forget the recurrent state of the rows that begin a new episode; of all rows without an argument."""
        ...


class RandomPolicy:
    """Draws every action from the action space: the score that a trained policy must beat."""

    def __init__(self, action_space: Space[Any], seed: int = 0) -> None:
        from gymnasium.spaces import Box

        self._space = copy.deepcopy(action_space)
        self._space.seed(seed)
        is_real = isinstance(self._space, Box) and np.issubdtype(self._space.dtype, np.floating)
        self._is_bounded = is_real and cast("Box", self._space).is_bounded()

    def predict(
        self, observations: Batch, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return one random action a row."""
        count = rows_of(observations)
        if self._is_bounded and masks is None:
            return self._uniform(count)
        batch: NDArray[Any] = stack(
            self._space, [self.sample(mask) for mask in ([None] * count if masks is None else masks)]
        )
        return batch

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Keep nothing between steps."""

    def _uniform(self, count: int) -> NDArray[Any]:
        """Return what `count` calls of the space's own `sample` would, in one."""
        space: Any = self._space
        drawn: NDArray[Any] = space.np_random.uniform(space.low, space.high, size=(count, *space.shape))
        return drawn.astype(space.dtype)

    def sample(self, mask: NDArray[np.bool_] | None = None) -> Any:
        """Return one random action, of the allowed ones where a mask is given."""
        from gymnasium.spaces import MultiDiscrete

        if mask is None:
            return self._space.sample()
        flat = np.asarray(mask, dtype=np.int8)
        if isinstance(self._space, MultiDiscrete):
            return self._space.sample(mask=tuple(np.split(flat, np.cumsum(self._space.nvec)[:-1])))
        return self._space.sample(mask=flat)


def load(reference: str | Path) -> Policy:
    """Rebuild the policy of a checkpoint: a folder, `RUN:best`, or a run (its `best`); of several seeds the first."""
    root = project.root()
    paths = resolve(str(reference), root).checkpoints(default="best")
    return rebuild(checkpoints.read(next(iter(paths.values())), with_replay=False))


def rebuild(checkpoint: Checkpoint, *, named: Collection[str] | None = None) -> Policy:
    """Rebuild the policy of a checkpoint that was read and verified; nothing stored in it is executed.

    It may name code to run (`policy.type: file.py:Net`) where it is of this project; with `named`, only that code.
    """
    if named is None:
        refuse_named_code(checkpoint)
    else:
        _refuse_other_code(checkpoint, named)
    policy: Policy = plugins.load(plugins.BACKENDS, checkpoint.backend, kind="backend")().load(checkpoint)
    refuse_other_actions(policy, checkpoint)
    return policy


def refuse_other_actions(policy: Policy, checkpoint: Checkpoint) -> None:
    """Refuse a rebuilt policy that acts otherwise than the training path did on the observations kept with it."""
    told = checkpoint.parity
    if "greedy" not in told:
        return
    policy.reset()
    actions, greedy = np.asarray(policy.predict(told["observations"])), np.asarray(told["greedy"])
    policy.reset()
    differing = _differing(actions, greedy)
    if differing:
        raise CheckpointInvalid(
            f"checkpoint {checkpoint.path}: the policy acts differently than in training "
            f"(on {differing} of {len(greedy)} stored observations)",
            hint="its weights, its normaliser or the code of the policy are not those it was trained with",
        )


def _differing(actions: NDArray[Any], greedy: NDArray[Any]) -> int:
    if actions.shape != greedy.shape:
        return len(greedy)
    if np.issubdtype(greedy.dtype, np.floating):
        is_same = np.isclose(actions, greedy, rtol=ACTION_TOLERANCE, atol=ACTION_TOLERANCE, equal_nan=True)
        return int((~is_same.reshape(len(greedy), -1).all(axis=1)).sum())
    differing = int((actions != greedy).reshape(len(greedy), -1).any(axis=1).sum())
    return differing if differing > NEAR_TIES * len(greedy) else 0


def refuse_named_code(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint from outside this project that names code to run (`module:name`, `file.py:Class`)."""
    own = project.runs_folder(project.root()).resolve()
    if checkpoint.path.resolve().is_relative_to(own):
        return
    for name in code_named_in(checkpoint.config):
        raise CheckpointInvalid(
            f"{checkpoint.path} is not of this project and names code to run: `{name}`",
            hint="if you trust it, work in its own project folder (or set RLX_ROOT to it)",
        )


def _refuse_other_code(checkpoint: Checkpoint, named: Collection[str]) -> None:
    for name in code_named_in(checkpoint.config):
        if name not in named:
            raise CheckpointInvalid(
                f"checkpoint {checkpoint.path.name} names code to run that the baseline does not: `{name}`",
                hint="a policy with code of its own is measured in a process of its own: `adapter.policy` in task.yaml",
            )


def code_named_in(config: Mapping[str, Any]) -> list[str]:
    """Return what a config names to be imported and run: `module:name`, `file.py:Class`."""
    worlds = [config.get("env") or {}, (config.get("eval") or {}).get("env") or {}]
    named = [env.get("id") for env in worlds]
    named += [wrapper.get("name") for env in worlds for wrapper in env.get("wrappers") or []]
    named += [(config.get(section) or {}).get(key) for section, key in (("algo", "name"), ("policy", "type"))]
    return [str(name) for name in named if ":" in str(name)]


def rows_of(observations: Batch) -> int:
    """Return how many observations a batch holds."""
    leaf: Any = observations
    while isinstance(leaf, (dict, tuple)):
        leaf = next(iter(leaf.values())) if isinstance(leaf, dict) else leaf[0]
    return len(leaf)


def stack(space: Space[Any], items: Sequence[Any]) -> Any:
    """Return elements of a space as one batch: (rows, …) arrays in the space's own structure."""
    from gymnasium.vector.utils import concatenate, create_empty_array

    empty: Any = create_empty_array(space, n=len(items))
    return concatenate(space, items, empty)


def batcher(space: Space[Any], count: int) -> Callable[[Sequence[Any]], Any]:
    """Return `stack` for `count` elements at a time; array spaces use the same memory every time."""
    from gymnasium.spaces import Box

    if not isinstance(space, Box):
        return lambda items: stack(space, items)
    memory = np.zeros((count, *space.shape), dtype=space.dtype)
    return lambda items: np.stack(items, out=memory)


def splitter(space: Space[Any], count: int) -> Callable[[Any], Any]:
    """Return what takes a batch of `count` elements of a space apart; an array is taken apart by its rows."""
    from gymnasium.vector.utils import batch_space, iterate

    batched = batch_space(space, count)
    return lambda batch: batch if isinstance(batch, np.ndarray) else list(iterate(batched, batch))
