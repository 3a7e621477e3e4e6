"""Which parts of the observation a policy uses: gradients, integrated gradients, permutation and occlusion.

Gradients are taken at the network's inputs, which are normalised, so their sizes can be compared. Permutation works
with every policy: it shuffles one number among the observations and measures how much the actions change. None of
these is a cause by itself: two numbers that always move together share their importance in unknown parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.envs.make import make_env, quiet
from rlx.envs.spaces import choice_sizes, is_image, leaves
from rlx.errors import UsageError
from rlx.evaluate.episode import EpisodeRunner
from rlx.evaluate.policy import Batch, Policy, count_rows, stack
from rlx.evaluate.policy_internals import Differentiable, internals_of
from rlx.evaluate.rollout import isolated_randomness
from rlx.evaluate.video.subject import PolicySubject

Array = NDArray[np.float64]
PATH_STEPS = 64
"""The points of the path that integrated gradients sum over."""
GRID = 25
PATCHES = 8


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations of played episodes as one batch; for a policy with memory, its states and the whole episodes."""

    batch: Any
    space: Any
    hidden: Array | None
    episodes: tuple[tuple[Any, ...], ...] = ()

    @property
    def count(self) -> int:
        return count_rows(self.batch)


@dataclass(frozen=True, eq=False)
class GradientSaliency:
    """Per input: mean |gradient| and mean |integrated gradient| of the chosen action, and mean |gradient| of the value.

    `completeness` is the largest |sum of attributions − (f(x) − f(baseline))|, as a share of the spread of f.
    """

    names: tuple[str, ...]
    gradient: Array
    integrated: Array
    value_gradient: Array | None
    completeness: float


def collect(subject: PolicySubject, *, episodes: int, most: int, progress: Callable[[int], None]) -> Observations:
    """Play episodes of the subject's protocol and keep at most `most` observations, evenly spread over all."""
    protocol = subject.protocol
    env = make_env(protocol.env, root=protocol.root)
    seeds = protocol.episode_seeds(seed=subject.seed or 0)[:episodes]
    runner = EpisodeRunner(env, seeds, protocol=protocol)
    seen: list[Any] = []
    hidden: list[Array] = []
    starts: list[int] = []
    try:
        with isolated_randomness(seeds[0]), quiet():
            while runner.is_active:
                runner.begin()
                subject.policy.reset()
                starts.append(len(seen))
                _play(runner, subject.policy, protocol.deterministic, seen, hidden)
                progress(len(seen))
    finally:
        env.close()
    chosen = np.unique(np.linspace(0, len(seen) - 1, min(most, len(seen))).astype(int))
    batch = stack(env.observation_space, [seen[index] for index in chosen])
    if not hidden:
        return Observations(batch, env.observation_space, None)
    ends = [*starts[1:], len(seen)]
    played = tuple(tuple(seen[start:end]) for start, end in zip(starts, ends, strict=True))
    return Observations(batch, env.observation_space, np.stack(hidden), played)


def _play(runner: EpisodeRunner, policy: Policy, deterministic: bool, seen: list[Any], hidden: list[Array]) -> None:
    from gymnasium.vector.utils import batch_space, iterate

    space = runner.env.observation_space
    actions_space = batch_space(runner.env.action_space, 1)
    is_over = False
    while not is_over:
        observation: Any = stack(space, [runner.observation])
        seen.append(next(iter(iterate(batch_space(space, 1), observation))))
        masks = runner.mask()
        actions = policy.predict(observation, deterministic=deterministic, masks=None if masks is None else masks[None])
        state = getattr(policy, "hidden_state", lambda: None)()
        if state is not None:
            hidden.append(state)
        is_over = runner.step(next(iter(iterate(actions_space, actions))))


def component_names(space: Any) -> list[str]:
    """Return a name for every number of an observation, in the order of the network's flat inputs."""
    names = []
    for path, leaf in leaves(space):
        label = ".".join(map(str, path)) or "obs"
        options = choice_sizes(leaf)
        if options:
            names += [f"{label}={option}" for size in options for option in range(size)]
        else:
            names += [f"{label}[{index}]" for index in range(int(np.prod(leaf.shape or ())))]
    return names


