"""How a command prints: data on stdout, messages on stderr, colour only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from rlx import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from rlx.errors import RlxError

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_STATE_COLOURS = {
    "completed": "green", "running": "cyan", "failed": "red", "lost": "red", "interrupted": "yellow", "prepared": "dim",
    "queued": "cyan",
}  # fmt: skip
VERDICT_COLOURS = {"better": "green", "worse": "red", "inconclusive": "yellow", "invalid": "red"}
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the direction of text, or end a line."""
_ESCAPED = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(0x7F, 0xA0), *_DIRECTIONS)
            if chr(code) not in "\n\t"}  # fmt: skip
_OWN_LABELS = ("hint:", "next:", "error:", "note:")


def harmless(text: str) -> str:
    """Return text that cannot control a terminal: control characters are escaped, and no line looks like rlx's own."""
    first, *rest = text.translate(_ESCAPED).split("\n")
    indented = [f"  {line}" if line.lower().startswith(_OWN_LABELS) else line for line in rest]
    return "\n".join([first, *indented])


def plain(data: Any) -> Any:
    """Return a command's data with every text harmless: candidates, jobs and logs wrote much of it."""
    if isinstance(data, str):
        return harmless(data)
    if isinstance(data, dict):
        return {plain(key): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    return data


def has_colour(stream: object = None) -> bool:
    """Return whether a stream is a terminal with colour: neither NO_COLOR nor a dumb terminal."""
    is_terminal = getattr(stream or sys.stdout, "isatty", lambda: False)()
    return bool(is_terminal) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """Return `text` in a colour if stdout is a terminal."""
    if not has_colour():
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def paint_state(state: str) -> str:
    """Return a run's state in its colour."""
    return paint(state, _STATE_COLOURS.get(state, "dim"))


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr, flush=True)


def exit_code_if(is_bad: object, error: type[RlxError]) -> int:
    """Return the exit code of an error if something is bad, otherwise 0."""
    if is_bad:
        return error.exit_code
    return 0


def labelled(values: Mapping[str, object]) -> str:
    """Spell values as lines `label: value`; a list gives one line per item, None and empty values give no line."""
    lines = []
    for label, value in values.items():
        items = value
        if not isinstance(value, (list, tuple)):
            items = [value]
        lines += [f"{label}: {item}" for item in items if item not in (None, "")]  # type: ignore[attr-defined]
    return "\n".join(lines)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lay out rows under a header; the columns in `right` are aligned right, and no cell is shortened."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        for column in right:
            padded[column] = row[column].rjust(widths[column])
        lines.append(_paint_states("  ".join(padded).rstrip(), row))
    lines[0] = paint(lines[0], "bold")
    return "\n".join(lines)


def _paint_states(line: str, row: Sequence[str]) -> str:
    for cell in row:
        if cell in _STATE_COLOURS and has_colour():
            return line.replace(cell, paint(cell, _STATE_COLOURS[cell]), 1)
    return line
