"""Film a policy: render episodes of a protocol without a display, and write them as mp4 or gif."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx import external_programs, files
from rlx.envs.make import make_env, quiet
from rlx.errors import RlxError, UsageError
from rlx.evaluate.episode import Episode, EpisodeRunner
from rlx.evaluate.policy import Policy, stack
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import MOST_PARALLEL, isolated_randomness
from rlx.evaluate.video.contact_sheet import ContactSheet
from rlx.evaluate.video.overlay import overlaid

Frame = NDArray[np.uint8]
Writer = Callable[[Path, Iterable[Frame], int], None]

USUAL_FPS = 30
# Later steps of an episode are played, so that its return is right, but not filmed.
MOST_STEPS = 3000
# Viewers slow down gifs whose frames last under 20 ms.
GIF_FASTEST_FPS = 50


@dataclass(frozen=True)
class Film:
    """A video file and its episodes. `unfilmed_steps` were played after an episode's most steps."""

    path: Path
    episodes: tuple[Episode, ...]
    frames: int
    fps: int
    unfilmed_steps: int = 0
    sheet: Path | None = None


@dataclass(frozen=True)
class FilmStyle:
    """How episodes are filmed: most steps per episode, figures drawn onto the frames, and a contact sheet."""

    most_steps: int = MOST_STEPS
    is_overlaid: bool = False
    sheet: ContactSheet | None = None


def film(
    policy: Policy,
    protocol: Protocol,
    path: Path,
    *,
    seeds: Sequence[int] | None = None,
    style: FilmStyle | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Film:
    """Play episodes one after the other, as the protocol would, and write them to `path` (.mp4 or .gif).

    `seeds` chooses among the protocol's episodes; the default is all of them. The contact sheet goes next to the film.
    `progress` gets the number of frames with every frame.
    """
    style = style or FilmStyle()
    write = choose_writer(path)
    env = make_env(protocol.env, root=protocol.root, render_mode="rgb_array")
    runner = EpisodeRunner(env, seeds or protocol.episode_seeds(), protocol=protocol)
    fps = max(1, round(float(env.metadata.get("render_fps") or USUAL_FPS)))
    camera = _Camera(runner, policy, protocol, style, progress)
    try:
        with isolated_randomness(runner.seeds[0]), quiet(), files.replacing(path) as temporary:
            write(temporary, camera, fps)
    finally:
        env.close()
    sheet_path = None
    if style.sheet:
        sheet_path = path.with_suffix(".png")
        with files.replacing(sheet_path) as temporary:
            style.sheet.save(temporary)
    return Film(path, tuple(runner.episodes), camera.frames, fps, camera.unfilmed, sheet_path)


def fill_sheet(policy: Policy, protocol: Protocol, sheet: ContactSheet, *, seeds: Sequence[int]) -> None:
    """Play episodes of a protocol for a contact sheet, without a film."""
    env = make_env(protocol.env, root=protocol.root, render_mode="rgb_array")
    runner = EpisodeRunner(env, seeds, protocol=protocol)
    camera = _Camera(runner, policy, protocol, FilmStyle(sheet=sheet), lambda _: None)
    try:
        with isolated_randomness(seeds[0]), quiet():
            for _ in camera:
                pass
    finally:
        env.close()


@dataclass
class _Camera:
    """The frames of every episode in turn: after the reset, and after each step.

    The policy sees a batch as large as in an evaluation, with the observation in the episode's row of it. The same
    arithmetic gives the same actions bit for bit; a batch of one could round differently.
    """

    runner: EpisodeRunner
    policy: Policy
    protocol: Protocol
    style: FilmStyle
    progress: Callable[[int], None]
    frames: int = 0
    unfilmed: int = 0
    size: tuple[int, ...] | None = None
    is_blank: bool = True

    def __iter__(self) -> Iterator[Frame]:
        while self.runner.is_active:
            self.runner.begin()
            self.policy.reset()
            yield self._frame()
            yield from self._steps()
            if self.style.sheet:
                self.style.sheet.end(self.runner.episodes[-1])
        if self.is_blank:
            message = f"{self.runner.name}: all {self.frames} frames have a single colour"
            raise UsageError(message, hint="its render() draws nothing")

    def _steps(self) -> Iterator[Frame]:
        is_over = False
        while not is_over:
            is_over = self._step()
            if self.runner.length <= self.style.most_steps:
                yield self._frame()
            else:
                self.unfilmed += 1

    def _step(self) -> bool:
        from gymnasium.vector.utils import batch_space, iterate

        env = self.runner.env
        rows = min(self.protocol.episodes, MOST_PARALLEL)
        episode = (self.runner.seed - self.protocol.episode_seeds().start) % self.protocol.episodes
        masks: Any = self.runner.mask()
        if masks is not None:
            masks = np.stack([masks] * rows)
        observations = stack(env.observation_space, [self.runner.observation] * rows)
        actions = self.policy.predict(observations, deterministic=self.protocol.deterministic, masks=masks)
        return self.runner.step(list(iterate(batch_space(env.action_space, rows), actions))[episode % rows])

    def _frame(self) -> Frame:
        frame: Any = self.runner.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            raise UsageError(
                f"{self.runner.name}: render() returned {_describe(frame)}, which is not a frame",
                hint='with render_mode "rgb_array" return a uint8 array (height, width, 3)',
            )
        if self.size not in (None, frame.shape):
            raise UsageError(f"{self.runner.name}: its frames change size from {self.size} to {frame.shape}")
        self.size = frame.shape
        self.frames += 1
        self.progress(self.frames)
        self.is_blank = self.is_blank and bool((frame == frame[0, 0]).all())
        if self.style.sheet:
            self.style.sheet.add(frame, self.runner)
        if self.style.is_overlaid:
            return overlaid(frame, self.runner)
        return frame


def _describe(frame: object) -> str:
    if isinstance(frame, np.ndarray):
        return f"{frame.dtype} {frame.shape}"
    return "None" if frame is None else f"a {type(frame).__name__}"


def choose_writer(path: Path) -> Writer:
    """Return the function that writes this kind of file, by the end of its name."""
    known: dict[str, Writer] = {".mp4": _write_mp4, ".gif": _write_gif}
    if path.suffix.lower() not in known:
        raise UsageError(f"{path}: rlx does not write this video format", hint="end the name in .mp4 or .gif")
    return known[path.suffix.lower()]


def _write_mp4(path: Path, frames: Iterable[Frame], fps: int) -> None:
    every = iter(frames)
    first = next(every)
    height, width = first.shape[:2]
    external_programs.ffmpeg(
        *("-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(fps), "-i", "-"),
        *("-an", "-c:v", "libx264", "-threads", "1", "-pix_fmt", "yuv420p"),  # yuv420p: what browsers play
        *("-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-movflags", "+faststart", "-f", "mp4", str(path)),
        frames=(np.ascontiguousarray(frame).tobytes() for frame in chain([first], every)),
    )


def _write_gif(path: Path, frames: Iterable[Frame], fps: int) -> None:
    from PIL import Image

    every = math.ceil(fps / GIF_FASTEST_FPS)
    images = (Image.fromarray(frame) for frame in islice(frames, 0, None, every))
    try:
        next(images).save(
            path, format="GIF", save_all=True, append_images=images, duration=round(1000 * every / fps), loop=0
        )
    except ValueError as error:
        raise RlxError(f"{path}: {error}") from error
