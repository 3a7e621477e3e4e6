"""Filming a policy: episodes of a protocol rendered without a display, written as mp4 or gif."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx import files, tools
from rlx.envs.make import make_env, quiet
from rlx.errors import RlxError, UsageError
from rlx.evaluate.episode import Episode, Lane
from rlx.evaluate.overlay import overlaid
from rlx.evaluate.policy import Policy, stack
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import MOST_PARALLEL, own_randomness
from rlx.evaluate.sheet import ContactSheet

Frame = NDArray[np.uint8]
Writer = Callable[[Path, Iterable[Frame], int], None]

USUAL_FPS = 30
MOST_STEPS = 3000
"""An episode's steps after these are played, so that its return is right, but not filmed."""
GIF_FASTEST_FPS = 50
"""Viewers slow down gifs whose frames last under 20 ms."""


@dataclass(frozen=True)
class Film:
    """A video file and the episodes in it; `unfilmed_steps` were played after the film's limit for an episode."""

    path: Path
    episodes: tuple[Episode, ...]
    frames: int
    fps: int
    unfilmed_steps: int = 0
    sheet: Path | None = None


def film(
    policy: Policy,
    protocol: Protocol,
    path: Path,
    *,
    seeds: Sequence[int] | None = None,
    most_steps: int = MOST_STEPS,
    is_overlaid: bool = False,
    sheet: ContactSheet | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Film:
    """Play episodes one after the other, as the protocol would, and write them to `path` (.mp4 or .gif).

    `seeds` are those of the protocol's episodes to play, all of them by default. A contact sheet lies beside the film.
    `progress` is told, with every frame, how many there are.
    """
    write = writer_of(path)
    env = make_env(protocol.env, root=protocol.root, render_mode="rgb_array")
    lane = Lane(env, seeds or protocol.episode_seeds(), protocol=protocol)
    fps = max(1, round(float(env.metadata.get("render_fps") or USUAL_FPS)))
    camera = _Camera(lane, policy, protocol, most_steps=most_steps, is_overlaid=is_overlaid, sheet=sheet)
    camera.progress = progress
    try:
        with own_randomness(lane.seeds[0]), quiet(), files.replacing(path) as temporary:
            write(temporary, camera, fps)
    finally:
        env.close()
    beside = path.with_suffix(".png") if sheet else None
    if sheet and beside:
        with files.replacing(beside) as temporary:
            sheet.save(temporary)
    return Film(path, tuple(lane.played), camera.frames, fps, camera.unfilmed, beside)


class _Camera:
    """The frames of every episode in turn: after the reset, and after each step.

    The policy sees a batch as large as in an evaluation, with the observation in the episode's row of it: the same
    arithmetic gives the same actions, bit for bit, where a batch of one could round differently.
    """

    def __init__(
        self,
        lane: Lane,
        policy: Policy,
        protocol: Protocol,
        *,
        most_steps: int,
        is_overlaid: bool,
        sheet: ContactSheet | None,
    ) -> None:
        self.lane, self.policy, self.protocol = lane, policy, protocol
        self.most_steps, self.is_overlaid, self.sheet = most_steps, is_overlaid, sheet
        self.rows = min(protocol.episodes, MOST_PARALLEL)
        self.frames = self.unfilmed = 0
        self.size: tuple[int, ...] | None = None
        self.is_blank = True
        self.progress: Callable[[int], None] = lambda _: None

    def __iter__(self) -> Iterator[Frame]:
        while self.lane.is_active:
            self.lane.begin()
            self.policy.reset()
            yield self._frame()
            yield from self._steps()
            if self.sheet:
                self.sheet.end(self.lane.played[-1])
        if self.is_blank:
            raise UsageError(
                f"{self.lane.name}: all {self.frames} frames are one colour", hint="its render() draws nothing"
            )

    def _steps(self) -> Iterator[Frame]:
        is_over = False
        while not is_over:
            is_over = self._step()
            if self.lane.length <= self.most_steps:
                yield self._frame()
            else:
                self.unfilmed += 1

    def _step(self) -> bool:
        from gymnasium.vector.utils import batch_space, iterate

        place = (self.lane.seed - self.protocol.episode_seeds().start) % self.protocol.episodes
        env, row = self.lane.env, place % self.rows
        masks = np.stack([self.lane.mask()] * self.rows) if self.lane.mask_of else None
        observations = stack(env.observation_space, [self.lane.observation] * self.rows)
        actions = self.policy.predict(observations, deterministic=self.protocol.deterministic, masks=masks)
        return self.lane.step(list(iterate(batch_space(env.action_space, self.rows), actions))[row])

    def _frame(self) -> Frame:
        frame: Any = self.lane.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            found = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else _spelled(frame)
            raise UsageError(
                f"{self.lane.name}: render() gave {found}, not a frame",
                hint='with render_mode "rgb_array" return a uint8 array (height, width, 3)',
            )
        if self.size not in (None, frame.shape):
            raise UsageError(f"{self.lane.name}: its frames change size from {self.size} to {frame.shape}")
        self.size = frame.shape
        self.frames += 1
        self.progress(self.frames)
        self.is_blank = self.is_blank and bool((frame == frame[0, 0]).all())
        if self.sheet:
            self.sheet.add(frame, self.lane)
        return overlaid(frame, self.lane) if self.is_overlaid else frame


def _spelled(frame: object) -> str:
    return "None" if frame is None else f"a {type(frame).__name__}"


def writer_of(path: Path) -> Writer:
    """Return what writes this kind of file, by the end of its name."""
    known: dict[str, Writer] = {".mp4": _write_mp4, ".gif": _write_gif}
    if path.suffix.lower() not in known:
        raise UsageError(f"{path}: not a video format rlx writes", hint="end the name in .mp4 or .gif")
    return known[path.suffix.lower()]


def _write_mp4(path: Path, frames: Iterable[Frame], fps: int) -> None:
    every = iter(frames)
    first = next(every)
    height, width = first.shape[:2]
    tools.ffmpeg(
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
