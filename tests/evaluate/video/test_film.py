"""Films without a display: real files, decoded again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rlx import external_programs
from rlx.errors import JobFailed, RlxError, UsageError
from rlx.evaluate.policy import Policy, RandomPolicy
from rlx.evaluate.rollout import Evaluator
from rlx.evaluate.video.contact_sheet import ContactSheet
from rlx.evaluate.video.film import FilmStyle, film

from ..conftest import MakeProtocol, Scripted, balance, zeros
from ..linear import POOR, LinearPolicy


def frames_of(path: Path) -> np.ndarray:
    """Decode a video into (frames, height, width, 3)."""
    if path.suffix == ".gif":
        from PIL import Image, ImageSequence

        with Image.open(path) as image:
            return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)])
    argv = [str(external_programs.ffmpeg_program()), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
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
    frames = frames_of(film(policy, chosen, tmp_path / "film.mp4", style=FilmStyle(most_steps=30)).path)
    assert len(frames) > 5
    assert frames.std() > 5
    assert (frames[0] != frames[-1]).any()


@pytest.mark.slow
def test_filming_says_nothing_by_itself(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from rlx.config.schema import Env\n"
        "from rlx.evaluate.protocol import Protocol; from rlx.evaluate.video.film import FilmStyle, film\n"
        "from rlx.envs.make import make_env; from rlx.evaluate.policy import RandomPolicy\n"
        "for name in ('CartPole-v1', 'LunarLander-v3', 'Hopper-v5'):\n"
        "    protocol = Protocol(Env(id=name), 1, True, 'report', Path())\n"
        "    space = make_env(protocol.env, root=Path()).action_space\n"
        "    film(RandomPolicy(space), protocol, Path(name + '.mp4'), style=FilmStyle(most_steps=5))\n"
    )
    kept = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "SDL_VIDEODRIVER")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=kept, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list(tmp_path.glob("*.mp4"))) == 3


def test_the_chosen_episodes_go_as_they_went_in_the_evaluation(protocol: MakeProtocol, tmp_path: Path) -> None:
    asked = protocol("CartPole-v1", episodes=12)
    policy = LinearPolicy(np.array(POOR))
    with Evaluator(asked) as evaluator:
        evaluated = {episode.seed: episode for episode in evaluator.evaluate(policy).episodes}
    made = film(policy, asked, tmp_path / "film.mp4", seeds=[200_011, 200_003])
    assert made.episodes == (evaluated[200_011], evaluated[200_003])


def test_the_policy_sees_batches_of_the_evaluations_size(protocol: MakeProtocol, tmp_path: Path) -> None:
    policy = Scripted(zeros)
    film(policy, protocol("Drawn", episodes=20), tmp_path / "film.mp4", seeds=[200_004])
    assert set(policy.batches) == {10}


def test_the_end_of_a_long_episode_is_played_but_not_filmed(protocol: MakeProtocol, tmp_path: Path) -> None:
    made = film(
        Scripted(zeros), protocol("DrawnReporting", episodes=1), tmp_path / "film.mp4", style=FilmStyle(most_steps=8)
    )
    assert (made.frames, made.unfilmed_steps) == (9, 12)
    assert len(frames_of(made.path)) == 9
    assert made.episodes[0].length == 20


def test_the_overlay_is_written_over_the_frames_corner_only(protocol: MakeProtocol, tmp_path: Path) -> None:
    asked = protocol("DrawnReporting", episodes=1)
    plain = film(Scripted(zeros), asked, tmp_path / "plain.mp4")
    drawn = film(Scripted(zeros), asked, tmp_path / "drawn.mp4", style=FilmStyle(is_overlaid=True))
    before, after = frames_of(plain.path), frames_of(drawn.path)
    assert before.shape == (21, 32, 48, 3)
    assert after.shape == (21, 384, 576, 3)
    corner, rest = after[10, :80, :80].astype(int), after[10, 300:, 400:].astype(int)
    assert corner.max() - corner.min() > 150
    assert rest.std() < 5
    assert np.abs(after[10, :60, :100].astype(int) - after[19, :60, :100].astype(int)).max() > 100


def test_a_contact_sheet_shows_evenly_spaced_frames_of_every_episode(protocol: MakeProtocol, tmp_path: Path) -> None:
    from PIL import Image

    sheet = ContactSheet("a title")
    made = film(
        Scripted(zeros), protocol("DrawnReporting", episodes=2), tmp_path / "film.mp4", style=FilmStyle(sheet=sheet)
    )
    assert made.sheet == tmp_path / "film.png"
    assert [caption for caption, _ in sheet.blocks] == [
        "episode seed 200000: return 10 in 20 steps",
        "episode seed 200001: return 10 in 20 steps",
    ]
    steps = [int(label.split()[1].rstrip(",")) for label, _ in sheet.blocks[0][1]]
    assert steps == [0, 2, 4, 5, 7, 9, 11, 13, 15, 16, 18, 20]
    with Image.open(made.sheet) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    red = (pixels[:, :, 0] > 150) & (pixels[:, :, 1] < 80)
    assert pixels.shape[1] == 12 + 6 * 252
    assert [bool(red[:, 12 + 252 * column :][:, :240].any()) for column in range(6)] == [True] * 6


def test_a_sheet_of_a_long_episode_keeps_few_frames_and_its_last(protocol: MakeProtocol, tmp_path: Path) -> None:
    sheet = ContactSheet("a title")
    asked = protocol("DrawnReporting", episodes=1, kwargs={"long": 701})
    film(Scripted(zeros), asked, tmp_path / "film.gif", style=FilmStyle(sheet=sheet))
    steps = [int(label.split()[1].rstrip(",")) for label, _ in sheet.blocks[0][1]]
    assert (len(steps), steps[0], steps[-1]) == (12, 0, 701)
    assert np.ptp(np.diff(steps)) <= 16


def test_an_environment_without_frames_says_which_modes_it_has(protocol: MakeProtocol, tmp_path: Path) -> None:
    with pytest.raises(RlxError, match="cannot render as rgb_array") as silent:
        film(Scripted(zeros), protocol("Lengths", episodes=1), tmp_path / "no.mp4")
    assert "none" in str(silent.value.hint)
    with pytest.raises(RlxError, match="cannot render as rgb_array") as text:
        film(Scripted(zeros), protocol("DrawnInText", episodes=1), tmp_path / "no.mp4")
    assert "ansi" in str(text.value.hint)


def test_a_failed_film_leaves_no_file(protocol: MakeProtocol, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"render.. returned a str, which is not a frame"):
        film(Scripted(zeros), protocol("DrawnBadly", episodes=1), tmp_path / "videos/bad.mp4")
    with pytest.raises(JobFailed):
        film(Scripted(lambda _: np.array(["left"])), protocol("CartPole-v1", episodes=1), tmp_path / "videos/bad.gif")
    assert list((tmp_path / "videos").iterdir()) == []


@pytest.mark.parametrize(
    ("world", "words"),
    [("DrawnBlack", r"all 2 frames have a single colour"), ("DrawnNever", r"render.. returned None")],
)
def test_an_environment_that_draws_nothing_leaves_no_film(
    protocol: MakeProtocol, tmp_path: Path, world: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        film(Scripted(zeros), protocol(world, episodes=1), tmp_path / "videos/film.mp4")
    assert "render" in str(refused.value.hint)
    assert list((tmp_path / "videos").iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_played(
    protocol: MakeProtocol, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    policy = Scripted(zeros)
    with pytest.raises(UsageError, match=r"cannot write .*film\.mp4"):
        film(policy, protocol("Drawn", episodes=1), tmp_path / "file/film.mp4")
    assert policy.batches == []


def test_an_unknown_format_is_refused_before_anything_is_played(protocol: MakeProtocol, tmp_path: Path) -> None:
    policy = Scripted(balance)
    with pytest.raises(UsageError, match=r"film\.avi"):
        film(policy, protocol("CartPole-v1", episodes=1), tmp_path / "film.avi")
    assert policy.batches == []
