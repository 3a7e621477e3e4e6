"""A contact sheet: evenly spaced frames of each episode on one picture, for reports and for agents that look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.episode import Episode, Lane
from rlx.evaluate.overlay import enlarged, font

Frame = NDArray[np.uint8]

COLUMNS, ROWS = 6, 2
CELL_WIDTH = 240
MOST_KEPT = 128
"""Frames kept while an episode of unknown length runs: the finest spacing that fits is used."""
MARGIN, TEXT, INK, FRAME = 12, 15, (20, 20, 20), (150, 150, 150)


class ContactSheet:
    """Collects frames while episodes are played, and draws them under each other."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.blocks: list[tuple[str, list[tuple[str, Any]]]] = []
        self._start()

    def _start(self) -> None:
        self.kept: list[tuple[int, str, Any]] = []
        self.every = 1
        self.last: tuple[int, str, Frame] | None = None

    def add(self, frame: Frame, lane: Lane) -> None:
        """Take the frame after a step; every second one is let go whenever there are too many."""
        label = f"step {lane.length:,}, return {lane.total:.4g}"
        self.last = (lane.length, label, frame)
        if lane.length % self.every:
            return
        self.kept.append((lane.length, label, _thumbnail(frame)))
        if len(self.kept) > MOST_KEPT:
            self.every *= 2
            self.kept = [one for one in self.kept if one[0] % self.every == 0]

    def end(self, episode: Episode) -> None:
        """Choose the frames of the episode that has ended: the first, the last and evenly spaced ones between."""
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
        line, cell = round(TEXT * 1.6), height + round(TEXT * 1.6)
        tall = [line + cell * -(-len(frames) // COLUMNS) + MARGIN for _, frames in self.blocks]
        columns = min(COLUMNS, max(len(frames) for _, frames in self.blocks))
        width = max(MARGIN + columns * (CELL_WIDTH + MARGIN), 640)
        picture = Image.new("RGB", (width, MARGIN + line + sum(tall)), "white")
        draw, letters = ImageDraw.Draw(picture), font(TEXT)
        draw.text((MARGIN, MARGIN), self.title, font=letters, fill=INK)
        top = MARGIN + line
        for (caption, frames), used in zip(self.blocks, tall, strict=True):
            draw.text((MARGIN, top), caption, font=letters, fill=INK)
            for number, (label, frame) in enumerate(frames):
                x = MARGIN + number % COLUMNS * (CELL_WIDTH + MARGIN)
                y = top + line + number // COLUMNS * cell
                picture.paste(frame, (x, y))
                draw.rectangle((x - 1, y - 1, x + CELL_WIDTH, y + height), outline=FRAME)
                draw.text((x, y + height + 2), label, font=letters, fill=INK)
            top += used
        picture.save(path, format="PNG")


def _thumbnail(frame: Frame) -> Any:
    from PIL import Image

    height = max(1, round(frame.shape[0] * CELL_WIDTH / frame.shape[1]))
    return Image.fromarray(enlarged(frame)).resize((CELL_WIDTH, height), Image.Resampling.LANCZOS)
