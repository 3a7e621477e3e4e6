"""A contact sheet: evenly spaced frames of each episode in one picture, for reports and for agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.episode import Episode, EpisodeRunner
from rlx.evaluate.video.overlay import enlarged, font

Frame = NDArray[np.uint8]

COLUMNS = 6
ROWS = 2
CELL_WIDTH = 240
# The most frames kept while an episode runs, in the finest spacing that fits.
MOST_KEPT = 128
MARGIN = 12
TEXT_SIZE = 15
TEXT_COLOUR = (20, 20, 20)
BORDER_COLOUR = (150, 150, 150)


class ContactSheet:
    """Collects frames while episodes are played, and draws them below each other."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.blocks: list[tuple[str, list[tuple[str, Any]]]] = []
        self._start()

    def _start(self) -> None:
        self.kept: list[tuple[int, str, Any]] = []
        self.every = 1
        self.last: tuple[int, str, Frame] | None = None

    def add(self, frame: Frame, runner: EpisodeRunner) -> None:
        """Add the frame after a step. If there are too many, drop every second one."""
        label = f"step {runner.length:,}, return {runner.total:.4g}"
        self.last = (runner.length, label, frame)
        if runner.length % self.every:
            return
        self.kept.append((runner.length, label, _thumbnail(frame)))
        if len(self.kept) > MOST_KEPT:
            self.every *= 2
            self.kept = [item for item in self.kept if item[0] % self.every == 0]

    def end(self, episode: Episode) -> None:
        """Choose frames of the episode that ended: the first, the last, and evenly spaced ones between them."""
        assert self.last is not None
        if self.kept[-1][0] != self.last[0]:
            self.kept.append((self.last[0], self.last[1], _thumbnail(self.last[2])))
        steps = np.array([step for step, _, _ in self.kept])
        wanted = np.linspace(0, steps[-1], min(COLUMNS * ROWS, len(steps)))
        chosen = dict.fromkeys(int(np.abs(steps - step).argmin()) for step in wanted)
        caption = f"episode seed {episode.seed}: return {episode.episode_return:.4g} in {episode.length:,} steps"
        caption += {None: "", True: ", success", False: ", no success"}[episode.success]
        self.blocks.append((caption, [self.kept[index][1:] for index in chosen]))
        self._start()

    def save(self, path: Path) -> None:
        """Write the sheet as PNG."""
        from PIL import Image, ImageDraw

        height = self.blocks[0][1][0][1].height
        line = round(TEXT_SIZE * 1.6)
        cell = height + line
        heights = [line + cell * -(-len(frames) // COLUMNS) + MARGIN for _, frames in self.blocks]
        columns = min(COLUMNS, max(len(frames) for _, frames in self.blocks))
        width = max(MARGIN + columns * (CELL_WIDTH + MARGIN), 640)
        picture = Image.new("RGB", (width, MARGIN + line + sum(heights)), "white")
        draw = ImageDraw.Draw(picture)
        letters = font(TEXT_SIZE)
        draw.text((MARGIN, MARGIN), self.title, font=letters, fill=TEXT_COLOUR)
        top = MARGIN + line
        for (caption, frames), used in zip(self.blocks, heights, strict=True):
            draw.text((MARGIN, top), caption, font=letters, fill=TEXT_COLOUR)
            for number, (label, frame) in enumerate(frames):
                x = MARGIN + number % COLUMNS * (CELL_WIDTH + MARGIN)
                y = top + line + number // COLUMNS * cell
                picture.paste(frame, (x, y))
                draw.rectangle((x - 1, y - 1, x + CELL_WIDTH, y + height), outline=BORDER_COLOUR)
                draw.text((x, y + height + 2), label, font=letters, fill=TEXT_COLOUR)
            top += used
        picture.save(path, format="PNG")


def _thumbnail(frame: Frame) -> Any:
    from PIL import Image

    height = max(1, round(frame.shape[0] * CELL_WIDTH / frame.shape[1]))
    return Image.fromarray(enlarged(frame)).resize((CELL_WIDTH, height), Image.Resampling.LANCZOS)
