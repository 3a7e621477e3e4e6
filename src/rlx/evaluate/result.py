"""What a repository's own evaluation wrote: figures that are numbers, and its episodes where it tells them.

A result is one JSON object: figures by name, here or under `figures`, and `episodes` as returns or as rows with
`return`, `length`, `success`. Where there are episodes, mean and rates are worked out from them.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx.errors import EvidenceInvalid
from rlx.evaluate.tally import tally

LARGEST_BYTES = 2**26
EPISODES = "episodes"


def read_result(
    path: Path, *, names: Mapping[str, str], episodes: int
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Return figures and episode rows of a result; `names` maps what rlx calls a figure to what the file calls it.

    Raises `EvidenceInvalid` for a result that is missing, unreadable, or of another number of episodes.
    """
    content = _object(path)
    rows = [_row(one, index) for index, one in enumerate(_listed(content.get(EPISODES)))]
    if rows and len(rows) != episodes:
        raise EvidenceInvalid(f"the result is of {len(rows)} episodes; {episodes} were asked for")
    told = {**content, **(content["figures"] if isinstance(content.get("figures"), dict) else {})}
    figures = {name: float(value) for name, value in told.items() if _is_number(value)}
    figures |= {name: figures[theirs] for name, theirs in names.items() if theirs in figures}
    return {**figures, **(_worked_out(rows) if rows else {})}, rows


def _worked_out(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return what the rows say; nothing about lengths and endings where they do not tell them."""
    found = tally([{"length": 0, **row} for row in rows])
    untold = {"terminated_rate", *(() if all("length" in row for row in rows) else ("length_mean",))}
    return {name: value for name, value in found.items() if name not in untold}


def _object(path: Path) -> dict[str, Any]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise EvidenceInvalid(
            "it ended well and wrote no result", hint="does its eval command write {result}?"
        ) from None
    except OSError as error:
        raise EvidenceInvalid(f"its result cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
            raise EvidenceInvalid(f"its result is no file of at most {LARGEST_BYTES} bytes")
        content = stream.read()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise EvidenceInvalid(f"its result is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise EvidenceInvalid("its result is not a JSON object")
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _row(value: Any, index: int) -> dict[str, Any]:
    row = {"return": value} if _is_number(value) else value
    if not isinstance(row, dict) or not _is_number(row.get("return")):
        raise EvidenceInvalid(f"episode {index} of the result has no `return`")
    if not math.isfinite(row["return"]):
        raise EvidenceInvalid(f"episode {index} of the result returned {row['return']}")
    kinds: dict[str, Any] = {"seed": int, "return": (int, float), "length": int, "success": bool}
    return {key: row[key] for key, kind in kinds.items() if isinstance(row.get(key), kind)}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
