"""The episode to watch is chosen by return, among episodes that are known or played."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rlx.evaluate.episode import Episode
from rlx.evaluate.measure import measure, protocol_for
from rlx.evaluate.video.pick_episode import pick, play_episodes, stored_episodes
from rlx.runs.run_reference import resolve

from ..conftest import MakeProtocol
from ..linear import GOOD, POOR, LinearPolicy, config, make_run, register, write_checkpoint


def episodes(*returns: float) -> list[Episode]:
    return [Episode(seed, value, 10) for seed, value in enumerate(returns)]


def test_best_median_and_worst_are_episodes_that_were_played() -> None:
    played = episodes(3.0, 1.0, 4.0, 2.0)
    assert [pick(played, which).episode_return for which in ("best", "median", "worst")] == [4.0, 2.0, 1.0]


def test_of_equal_episodes_the_first_is_the_best() -> None:
    assert pick(episodes(1.0, 5.0, 5.0), "best").seed == 1


def test_nan_is_the_worst() -> None:
    assert math.isnan(pick(episodes(-math.inf, math.nan, 1.0), "worst").episode_return)
    assert pick(episodes(-math.inf, math.nan, 1.0), "median").episode_return == -math.inf


def test_kept_episodes_are_those_of_this_very_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    run = make_run(tmp_path, "cartpole", {0: POOR})
    reference = resolve(run.name, tmp_path)
    protocol = protocol_for(reference, root=tmp_path, episodes=3)
    folder = run.path / "seed_0/checkpoints"

    assert stored_episodes(run, protocol, folder / "latest", seed=0) == []
    list(measure(reference, protocol))
    played = play_episodes(LinearPolicy(np.array(POOR)), protocol, seed=0)
    assert stored_episodes(run, protocol, folder / "latest", seed=0) == played
    assert stored_episodes(run, protocol, folder / "best", seed=0) == []
    write_checkpoint(folder, "latest", GOOD, plain=config("cartpole"), step=4096)
    assert stored_episodes(run, protocol, folder / "latest", seed=0) == []


def test_played_episodes_are_the_protocols(protocol: MakeProtocol) -> None:
    played = play_episodes(LinearPolicy(np.array(POOR)), protocol("CartPole-v1", episodes=3), seed=0)
    assert [episode.seed for episode in played] == [200_000, 200_001, 200_002]
