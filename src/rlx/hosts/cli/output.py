"""What a command says: data on stdout, talk on stderr, colour only where a person looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rlx import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_STATE_COLOURS = {
    "completed": "green", "running": "cyan", "failed": "red", "lost": "red", "interrupted": "yellow", "prepared": "dim",
}  # fmt: skip


_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Signs that turn the direction of text around, or end a line."""
_ESCAPED = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(0x7F, 0xA0), *_DIRECTIONS)
            if chr(code) not in "\n\t"}  # fmt: skip
_OWN_WORDS = ("hint:", "next:", "error:", "note:")


def harmless(text: str) -> str:
    """Return text that a terminal only shows: control characters are spelt, and no line of it looks like rlx's own."""
    first, *rest = text.translate(_ESCAPED).split("\n")
    return "\n".join([first, *(f"  {line}" if line.lower().startswith(_OWN_WORDS) else line for line in rest)])


def plain(data: Any) -> Any:
    """Return a command's data with every text of it harmless: much of it was written by candidates, jobs and logs."""
    if isinstance(data, str):
        return harmless(data)
    if isinstance(data, dict):
        return {plain(key): plain(value) for key, value in data.items()}
    return [plain(value) for value in data] if isinstance(data, (list, tuple)) else data


def has_colour(stream: object = None) -> bool:
    """Say whether colour may be used: a TTY, and neither NO_COLOR nor a dumb terminal."""
    target = stream or sys.stdout
    is_tty = getattr(target, "isatty", lambda: False)()
    return bool(is_tty) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """Return `text` in a colour where stdout takes it."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if has_colour() else text


def paint_state(state: str, *, width: int = 0) -> str:
    """Return a run's state, padded, in its colour."""
    return paint(state.ljust(width), _STATE_COLOURS.get(state, "dim"))


def say(text: str) -> None:
    """Talk to the person, on stderr."""
    print(text, file=sys.stderr, flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lay out rows under a header; columns listed in `right` are aligned right, nothing is cut."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for index, row in enumerate(cells):
        padded = [cell.rjust(width) if column in right else cell.ljust(width)
                  for column, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        line = "  ".join(padded).rstrip()
        lines.append(paint(line, "bold") if index == 0 else _paint_states(line, row))
    return "\n".join(lines)


def _paint_states(line: str, row: Sequence[str]) -> str:
    for cell in row:
        if cell in _STATE_COLOURS and has_colour():
            return line.replace(cell, paint(cell, _STATE_COLOURS[cell]), 1)
    return line
