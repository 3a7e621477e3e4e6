"""Figures drawn onto a frame: the step, the reward now and in total, and the terms it is made of."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.episode import Lane

if TYPE_CHECKING:
    from PIL import ImageFont

Frame = NDArray[np.uint8]

READABLE_HEIGHT = 360
"""Frames lower than this are enlarged by a whole number before anything is written on them."""
MOST_TERMS = 8
INK, PAPER = (255, 255, 255, 255), (0, 0, 0, 150)


def overlaid(frame: Frame, lane: Lane) -> Frame:
    """Return the frame with the lane's figures in its upper left corner."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(enlarged(frame)).convert("RGBA")
    layer = Image.new("RGBA", picture.size)
    draw, letters = ImageDraw.Draw(layer), font(max(11, picture.height // 28))
    rows = _rows(lane)
    line, gap = round(letters.size * 1.3), round(letters.size * 0.5)
    widths = [max(draw.textlength(row[column], font=letters) for row in rows) for column in range(3)]
    edges = [gap + widths[0], 2.5 * gap + widths[0] + widths[1], 4 * gap + sum(widths)]
    draw.rectangle((0, 0, edges[2] + gap, line * len(rows) + gap), fill=PAPER)
    for number, (name, now, total) in enumerate(rows):
        y = gap // 2 + number * line
        draw.text((gap, y), name, font=letters, fill=INK)
        draw.text((edges[1], y), now, font=letters, fill=INK, anchor="ra")
        draw.text((edges[2], y), total, font=letters, fill=INK, anchor="ra")
    return np.asarray(Image.alpha_composite(picture, layer).convert("RGB"))


def enlarged(frame: Frame) -> Frame:
    """Return a small frame as large as it must be to write on it; its pixels become squares."""
    factor = -(-READABLE_HEIGHT // frame.shape[0])
    return frame if factor == 1 else frame.repeat(factor, axis=0).repeat(factor, axis=1)


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's own font."""
    from PIL import ImageFont

    found = ImageFont.load_default(size)
    assert isinstance(found, ImageFont.FreeTypeFont)
    return found


def _rows(lane: Lane) -> list[tuple[str, str, str]]:
    rows = [(f"step {lane.length}", "now", "total"), ("reward", f"{lane.reward:+.3g}", f"{lane.total:.4g}")]
    shown = list(lane.terms)[:MOST_TERMS]
    rows += [(term, f"{lane.last_terms.get(term, 0.0):+.3g}", f"{lane.terms[term]:.4g}") for term in shown]
    more = len(lane.terms) - len(shown)
    return [*rows, (f"and {more} more", "", "")] if more else rows