def gradient_saliency(policy: Differentiable, observations: Observations) -> GradientSaliency:
    """Return the gradients and integrated gradients of the policy's preferred action, and those of its value.

    f is the output of the preferred option minus the mean output, or the sum of |means| for real actions. The path of
    the integral starts at the mean input.
    """
    inputs = np.asarray(policy.inputs(observations.batch), dtype=np.float64)
    outputs, values = policy.outputs(inputs)
    weights = _chosen_weights(outputs)
    gradient = policy.gradients(inputs, weights, 0.0)
    start = inputs.mean(axis=0, keepdims=True)
    path = np.zeros_like(inputs)
    for number in range(PATH_STEPS):
        share = (number + 0.5) / PATH_STEPS
        path += policy.gradients(start + share * (inputs - start), weights, 0.0) / PATH_STEPS
    integrated = path * (inputs - start)
    at_start, _ = policy.outputs(np.repeat(start, len(inputs), axis=0))
    difference = ((outputs - at_start) * weights).sum(axis=1)
    spread = float(np.abs(difference).max()) or 1.0
    error = float(np.abs(integrated.sum(axis=1) - difference).max()) / spread
    value_gradient = None
    if values is not None:
        value_gradient = np.abs(policy.gradients(inputs, np.zeros_like(weights), 1.0)).mean(axis=0)
    scale = inputs.std(axis=0)
    names = component_names(observations.space)
    if len(names) != inputs.shape[1]:
        names = [f"input[{index}]" for index in range(inputs.shape[1])]
    return GradientSaliency(
        tuple(names),
        np.abs(gradient).mean(axis=0) * scale,
        np.abs(integrated).mean(axis=0),
        None if value_gradient is None else value_gradient * scale,
        error,
    )


def _chosen_weights(outputs: Array) -> Array:
    """Return the weights that make f out of the outputs: the preferred output against the mean of all."""
    if outputs.shape[1] == 1:
        return np.ones_like(outputs)
    weights = np.full_like(outputs, -1.0 / outputs.shape[1])
    weights[np.arange(len(outputs)), outputs.argmax(axis=1)] += 1.0
    return weights


def permutation_importance(policy: Policy, observations: Observations, *, seed: int = 0) -> dict[str, float]:
    """Return, for each number of the observation, how much the actions change if it is shuffled among observations.

    The change is the total variation of the action probabilities, or the mean |change| of real actions in units of
    their spread. Images are left out: see `occlusion`.
    """
    generator = np.random.default_rng(seed)
    before = responses(policy, observations.batch)
    importance = {}
    for name, changed in _shuffled(observations, generator):
        importance[name] = change(before, responses(policy, changed))
    return importance


def responses(policy: Policy, batch: Batch) -> Array:
    """Return what the policy answers: probabilities, means, one-hot choices or real actions."""
    policy.reset()
    internals = internals_of(policy, batch)
    if internals.probabilities is not None:
        return internals.probabilities
    if internals.mean is not None:
        return internals.mean
    return choices(policy.predict(batch))


def choices(actions: Any) -> Array:
    """Return actions as numbers that can be compared: one column per option for choices."""
    actions = np.asarray(actions)
    if np.issubdtype(actions.dtype, np.integer):
        flat = actions.reshape(len(actions), -1)
        options = int(flat.max()) + 1
        return np.asarray(np.eye(max(options, 2))[flat].reshape(len(flat), -1))
    return np.asarray(actions.reshape(len(actions), -1), dtype=np.float64)


def change(before: Array, after: Array) -> float:
    """Return half the summed difference for probabilities; for numbers, the difference in units of their spread."""
    width = min(before.shape[1], after.shape[1])
    difference = np.abs(before[:, :width] - after[:, :width])
    sums = before.sum(axis=1)
    if (before >= 0).all() and np.allclose(sums, np.round(sums), atol=1e-3):
        return float(difference.sum(axis=1).mean() / 2)
    spread = before.std(axis=0)[:width] + 1e-9
    return float((difference / spread).mean())


