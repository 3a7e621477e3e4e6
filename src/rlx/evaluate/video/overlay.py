"""Draw figures onto a frame: the step, the current and the total reward, and the reward terms."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.episode import EpisodeRunner

if TYPE_CHECKING:
    from PIL import ImageFont

Frame = NDArray[np.uint8]

# Lower frames are enlarged by an integer factor before figures are drawn onto them.
READABLE_HEIGHT = 360
MOST_TERMS = 8
TEXT_COLOUR = (255, 255, 255, 255)
BACKGROUND = (0, 0, 0, 150)


def overlaid(frame: Frame, runner: EpisodeRunner) -> Frame:
    """Return the frame with the current figures in its upper left corner."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(enlarged(frame)).convert("RGBA")
    layer = Image.new("RGBA", picture.size)
    draw = ImageDraw.Draw(layer)
    letters = font(max(11, picture.height // 28))
    rows = _rows(runner)
    line = round(letters.size * 1.3)
    gap = round(letters.size * 0.5)
    widths = [max(draw.textlength(row[column], font=letters) for row in rows) for column in range(3)]
    edges = [gap + widths[0], 2.5 * gap + widths[0] + widths[1], 4 * gap + sum(widths)]
    draw.rectangle((0, 0, edges[2] + gap, line * len(rows) + gap), fill=BACKGROUND)
    for number, (name, now, total) in enumerate(rows):
        y = gap // 2 + number * line
        draw.text((gap, y), name, font=letters, fill=TEXT_COLOUR)
        draw.text((edges[1], y), now, font=letters, fill=TEXT_COLOUR, anchor="ra")
        draw.text((edges[2], y), total, font=letters, fill=TEXT_COLOUR, anchor="ra")
    return np.asarray(Image.alpha_composite(picture, layer).convert("RGB"))


def enlarged(frame: Frame) -> Frame:
    """Return a small frame large enough to draw text on it. Its pixels become squares."""
    factor = -(-READABLE_HEIGHT // frame.shape[0])
    return frame.repeat(factor, axis=0).repeat(factor, axis=1)


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Return Pillow's own font."""
    from PIL import ImageFont

    found = ImageFont.load_default(size)
    assert isinstance(found, ImageFont.FreeTypeFont)
    return found


def _rows(runner: EpisodeRunner) -> list[tuple[str, str, str]]:
    rows = [(f"step {runner.length}", "now", "total"), ("reward", f"{runner.reward:+.3g}", f"{runner.total:.4g}")]
    for term in list(runner.terms)[:MOST_TERMS]:
        rows.append((term, f"{runner.last_terms.get(term, 0.0):+.3g}", f"{runner.terms[term]:.4g}"))
    if len(runner.terms) > MOST_TERMS:
        rows.append((f"and {len(runner.terms) - MOST_TERMS} more", "", ""))
    return rows
