"""Offline datasets in Minari's layout: per episode N + 1 observations, N actions, and both kinds of ends.

`terminated` and `truncated` stay apart: a learner bootstraps after a truncation only. `to_minari` writes a Minari
dataset if the package is installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, cartpole_expert

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Dataset:
    """Episodes one after another. `starts` are the indexes of first observations, and the number of observations."""

    observations: Floats
    actions: Floats
    rewards: Floats
    terminations: Flags
    truncations: Flags
    starts: NDArray[np.int_]

    @property
    def is_step(self) -> Flags:
        """Whether an observation has an action: the last one of an episode has none."""
        flags = np.ones(len(self.observations), dtype=bool)
        flags[self.starts[1:] - 1] = False
        return flags

    @property
    def episodes(self) -> int:
        return len(self.starts) - 1


def collect(
    policy: Callable[[Any], int], *, episodes: int, env_id: str = "CartPole-v1", first_seed: int = 0
) -> Dataset:
    """Play a policy and store every transition. Any callable works, also a policy that `rlx.load` returned."""
    import gymnasium

    env = gymnasium.make(env_id)
    observations: list[Any] = []
    steps: list[tuple[float, float, bool, bool]] = []
    starts = [0]
    for seed in range(first_seed, first_seed + episodes):
        observation, _ = env.reset(seed=seed)
        observations.append(observation)
        is_done = False
        while not is_done:
            action = policy(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            observations.append(observation)
            steps.append((action, float(reward), terminated, truncated))
            is_done = terminated or truncated
        starts.append(len(observations))
    env.close()
    columns = list(zip(*steps, strict=True))
    return Dataset(
        np.array(observations, dtype=np.float64),
        np.array(columns[0], dtype=np.float64),
        np.array(columns[1]),
        np.array(columns[2], dtype=bool),
        np.array(columns[3], dtype=bool),
        np.array(starts),
    )


def joined(datasets: list[Dataset]) -> Dataset:
    """Return several datasets as one."""
    starts = [np.zeros(1, dtype=int)]
    at = 0
    for dataset in datasets:
        starts.append(dataset.starts[1:] + at)
        at += len(dataset.observations)
    names = ("observations", "actions", "rewards", "terminations", "truncations")
    columns = {name: np.concatenate([getattr(dataset, name) for dataset in datasets]) for name in names}
    return Dataset(**columns, starts=np.concatenate(starts))


def save(dataset: Dataset, path: Path) -> None:
    """Write the arrays without pickles; `rlx check spec` reads this file."""
    np.savez_compressed(path, **vars(dataset))


def load(path: Path) -> Dataset:
    """Read a dataset that `save` wrote."""
    with np.load(path, allow_pickle=False) as data:
        return Dataset(**{name: data[name] for name in data.files})


def to_minari(dataset: Dataset, *, dataset_id: str, env_id: str) -> Any:
    """Create a Minari dataset from these episodes. Minari stores it in its own folder."""
    import gymnasium
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = []
    step = 0
    for index in range(dataset.episodes):
        first = int(dataset.starts[index])
        after = int(dataset.starts[index + 1])
        count = after - first - 1
        chosen = slice(step, step + count)
        buffers.append(
            EpisodeBuffer(
                id=index,
                observations=dataset.observations[first:after].astype(np.float32),
                actions=dataset.actions[chosen].astype(np.int64),
                rewards=list(dataset.rewards[chosen]),
                terminations=list(dataset.terminations[chosen]),
                truncations=list(dataset.truncations[chosen]),
            )
        )
        step += count
    return minari.create_dataset_from_buffers(dataset_id=dataset_id, buffer=buffers, env=gymnasium.make(env_id))


def coverage(dataset: Dataset, *, bins: int = 4) -> float:
    """Return the share of visited cells of the state space in which both actions were tried."""
    observations = dataset.observations[dataset.is_step]
    edges = np.quantile(observations, np.linspace(0, 1, bins + 1)[1:-1], axis=0)
    cells = np.stack([np.digitize(observations[:, index], edges[:, index]) for index in range(4)], axis=1)
    tried: dict[bytes, set[float]] = {}
    for cell, action in zip(cells, dataset.actions, strict=True):
        tried.setdefault(cell.tobytes(), set()).add(float(action))
    return sum(len(actions) > 1 for actions in tried.values()) / len(tried)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Mix expert and random episodes, store them, read them back, and compare the coverage of actions."""
    rng = np.random.default_rng(seed)
    episodes = int(10 * scale) + 4
    expert = collect(cartpole_expert, episodes=episodes, first_seed=100 * seed)
    random = collect(lambda _: int(rng.integers(2)), episodes=10 * episodes, first_seed=100 * seed)
    mixed = joined([expert, random])
    with tempfile.TemporaryDirectory() as folder:
        save(mixed, Path(folder) / "mixed.npz")
        again = load(Path(folder) / "mixed.npz")
    equal = all(np.array_equal(getattr(mixed, name), getattr(again, name)) for name in vars(mixed))
    ends = int(mixed.terminations.sum() + mixed.truncations.sum())
    return [
        at_least("arrays that survive the round trip", float(equal), 1.0),
        at_most("episodes without exactly one end", abs(ends - mixed.episodes), 0.0),
        at_most("steps without an observation before them", abs(int(mixed.is_step.sum()) - len(mixed.actions)), 0.0),
        at_least("coverage of the mixed data", coverage(mixed), 0.5),
    ]
