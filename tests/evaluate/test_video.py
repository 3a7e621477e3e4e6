"""Films without a display: real files, decoded again."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rlx import tools
from rlx.errors import JobFailed, RlxError, UsageError
from rlx.evaluate.policy import Policy, RandomPolicy
from rlx.evaluate.video import film

from .conftest import MakeProtocol, Scripted, balance, zeros


def frames_of(path: Path) -> np.ndarray:
    """Decode a video into (frames, height, width, 3)."""
    if path.suffix == ".gif":
        from PIL import Image, ImageSequence

        with Image.open(path) as image:
            return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)])
    argv = [str(tools.ffmpeg_program()), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(argv, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    size = re.search(rb"Video: .* (\d{2,})x(\d{2,})", done.stderr)
    assert size is not None
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, int(size[2]), int(size[1]), 3)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_cartpole_film_shows_every_step_and_is_not_black(protocol: MakeProtocol, tmp_path: Path, suffix: str) -> None:
    made = film(Scripted(zeros), protocol("CartPole-v1", episodes=2), tmp_path / f"deep/er/cartpole{suffix}")
    frames = frames_of(made.path)
    steps = sum(episode.length for episode in made.episodes)
    assert made.frames == steps + 2
    assert len(frames) == made.frames if suffix == ".mp4" else len(frames) >= steps - 2  # Pillow joins equal frames
    assert frames.shape[1:] == (400, 600, 3)
    assert frames.mean() > 30
    assert frames.std() > 5
    assert (frames[0] != frames[steps // 2]).any()
    assert [path.name for path in made.path.parent.iterdir()] == [f"cartpole{suffix}"]


def test_the_filmed_episodes_are_the_protocols_own(protocol: MakeProtocol, tmp_path: Path) -> None:
    made = film(Scripted(zeros), protocol("Drawn", episodes=3), tmp_path / "drawn.mp4")
    assert [episode.seed for episode in made.episodes] == [200_000, 200_001, 200_002]
    assert made.fps == 10


def test_frames_of_odd_size_are_padded(protocol: MakeProtocol, tmp_path: Path) -> None:
    made = film(Scripted(zeros), protocol("Drawn", episodes=1, kwargs={"odd": True}), tmp_path / "odd.mp4")
    assert frames_of(made.path).shape[1:] == (34, 48, 3)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["LunarLander-v3", "Hopper-v5"])
def test_box2d_and_mujoco_are_filmed_without_a_display(protocol: MakeProtocol, tmp_path: Path, env_id: str) -> None:
    import gymnasium

    chosen = protocol(env_id, episodes=1)
    policy: Policy = RandomPolicy(gymnasium.make(env_id).action_space)
    frames = frames_of(film(policy, chosen, tmp_path / "film.mp4").path)
    assert frames.std() > 5


def test_an_environment_without_frames_says_which_modes_it_has(protocol: MakeProtocol, tmp_path: Path) -> None:
    with pytest.raises(RlxError, match="cannot render as rgb_array") as silent:
        film(Scripted(zeros), protocol("Lengths", episodes=1), tmp_path / "no.mp4")
    assert "none" in str(silent.value.hint)
    with pytest.raises(RlxError, match="cannot render as rgb_array") as text:
        film(Scripted(zeros), protocol("DrawnInText", episodes=1), tmp_path / "no.mp4")
    assert "ansi" in str(text.value.hint)


def test_a_failed_film_leaves_no_file(protocol: MakeProtocol, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"render.. gave str, not a frame"):
        film(Scripted(zeros), protocol("DrawnBadly", episodes=1), tmp_path / "videos/bad.mp4")
    with pytest.raises(JobFailed):
        film(Scripted(lambda _: np.array(["left"])), protocol("CartPole-v1", episodes=1), tmp_path / "videos/bad.gif")
    assert list((tmp_path / "videos").iterdir()) == []


def test_an_unknown_format_is_refused_before_anything_is_played(protocol: MakeProtocol, tmp_path: Path) -> None:
    policy = Scripted(balance)
    with pytest.raises(UsageError, match=r"film\.avi"):
        film(policy, protocol("CartPole-v1", episodes=1), tmp_path / "film.avi")
    assert policy.batches == []
