"""Datasets of episodes: recorded in Minari's layout, stored without pickles, and refused if they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.envs.vector import FIRST_SEED
from rlx.errors import ConfigError, NotFound, UsageError
from rlx.train.episode_dataset import EpisodeDataset, mixed, read, record

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dataset() -> EpisodeDataset:
    return record(Env(id="CartPole-v1"), [lambda _: 1, lambda _: 0], root=ROOT, episodes=6)


def test_an_episode_has_one_more_observation_than_actions(dataset: EpisodeDataset) -> None:
    assert dataset.episodes == 6
    assert len(dataset.observations) == dataset.steps + 6
    assert dataset.terminations.sum() + dataset.truncations.sum() == 6
    np.testing.assert_array_equal(dataset.returns(), np.diff(dataset.starts) - 1)  # CartPole pays 1 per step


def test_policies_play_in_turn(dataset: EpisodeDataset) -> None:
    lengths = np.diff(dataset.starts) - 1
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    assert dataset.actions[firsts].tolist() == [1, 0, 1, 0, 1, 0]


def test_steps_are_those_of_the_environment(dataset: EpisodeDataset) -> None:
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=FIRST_SEED)
    after, *_ = env.step(1)
    before = dataset.before
    assert len(before) == dataset.steps
    np.testing.assert_array_equal(dataset.observations[before[0] + 1], after)


def test_a_dataset_survives_the_disk(dataset: EpisodeDataset, tmp_path: Path) -> None:
    dataset.save(tmp_path / "data.npz")
    again = read(tmp_path / "data.npz")
    assert all(np.array_equal(value, getattr(again, name)) for name, value in vars(dataset).items())


def test_a_share_of_the_actions_is_random() -> None:
    space: Any = gymnasium.spaces.Discrete(4)
    act = mixed(lambda _: 0, space, random_share=0.5)
    others = sum(int(act(None)) != 0 for _ in range(2000))
    assert others == pytest.approx(0.5 * 0.75 * 2000, rel=0.15)


def test_files_that_are_no_dataset_are_refused(dataset: EpisodeDataset, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(ConfigError):
        read(tmp_path / "text.npz")
    arrays = {**vars(dataset), "rewards": dataset.rewards[:-1]}
    np.savez(tmp_path / "short.npz", **arrays)
    with pytest.raises(ConfigError, match="do not belong together"):
        read(tmp_path / "short.npz")
    np.savez(tmp_path / "pickled.npz", **{**vars(dataset), "rewards": np.array([{}], dtype=object)})
    with pytest.raises(ConfigError):
        read(tmp_path / "pickled.npz")


def test_observations_that_are_no_arrays_are_refused() -> None:
    with pytest.raises(UsageError, match="Tuple"):
        record(Env(id="Blackjack-v1"), [lambda _: 0], root=ROOT, episodes=1)


@pytest.mark.filterwarnings("ignore:`:UserWarning")  # Minari misses an author and a link
def test_minari_reads_the_same_episodes(dataset: EpisodeDataset, tmp_path: Path, monkeypatch: Any) -> None:
    """The recipe `offline-dataset` writes the same layout with Minari's own functions."""
    minari = pytest.importorskip("minari")
    from rlx.design.recipes.from_data.offline_dataset import Dataset, to_minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    to_minari(Dataset(**vars(dataset)), dataset_id="rlx/cartpole/test-v0", env_id="CartPole-v1")
    loaded = minari.load_dataset("rlx/cartpole/test-v0")
    assert loaded.total_episodes == 6
    assert loaded.total_steps == dataset.steps
    returns = [float(episode.rewards.sum()) for episode in loaded.iterate_episodes()]
    np.testing.assert_allclose(returns, dataset.returns())
