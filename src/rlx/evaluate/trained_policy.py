"""A trained policy for people's own code: takes one observation or a batch, and refuses what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs import spaces
from rlx.envs.spaces import Space
from rlx.errors import UsageError
from rlx.evaluate.policy import Policy, rebuild
from rlx.runs import project
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.runs.run_reference import resolve


class TrainedPolicy:
    """The policy of a checkpoint with the spaces that it was trained on; every backend behaves the same."""

    def __init__(self, policy: Policy, checkpoint: Checkpoint) -> None:
        self.observation_space = spaces.build(checkpoint.spaces.get("observation"))
        self.action_space = spaces.build(checkpoint.spaces.get("action"))
        self._policy = policy
        self._has_masks = checkpoint.algorithm == "maskable_ppo"

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> Any:
        """Return the action for one observation, or one action per row for a batch.

        Observations are as the environment gives them, after the wrappers of the config: the policy normalises them
        itself. `masks` are the allowed actions of a policy that was trained with action masks.
        """
        batch, rows = _batch(observations, self.observation_space)
        is_single = rows is None
        if masks is not None:
            if not self._has_masks:
                raise UsageError("the policy was trained without action masks", hint="leave out `masks`")
            masks = _mask_rows(masks, rows, self.action_space)
        actions = self._policy.predict(batch, deterministic=deterministic, masks=masks)
        if is_single:
            return actions[0]
        return actions

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Forget the episode: call it after every reset of the environment, at least for a recurrent policy."""
        self._policy.reset(finished)


def load(reference: str | Path, *, seed: int | None = None) -> TrainedPolicy:
    """Rebuild the policy of a checkpoint: a folder, `RUN:best`, or a run (its `best`); by default of the best seed."""
    named = resolve(str(reference), project.root())
    if seed is None:
        seed = named.best_seed()
    paths = named.checkpoints(default="best", seed=seed)
    checkpoint = checkpoints.read(next(iter(paths.values())), with_replay=False)
    return TrainedPolicy(rebuild(checkpoint), checkpoint)


def _batch(observations: Any, space: Space) -> tuple[Any, int | None]:
    """Return observations as a batch, and their number of rows: None for a single observation."""
    leaves = []
    for path, leaf in spaces.leaves(space):
        leaves.append((path, *_leaf_rows(_part(observations, path, space), leaf, _name(path))))
    counts = {rows for _, _, rows in leaves}
    if len(counts) != 1:
        found = ", ".join(f"{_name(path)}: {rows or 'one'}" for path, _, rows in leaves)
        raise UsageError(f"the parts of the observation have different numbers of rows ({found})")
    arrays = {path: array for path, array, _ in leaves}
    return _assemble(space, (), arrays), counts.pop()


def _part(observations: Any, path: tuple[Any, ...], space: Space) -> Any:
    """Return the part of an observation that a path leads to; its structure must be that of the space."""
    node: Any = space
    for key in path:
        known = list(node.spaces) if isinstance(node.spaces, dict) else list(range(len(node.spaces)))
        if isinstance(node.spaces, dict):
            given = list(observations) if isinstance(observations, dict) else None
            expected = f"a dict with the keys {', '.join(map(str, known))}"
        else:
            given = list(range(len(observations))) if isinstance(observations, (tuple, list)) else None
            expected = f"a tuple of {len(known)} parts"
        if given is None:
            raise UsageError(f"the observation is a {type(observations).__name__}, but the policy takes {expected}")
        if sorted(map(str, given)) != sorted(map(str, known)):
            actual = ", ".join(map(str, given)) if isinstance(node.spaces, dict) else f"{len(given)} parts"
            raise UsageError(f"the observation has {actual or 'no keys'}, but the policy takes {expected}")
        observations = observations[key]
        node = node.spaces[key]
    return observations


def _leaf_rows(value: Any, leaf: Space, name: str) -> tuple[NDArray[Any], int | None]:
    """Return one part of an observation as rows, and how many; None for a single observation."""
    shape = tuple(leaf.shape or ())
    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError(f"{name} is not a regular array: its rows have different lengths") from None
    if not np.issubdtype(array.dtype, np.number) and array.dtype != np.bool_:
        raise UsageError(f"{name} is not made of numbers, but of {array.dtype}")
    rows: int | None = None
    if array.shape == shape:
        array = array[None]
    elif array.ndim == len(shape) + 1 and array.shape[1:] == shape and len(array):
        rows = len(array)
    else:
        batch = ", ".join(["rows", *map(str, shape)])
        single = f"shape {shape}"
        if not shape:
            single = "a single number"
        raise UsageError(
            f"{name} has the shape {array.shape}, but the policy takes {single}, or a batch of shape ({batch})"
        )
    return _converted(array, leaf, name), rows


def _converted(array: NDArray[Any], leaf: Space, name: str) -> NDArray[Any]:
    """Return an array in the data type of its space, if that keeps every number."""
    if np.isnan(array).any():
        raise UsageError(f"{name} holds NaN")
    with np.errstate(all="ignore"):
        converted = array.astype(leaf.dtype, copy=False)
    if not np.issubdtype(converted.dtype, np.floating) and not np.array_equal(converted, array):
        hint = "give the numbers that the environment gives, for example pixels from 0 to 255"
        raise UsageError(f"{name} holds numbers that {converted.dtype} cannot hold", hint=hint)
    sizes = spaces.choice_sizes(leaf)
    if sizes:
        start = np.asarray(leaf.start)  # type: ignore[attr-defined]
        choices = converted - start
        if (choices < 0).any() or (choices >= np.array(sizes).reshape(choices.shape[1:])).any():
            raise UsageError(f"{name} holds {_shown(converted)}, which is outside {leaf}")
    return converted


def _shown(array: NDArray[Any]) -> str:
    text = str(array.reshape(-1)[:5].tolist())
    return text[1:-1]


def _name(path: tuple[Any, ...]) -> str:
    if not path:
        return "the observation"
    return "the observation's `" + ".".join(map(str, path)) + "`"


def _assemble(space: Space, path: tuple[Any, ...], arrays: dict[tuple[Any, ...], NDArray[Any]]) -> Any:
    parts = getattr(space, "spaces", None)
    if parts is None:
        return arrays[path]
    if isinstance(parts, dict):
        return {key: _assemble(part, (*path, key), arrays) for key, part in parts.items()}
    return tuple(_assemble(part, (*path, index), arrays) for index, part in enumerate(parts))


def _mask_rows(masks: Any, rows: int | None, action_space: Space) -> NDArray[np.bool_]:
    """Return action masks as rows: one column per value of every choice."""
    columns = sum(spaces.choice_sizes(action_space, with_bits=True))
    allowed = np.asarray(masks, dtype=np.bool_)
    expected: tuple[int, ...] = (columns,)
    if rows is not None:
        expected = (rows, columns)
    if allowed.shape != expected:
        raise UsageError(f"the action masks have the shape {allowed.shape}, but {expected} fits the observations")
    return allowed.reshape(-1, columns)
