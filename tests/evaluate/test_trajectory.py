from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx.errors import FileDamaged, UsageError
from rlx.evaluate.episode import Episode
from rlx.evaluate.rollout import Evaluator
from rlx.evaluate.trajectory import Trajectory, TrajectoryRecorder, encode, read, stored_trajectories
from tests.evaluate.conftest import MakeProtocol, Scripted, zeros


def trajectory(length: int = 3, *, success: bool | None = True, seed: int = 0, **terms: float) -> Trajectory:
    """Return an episode that counts its steps, with terms that pay the same every step."""
    trail = TrajectoryRecorder(np.zeros(2, np.float32))
    for step in range(1, length + 1):
        info = {"height": step, "word": "no number", **({"reward_terms": terms} if terms else {})}
        trail.add(step % 2, 1.0, np.full(2, step, np.float32), info)
    return trail.trajectory(Episode(seed, float(length), length, success))


def written(tmp_path: Path, *trajectories: Trajectory) -> list[Trajectory]:
    (tmp_path / "kept.npz").write_bytes(encode(trajectories))
    return read(tmp_path / "kept.npz")


def test_what_is_kept_is_what_was_played(tmp_path: Path) -> None:
    one, other = written(tmp_path, trajectory(3, alive=1.0), trajectory(2, success=None, seed=7))
    assert (len(one), one.success, one.seed) == (3, True, 0)
    assert (len(other), other.success, other.seed) == (2, None, 7)
    assert one.observation(0).tolist() == [0, 0]
    assert other.observation(2).tolist() == [2, 2]
    assert [one.action(step) for step in range(3)] == [1, 0, 1]
    assert one.info(1) == {"height": 2.0, "reward_terms": {"alive": 1.0}}
    assert other.info(1) == {"height": 2.0, "reward_terms": {"alive": 0.0}}


def test_parts_of_an_observation_keep_their_names(tmp_path: Path) -> None:
    trail = TrajectoryRecorder({"arm": np.zeros(2), "goal": (1, np.ones(3))})
    trail.add({"grip": 1}, 0.0, {"arm": np.ones(2), "goal": (2, np.ones(3))}, {})
    (found,) = written(tmp_path, trail.trajectory(Episode(0, 0.0, 1)))
    assert found.observation(1)["arm"].tolist() == [1, 1]
    assert found.observation(1)["goal/0"] == 2
    assert found.action(0) == {"grip": 1}


def test_an_observation_that_is_used_again_is_copied() -> None:
    seen = np.zeros(1)
    trail = TrajectoryRecorder(seen)
    seen += 1
    trail.add(0, 0.0, seen, {})
    assert trail.trajectory(Episode(0, 0.0, 1)).observations[""].ravel().tolist() == [0.0, 1.0]


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(UsageError, match="a str cannot be stored"):
        TrajectoryRecorder("a sentence")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"not a zip at all"])
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept.npz").write_bytes(content)
    with pytest.raises(FileDamaged, match=r"kept\.npz does not hold trajectories"):
        read(tmp_path / "kept.npz")


def test_a_file_with_other_arrays_or_lengths_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    with pytest.raises(FileDamaged):
        read(tmp_path / "other.npz")
    arrays: dict[str, Any] = dict.fromkeys(("seed", "success", "terminated"), np.zeros(1))
    np.savez(tmp_path / "short.npz", length=np.array([5]), reward=np.zeros(3), **arrays)
    with pytest.raises(FileDamaged, match="do not have the length"):
        read(tmp_path / "short.npz")


def test_nothing_pickled_is_ever_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", length=np.array([print], dtype=object))
    with pytest.raises(FileDamaged):
        read(tmp_path / "evil.npz")


def test_an_evaluation_keeps_the_course_of_its_episodes(protocol: MakeProtocol) -> None:
    with Evaluator(protocol("Reporting", episodes=12), keeps_trajectories=True) as evaluator:
        evaluation = evaluator.evaluate(Scripted(zeros))
        again = evaluator.evaluate(Scripted(zeros))
    assert [one.seed for one in evaluation.trajectories] == [one.seed for one in evaluation.episodes]
    for one, episode in zip(evaluation.trajectories, evaluation.episodes, strict=True):
        assert (len(one), one.success, one.terminated) == (episode.length, episode.success, episode.terminated)
        assert one.rewards.sum() == pytest.approx(episode.episode_return)
        assert {name: values.sum() for name, values in one.terms.items()} == pytest.approx(episode.terms)
    assert len(again.trajectories) == 12


def test_nothing_is_kept_unless_asked(protocol: MakeProtocol) -> None:
    with Evaluator(protocol("Reporting", episodes=2)) as evaluator:
        assert evaluator.evaluate(Scripted(zeros)).trajectories == ()


def test_files_are_found_under_every_protocol(tmp_path: Path) -> None:
    for name in ("eval/a/seed_0_latest.npz", "eval/b/seed_1_best.npz", "eval/b/seed_1_best.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.name for path in stored_trajectories(tmp_path)] == ["seed_0_latest.npz", "seed_1_best.npz"]
    assert stored_trajectories(tmp_path / "nowhere") == []
