"""Episodes of policies as a dataset for offline learning: recorded from runs, stored as `.npz` without pickles.

The layout is Minari's: an episode of N steps has N + 1 observations and N actions, rewards, terminations and
truncations. `starts` are the indexes of the first observations, and the number of all observations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx import files
from rlx.config.load import parse
from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.vector import env_seeds
from rlx.errors import ConfigError, NotFound, UsageError
from rlx.evaluate.policy import rebuild
from rlx.evaluate.trained_policy import TrainedPolicy
from rlx.runs.checkpoints import checkpoint

Act = Callable[[Any], Any]


@dataclass(frozen=True)
class EpisodeDataset:
    """Episodes one after another."""

    observations: NDArray[Any]
    actions: NDArray[Any]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    starts: NDArray[np.int64]

    @property
    def episodes(self) -> int:
        return len(self.starts) - 1

    @property
    def steps(self) -> int:
        return len(self.actions)

    @property
    def before(self) -> NDArray[np.int64]:
        """The index of the observation before every step; the next index is the observation after it."""
        is_step = np.ones(len(self.observations), dtype=bool)
        is_step[self.starts[1:] - 1] = False
        return np.flatnonzero(is_step)

    def returns(self) -> NDArray[np.float64]:
        """Return the return of every episode."""
        lengths = np.diff(self.starts) - 1
        ends = np.concatenate([[0.0], np.cumsum(self.rewards)])[np.concatenate([[0], np.cumsum(lengths)])]
        return np.diff(ends)

    def save(self, path: Path) -> None:
        """Write the dataset whole or not at all."""
        with files.replacing(path) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, **vars(self))


def read(path: Path) -> EpisodeDataset:
    """Read a dataset. Nothing that is stored in it is executed."""
    if not path.is_file():
        raise NotFound(f"no dataset `{path}`", hint="record one: rlx export RUN --to dataset")
    names = [field.name for field in fields(EpisodeDataset)]
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {name: data[name] for name in names}
    except (ValueError, OSError, KeyError) as error:
        why = f"`{path}` is not a dataset of rlx: {error}"
        raise ConfigError(why, hint=f"it needs the arrays {', '.join(names)}") from None
    dataset = EpisodeDataset(**arrays)
    _refuse_misfit(dataset, path)
    return dataset


def _refuse_misfit(dataset: EpisodeDataset, path: Path) -> None:
    steps = dataset.steps
    lengths = {len(dataset.rewards), len(dataset.terminations), len(dataset.truncations)}
    is_whole = len(dataset.starts) > 1 and int(dataset.starts[-1]) == len(dataset.observations)
    if lengths != {steps} or not is_whole or len(dataset.observations) != steps + dataset.episodes:
        why = f"`{path}`: its arrays do not belong together"
        raise ConfigError(why, hint="an episode of N steps has N + 1 observations and N actions")


def record(env: Env, policies: Sequence[Act], *, root: Path, episodes: int, seed: int = 0) -> EpisodeDataset:
    """Play policies in turn and keep every step. The starts are training starts: no evaluation uses them."""
    observations: list[Any] = []
    steps: list[tuple[Any, float, bool, bool]] = []
    starts = [0]
    with contextlib.closing(make_env(env, root=root)) as world:
        _refuse_space(world.observation_space)
        for number, start in enumerate(env_seeds(seed, episodes)):
            act = policies[number % len(policies)]
            observation, _ = world.reset(seed=start)
            observations.append(np.array(observation))
            is_done = False
            while not is_done:
                action = act(observation)
                observation, reward, terminated, truncated, _ = world.step(action)
                observations.append(np.array(observation))
                steps.append((np.array(action), float(reward), bool(terminated), bool(truncated)))
                is_done = terminated or truncated
            starts.append(len(observations))
    actions, rewards, terminations, truncations = zip(*steps, strict=True)
    return EpisodeDataset(
        np.stack(observations),
        np.stack(actions),
        np.array(rewards, dtype=np.float64),
        np.array(terminations, dtype=bool),
        np.array(truncations, dtype=bool),
        np.array(starts, dtype=np.int64),
    )


def record_policies(checkpoints: Sequence[Path], *, root: Path, episodes: int, random_share: float) -> EpisodeDataset:
    """Record episodes of checkpoints, in turn, in the environment of the first one."""
    bundles = [checkpoint.read(path, with_replay=False) for path in checkpoints]
    policies = []
    for number, bundle in enumerate(bundles):
        policy = TrainedPolicy(rebuild(bundle), bundle)
        policies.append(mixed(policy.predict, policy.action_space, random_share=random_share, seed=number))
    env = parse(bundles[0].config, source=str(bundles[0].path)).env
    return record(env, policies, root=root, episodes=episodes)


def _refuse_space(space: spaces.Space[Any]) -> None:
    if not isinstance(space, (spaces.Box, spaces.Discrete)):
        why = f"a dataset holds arrays, and the observation is a {type(space).__name__}"
        raise UsageError(why, hint="flatten it: env.wrappers: [flatten]")


def mixed(act: Act, space: spaces.Space[Any], *, random_share: float, seed: int = 0) -> Act:
    """Return a policy that acts at random in a share of its steps: broader data than the policy alone makes."""
    rng = np.random.default_rng(seed)
    space.seed(seed)

    def choose(observation: Any) -> Any:
        if rng.random() < random_share:
            return space.sample()
        return act(observation)

    return choose