def _shuffled(observations: Observations, generator: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield each number's name, and the batch in which only that number is shuffled."""
    order = generator.permutation(observations.count)
    for path, leaf in leaves(observations.space):
        if is_image(leaf):
            continue
        label = ".".join(map(str, path)) or "obs"
        array = np.asarray(_part(observations.batch, path))
        flat = array.reshape(len(array), -1)
        for index in range(flat.shape[1]):
            shuffled = flat.copy()
            shuffled[:, index] = flat[order, index]
            name = f"{label}[{index}]"
            yield name, _replaced(observations.batch, path, shuffled.reshape(array.shape))


def _part(batch: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        batch = batch[key]
    return batch


def _replaced(batch: Any, path: tuple[Any, ...], array: Any) -> Any:
    """Return a batch in which the part at `path` is another array."""
    if not path:
        return array
    first, rest = path[0], path[1:]
    if isinstance(batch, dict):
        return {**batch, first: _replaced(batch[first], rest, array)}
    return tuple(_replaced(part, rest, array) if index == first else part for index, part in enumerate(batch))


def occlusion(policy: Policy, observations: Observations, *, most: int = 64) -> dict[str, Array]:
    """Return, for each image of the observation, how much the actions change if a patch is covered by its mean."""
    maps = {}
    for path, leaf in leaves(observations.space):
        if not is_image(leaf):
            continue
        array = np.asarray(_part(observations.batch, path))[:most]
        batch = _first(observations.batch, most)
        before = responses(policy, batch)
        rows_axis = 1 if array.shape[-1] <= 4 else 2  # height, width, channels, or channels first
        heat = np.zeros((PATCHES, PATCHES))
        for row in range(PATCHES):
            for column in range(PATCHES):
                covered = array.copy()
                patch = [slice(None)] * array.ndim
                patch[rows_axis] = _stretch(array.shape[rows_axis], row)
                patch[rows_axis + 1] = _stretch(array.shape[rows_axis + 1], column)
                covered[tuple(patch)] = np.uint8(array.mean())
                heat[row, column] = change(before, responses(policy, _replaced(batch, path, covered)))
        maps[".".join(map(str, path)) or "obs"] = heat
    return maps


def _stretch(length: int, number: int) -> slice:
    return slice(number * length // PATCHES, max((number + 1) * length // PATCHES, number * length // PATCHES + 1))


def _first(batch: Any, most: int) -> Any:
    if isinstance(batch, dict):
        return {key: _first(part, most) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_first(part, most) for part in batch)
    return batch[:most]


@dataclass(frozen=True, eq=False)
class ValueSlice:
    """The value over two numbers of the observation; all others are at their median."""

    names: tuple[str, str]
    x: Array
    y: Array
    values: Array


def value_slice(policy: Policy, observations: Observations, names: tuple[str, str]) -> ValueSlice | None:
    """Return the value on a grid over two numbers; None if the policy has no value or the space is not a vector."""
    batch = observations.batch
    if not isinstance(batch, np.ndarray) or batch.ndim != 2 or internals_of(policy, batch[:1]).values is None:
        return None
    columns = [int(name.partition("[")[2].rstrip("]")) for name in names]
    axes = []
    for column in columns:
        low, high = np.percentile(batch[:, column], (1, 99)).tolist()
        axes.append(np.linspace(low, high, GRID))
    grid = np.repeat(np.median(batch, axis=0, keepdims=True), GRID * GRID, axis=0).astype(batch.dtype)
    x, y = np.meshgrid(*axes)
    grid[:, columns[0]] = x.reshape(-1)
    grid[:, columns[1]] = y.reshape(-1)
    values = internals_of(policy, grid).values
    assert values is not None
    return ValueSlice(names, axes[0], axes[1], values.reshape(GRID, GRID))


def hidden_range(hidden: Array) -> dict[str, float]:
    """Return the range of the hidden states of a recurrent policy, and the share of them near their limits."""
    return {
        "units": float(hidden.shape[-1]),
        "low": float(hidden.min()),
        "high": float(hidden.max()),
        "mean_size": float(np.abs(hidden).mean()),
        "saturated": float((np.abs(hidden) > 0.95).mean()),
    }


def refuse_few(observations: Observations) -> None:
    """Raise if there are too few observations to shuffle."""
    if observations.count < 10:
        message = f"{observations.count} observations are too few to explain a policy"
        raise UsageError(message, hint="use more --episodes")
