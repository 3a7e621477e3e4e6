"""What a repository's own evaluation wrote: figures that are numbers, and its episodes where it tells them.

Usually it is one JSON object: figures by name, here or under `figures`, and `episodes` as returns or as rows with
`return`, `length`, `success` or other figures, whose means are worked out from them. Several lines of JSON or rows of a
table are episodes too, one each, and must be as many as were asked for; where rows have an `episode`, those without one
are figures. Of TensorBoard and of what was printed the last value of each figure counts.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import EvidenceInvalid
from rlx.evaluate.tally import tally
from rlx.runs.reader import as_float, as_number, reader
from rlx.runs.readers.stdout import StdoutReader

if TYPE_CHECKING:
    from rlx.config.schema import Source

LARGEST_BYTES = 2**26
EPISODES, EPISODE = "episodes", "episode"
_NO_STEP = "no_step"  # a result has none
Figures = dict[str, float]
Rows = list[dict[str, Any]]


def read_result(
    path: Path, *, names: Mapping[str, str], episodes: int, source: Source | None = None, printed: str = ""
) -> tuple[Figures, Rows]:
    """Return figures and episode rows of a result; `names` maps what rlx calls a figure to what the file calls it.

    Raises `EvidenceInvalid` for a result that is missing, unreadable, or of another number of episodes.
    """
    kind = "jsonl" if source is None else source.reader
    if kind in ("jsonl", "csv"):
        figures, rows = _of_object(_object(path) if kind == "jsonl" else _table(path), episodes)
    else:
        assert source is not None
        figures, rows = _of_print(printed, source) if kind == "stdout" else _of_tensorboard(path), []
    figures |= _worked_out(rows) if rows else {}
    figures |= {name: figures[theirs] for name, theirs in names.items() if theirs in figures}
    return figures, rows


def _of_object(content: dict[str, Any], episodes: int) -> tuple[Figures, Rows]:
    rows = [_row(one, index) for index, one in enumerate(_listed(content.get(EPISODES)))]
    if rows and len(rows) != episodes:
        raise EvidenceInvalid(
            f"the result is of {len(rows)} episodes; {episodes} were asked for",
            hint="one object of figures, or a line (or a row) an episode: {episodes} of them",
        )
    told = {**content, **(content["figures"] if isinstance(content.get("figures"), dict) else {})}
    return _last(pair for pair in told.items() if _is_number(pair[1])), rows


def _table(path: Path) -> dict[str, Any]:
    table = csv.DictReader(io.StringIO(_content(path).decode("utf-8", "replace")))
    return _of_rows([_last(pair for pair in row.items() if pair[0] is not None) for row in table])


def _of_print(printed: str, source: Source) -> Figures:
    """Return the last value of every figure in what was printed: by the pattern's groups, or as `name: value`."""
    lines = printed.splitlines()
    if source.pattern is None:
        reading = StdoutReader(step=_NO_STEP)
        return _last(pair for point in reading.parse([f"{_NO_STEP}=0", *lines]) for pair in point.values.items())
    matches = (match for line in lines for match in re.finditer(source.pattern, line))
    return _last(pair for match in matches for pair in match.groupdict().items())


def _of_tensorboard(path: Path) -> Figures:
    _refuse_links(path)
    return _last(pair for point in reader("tensorboard").read(path, is_last=True) for pair in point.values.items())


def _last(pairs: Iterable[tuple[str, Any]]) -> Figures:
    return {name: number for name, value in pairs if (number := as_number(value)) is not None}


def _refuse_links(folder: Path) -> None:
    """Refuse a folder that leads elsewhere: whoever wrote it could not read there, and we could."""
    for here, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if not stat.S_ISDIR(mode := os.lstat(f"{here}/{name}").st_mode) and not stat.S_ISREG(mode):
                raise EvidenceInvalid(f"its result has {name}, which is no file")


def _worked_out(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean of every figure that all rows have, and what returns say where they tell them."""
    shared = set(rows[0]).intersection(*rows) - {"seed", EPISODE}
    means = {name: sum(float(row[name]) for row in rows) / len(rows) for name in shared}
    if "return" not in shared:
        return means
    found = tally([{"length": 0, **row} for row in rows])
    untold = {"terminated_rate", *(() if "length" in shared else ("length_mean",))}
    return {**means, **{name: value for name, value in found.items() if name not in untold}}


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, or what its several lines are together."""
    content = _content(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        lines = content.split(b"\n")
        if len([line for line in lines if line.strip()]) < 2:
            raise EvidenceInvalid(f"its result is not JSON: {error}") from None
        return _of_lines(lines)
    if not isinstance(found, dict):
        raise EvidenceInvalid("its result is not a JSON object")
    return found


def _of_lines(lines: Iterable[bytes]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise EvidenceInvalid(f"its result is not JSON: {error}") from None
            rows += [row] if isinstance(row, dict) else []
    return _of_rows(rows)


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as one object: each is an episode, unless it is alone, or only others say that they are."""
    if len(rows) < 2:
        return dict(rows[0]) if rows else {}
    told = [row for row in rows if EPISODE in row]
    figures = {name: value for row in rows if told and EPISODE not in row for name, value in row.items()}
    return {**figures, EPISODES: told or list(rows)}


def _content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise EvidenceInvalid(
            "it ended well and wrote no result", hint="does the eval command write {result}?"
        ) from None
    except OSError as error:
        raise EvidenceInvalid(f"its result cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
            raise EvidenceInvalid(f"its result is no file of at most {LARGEST_BYTES} bytes")
        return stream.read()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _row(value: Any, index: int) -> dict[str, Any]:
    """Return an episode's numbers and claims; a number alone is its return."""
    row = {"return": value} if _is_number(value) else value
    if not isinstance(row, dict):
        raise EvidenceInvalid(f"episode {index} of the result has no `return`")
    kept = {key: one for key, one in row.items() if isinstance(one, (int, float))}
    wrong = {key: value for key, one in kept.items() if not math.isfinite(value := as_float(one))}
    if list(wrong) == ["return"]:
        raise EvidenceInvalid(f"episode {index} of the result returned {wrong['return']}")
    if not kept or wrong:
        name, value = next(iter(wrong.items()), ("", math.nan))
        what = f"{value} as `{name}`" if wrong else "no figures"
        raise EvidenceInvalid(f"episode {index} of the result has {what}")
    return kept


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
