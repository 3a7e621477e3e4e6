"""Read the result of a repository's own evaluation: figures that are numbers, and episodes if it reports them.

Usually it is one JSON object: figures by name, at the top or under `figures`, and `episodes` as returns or as rows with
`return`, `length`, `success` or other figures. rlx computes the means of those. Several JSON lines or rows of a table
are also episodes, one each, and must be as many as requested. If some rows have an `episode`, the others are figures.
For TensorBoard, rlx uses the last value of each figure. A printed figure must have one value: if several lines say
different ones, rlx does not choose.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import EvidenceInvalid
from rlx.evaluate.episode_metrics import summarize_rows
from rlx.runs.readers.reader import as_float, as_number, reader
from rlx.runs.readers.stdout import StdoutReader

if TYPE_CHECKING:
    from rlx.config.schema import Source

LARGEST_BYTES = 2**26
MOST_LINES = 5
LONGEST_LINE = 100
EPISODES, EPISODE = "episodes", "episode"
_NO_STEP = "no_step"  # a result has none
Figures = dict[str, float]
Rows = list[dict[str, Any]]


def read_result(
    path: Path,
    *,
    names: Mapping[str, str],
    episodes: int | None,
    source: Source | None = None,
    printed: str = "",
    metric: str = "",
) -> tuple[Figures, Rows]:
    """Return figures and episode rows of a result. `names` maps rlx's name of a figure to the file's name.

    `episodes` is None if the command chooses their number. `metric` and the named figures must be unambiguous.
    Raises `EvidenceInvalid` if the result is missing, unreadable, or has another number of episodes.
    """
    rows: Rows = []
    if source is None or source.reader == "jsonl":
        figures, rows = _of_object(_object(path), episodes)
    elif source.reader == "csv":
        figures, rows = _of_object(_table(path), episodes)
    elif source.reader == "stdout":
        figures = _of_print(printed, source, needed={names.get(metric, metric), *names.values()})
    else:
        figures = _of_tensorboard(path)
    if rows:
        figures |= _means(rows)
    figures |= {name: figures[own_name] for name, own_name in names.items() if own_name in figures}
    return figures, rows


def _of_object(content: dict[str, Any], episodes: int | None) -> tuple[Figures, Rows]:
    episode_rows = content.get(EPISODES)
    rows: Rows = []
    if isinstance(episode_rows, list):
        rows = [_row(row, index) for index, row in enumerate(episode_rows)]
    if rows and episodes is not None and len(rows) != episodes:
        raise EvidenceInvalid(
            f"the result has {len(rows)} episodes instead of {episodes}",
            hint="write one object of figures, or one line (or row) per episode: {episodes} of them",
        )
    if isinstance(content.get("figures"), dict):
        content = {**content, **content["figures"]}
    return _last(pair for pair in content.items() if _is_number(pair[1])), rows


def _table(path: Path) -> dict[str, Any]:
    table = csv.DictReader(io.StringIO(_content(path).decode("utf-8", "replace")))
    return _of_rows([_last(pair for pair in row.items() if pair[0] is not None) for row in table])


def _of_print(printed: str, source: Source, *, needed: Collection[str]) -> Figures:
    """Return every printed figure that has one value: by the pattern's groups, or as `name: value`.

    Raises `EvidenceInvalid` for a needed figure, or a group, with several values.
    """
    found: dict[str, dict[float, tuple[int, str]]] = {}
    required = set(needed)
    if source.pattern is not None:
        required |= set(re.compile(source.pattern).groupindex)
    for number, line in enumerate(printed.splitlines(), 1):
        for name, value in _printed_pairs(line, source.pattern):
            found.setdefault(name, {}).setdefault(value, (number, line))
    for name in sorted(required & found.keys()):
        if len(found[name]) > 1:
            raise _ambiguous(name, list(found[name].values()))
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _printed_pairs(line: str, pattern: str | None) -> Iterator[tuple[str, float]]:
    if pattern is None:
        for point in StdoutReader(step=_NO_STEP).parse([f"{_NO_STEP}=0", line]):
            yield from point.values.items()
        return
    for match in re.finditer(pattern, line):
        yield from _last(match.groupdict().items()).items()


def _ambiguous(name: str, places: Sequence[tuple[int, str]]) -> EvidenceInvalid:
    shown = "; ".join(f"line {number}: {line.strip()[:LONGEST_LINE]}" for number, line in places[:MOST_LINES])
    more = f"; and {len(places) - MOST_LINES} more" if len(places) > MOST_LINES else ""
    return EvidenceInvalid(
        f"its output has {len(places)} different values of `{name}` ({shown}{more})",
        hint="print it once, or write a pattern that matches the right line only (adapter.result.pattern)",
    )


def _of_tensorboard(path: Path) -> Figures:
    _refuse_links(path)
    return _last(pair for point in reader("tensorboard").read(path, is_last=True) for pair in point.values.items())


def _last(pairs: Iterable[tuple[str, Any]]) -> Figures:
    return {name: number for name, value in pairs if (number := as_number(value)) is not None}


def _refuse_links(folder: Path) -> None:
    """Refuse links in a folder: the sandboxed command could not read their targets, but rlx could."""
    for here, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if not stat.S_ISDIR(mode := os.lstat(f"{here}/{name}").st_mode) and not stat.S_ISREG(mode):
                raise EvidenceInvalid(f"its result has {name}, which is not a file")


def _means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the mean of every figure that all rows have, and all figures of the returns if they have returns."""
    shared = set(rows[0]).intersection(*rows) - {"seed", EPISODE}
    means = {name: sum(float(row[name]) for row in rows) / len(rows) for name in shared}
    if "return" not in shared:
        return means
    figures = summarize_rows([{"length": 0, **row} for row in rows])
    del figures["terminated_rate"]  # the rows do not say how they ended
    if "length" not in shared:
        del figures["length_mean"]
    return {**means, **figures}


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, or of its several lines together."""
    content = _content(path)
    try:
        result = json.loads(content)
    except (ValueError, RecursionError) as error:
        lines = content.split(b"\n")
        if len([line for line in lines if line.strip()]) < 2:
            raise EvidenceInvalid(f"its result is not JSON: {error}") from None
        return _of_lines(lines)
    if not isinstance(result, dict):
        raise EvidenceInvalid("its result is not a JSON object")
    return result


def _of_lines(lines: Iterable[bytes]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for line in lines:
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise EvidenceInvalid(f"its result is not JSON: {error}") from None
            if isinstance(row, dict):
                rows.append(row)
    return _of_rows(rows)


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return rows as one object. Each is an episode, unless it is the only row or only others have an `episode`."""
    if not rows:
        return {}
    if len(rows) == 1:
        return dict(rows[0])
    episodes = [row for row in rows if EPISODE in row]
    if not episodes:
        return {EPISODES: list(rows)}
    figures = {name: value for row in rows if EPISODE not in row for name, value in row.items()}
    return {**figures, EPISODES: episodes}


def _content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise EvidenceInvalid(
            "it succeeded but wrote no result", hint="check that the eval command writes {result}"
        ) from None
    except OSError as error:
        raise EvidenceInvalid(f"its result cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
            raise EvidenceInvalid(f"its result is not a file of at most {LARGEST_BYTES} bytes")
        return stream.read()


def _row(value: Any, index: int) -> dict[str, Any]:
    """Return an episode's numbers. A single number is its return."""
    if _is_number(value):
        value = {"return": value}
    if not isinstance(value, dict):
        raise EvidenceInvalid(f"episode {index} of the result has no `return`")
    row = {key: item for key, item in value.items() if isinstance(item, (int, float))}
    if not row:
        raise EvidenceInvalid(f"episode {index} of the result has no figures")
    for key, item in row.items():
        if not math.isfinite(number := as_float(item)):
            raise EvidenceInvalid(f"episode {index} of the result has {number} as `{key}`")
    return row


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
