"""Filming a policy: episodes of a protocol rendered without a display, written as mp4 or gif."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx import tools
from rlx.envs.make import make_env
from rlx.errors import RlxError, UsageError
from rlx.evaluate.episode import Episode, Lane
from rlx.evaluate.policy import Policy, stack
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import own_randomness

Frame = NDArray[np.uint8]
Writer = Callable[[Path, Iterable[Frame], int], None]

USUAL_FPS = 30
GIF_FASTEST_FPS = 50
"""Viewers slow down gifs whose frames last under 20 ms."""


@dataclass(frozen=True)
class Film:
    """A video file and the episodes in it."""

    path: Path
    episodes: tuple[Episode, ...]
    frames: int
    fps: int


def film(policy: Policy, protocol: Protocol, path: Path) -> Film:
    """Play the protocol's episodes one after the other and write them to `path` (.mp4 or .gif)."""
    write = _writer(path)
    use_no_display()
    env = make_env(protocol.env, root=protocol.root, render_mode="rgb_array")
    lane = Lane(env, protocol.episode_seeds(), protocol=protocol)
    fps = max(1, round(float(env.metadata.get("render_fps") or USUAL_FPS)))
    camera = _Camera(lane, policy, protocol)
    try:
        with own_randomness(protocol.episode_seeds().start), _replacing(path) as temporary:
            write(temporary, camera, fps)
    finally:
        env.close()
    return Film(path, tuple(lane.played), camera.frames, fps)


def use_no_display() -> None:
    """Tell MuJoCo to draw in memory where there is no display; pygame is told so by `make_env`."""
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")


class _Camera:
    """The frames of every episode in turn: after the reset, and after each step."""

    def __init__(self, lane: Lane, policy: Policy, protocol: Protocol) -> None:
        self.lane, self.policy, self.protocol = lane, policy, protocol
        self.frames = 0
        self.size: tuple[int, ...] | None = None

    def __iter__(self) -> Iterator[Frame]:
        while self.lane.is_active:
            self.lane.begin()
            self.policy.reset()
            yield self._frame()
            while not self._step():
                yield self._frame()
            yield self._frame()

    def _step(self) -> bool:
        from gymnasium.vector.utils import batch_space, iterate

        env = self.lane.env
        masks = self.lane.mask()[None] if self.lane.mask_of else None
        observations = stack(env.observation_space, [self.lane.observation])
        actions = self.policy.predict(observations, deterministic=self.protocol.deterministic, masks=masks)
        return self.lane.step(next(iter(iterate(batch_space(env.action_space, 1), actions))))

    def _frame(self) -> Frame:
        frame: Any = self.lane.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            found = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise UsageError(
                f"{self.lane.name}: render() gave {found}, not a frame", hint="return uint8 (height, width, 3)"
            )
        if self.size not in (None, frame.shape):
            raise UsageError(f"{self.lane.name}: its frames change size from {self.size} to {frame.shape}")
        self.size = frame.shape
        self.frames += 1
        return frame


def _writer(path: Path) -> Writer:
    known: dict[str, Writer] = {".mp4": _write_mp4, ".gif": _write_gif}
    if path.suffix.lower() not in known:
        raise UsageError(f"{path}: not a video format rlx writes", hint="end the name in .mp4 or .gif")
    return known[path.suffix.lower()]


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` that takes its place when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
