"""Reader of TensorBoard logs: the scalars of all event files in a folder, without TensorFlow or TensorBoard.

The format is that of `runs.tensorboard_writer`. A tensor with one element is a scalar too (TensorFlow 2 writes those);
histograms, images and texts are skipped. If several folders hold event files, the first folder's tags keep their names
and the others get their folder's name as a prefix.
Not covered: compressed event files, and event files on object stores.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlx.runs.readers.reader import STEP, Point
from rlx.runs.tensorboard_writer import masked_crc

MARK = "tfevents"
LARGEST_RECORD = 256 * 2**20
CHECKED_BYTES = 4096
"""Longer records (images) are not checked: computing their checksum takes longer than reading them."""
_HEAD = 12
_FLOATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
"""TensorFlow's type numbers of scalars, with their struct formats."""
_PACKED = {5: "<f", 6: "<d"}
_INTEGERS = (7, 10)


@dataclass
class _File:
    """An event file and the position in it; a damaged file is not read any further."""

    path: Path
    prefix: str
    offset: int = 0
    is_damaged: bool = False
    names: dict[str, None] = field(default_factory=dict)

    def records(self) -> Iterator[bytes]:
        """Yield the new complete records."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            content = stream.read()
        at = 0
        while not self.is_damaged and len(content) - at >= _HEAD:
            (length,) = struct.unpack_from("<Q", content, at)
            if content[at + 8 : at + _HEAD] != masked_crc(content[at : at + 8]) or length > LARGEST_RECORD:
                self.is_damaged = True
                break
            end = at + _HEAD + length + 4
            if end > len(content):
                break
            record = content[at + _HEAD : end - 4]
            if length <= CHECKED_BYTES and content[end - 4 : end] != masked_crc(record):
                self.is_damaged = True
                break
            at = end
            yield record
        self.offset += at


class TensorboardReader:
    """Reads event files that grow, and new files as they appear."""

    name = "tensorboard"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._files: dict[Path, _File] = {}
        self._home: Path | None = None

    def claims(self, path: Path) -> bool:
        """Return whether a path is an event file or a folder with event files."""
        return bool(_event_files(path))

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points, one scalar each, in the order they were written."""
        for event_file in _event_files(path):
            if event_file not in self._files:
                self._files[event_file] = _File(event_file, self._prefix(event_file, path))
        points: list[Point] = []
        for file in self._files.values():
            for record in file.records():
                points += _points(record, file)
        self.names |= dict.fromkeys(name for point in points for name in point.values)
        return points

    @property
    def damaged(self) -> list[Path]:
        """The files that could not be read to their end."""
        return [file.path for file in self._files.values() if file.is_damaged]

    def _prefix(self, file: Path, top: Path) -> str:
        self._home = self._home or file.parent
        if file.parent in (self._home, top):
            return ""
        return f"{file.parent.relative_to(top).as_posix()}/"


def _event_files(path: Path) -> list[Path]:
    """Return the event files at or below a path, oldest first: their names start with their time."""
    if path.is_dir():
        return sorted(path.rglob(f"*{MARK}*"), key=lambda file: (file.name, str(file)))
    return [file for file in [path] if MARK in file.name and file.is_file()]


def _points(record: bytes, file: _File) -> Iterator[Point]:
    event = dict(_fields(record))
    summary = event.get(5)
    if not isinstance(summary, bytes):
        return
    step = event.get(2, 0)
    if not isinstance(step, int):
        return
    time = _unpack("<d", event.get(1))
    for number, value in _fields(summary):
        if number == 1 and isinstance(value, bytes):
            parts = dict(_fields(value))
            tag = parts.get(1)
            scalar = _scalar(parts)
            if isinstance(tag, bytes) and scalar is not None:
                yield Point(_signed(step), {file.prefix + tag.decode("utf-8", "replace"): scalar}, time)


def _scalar(parts: dict[int, int | bytes]) -> float | None:
    """Return a summary value's number: `simple_value`, or a tensor of one element."""
    simple = _unpack("<f", parts.get(2))
    tensor = parts.get(8)
    if simple is None and isinstance(tensor, bytes):
        return _tensor_scalar(dict(_fields(tensor)))
    return simple


def _unpack(form: str, content: int | bytes | None) -> float | None:
    if isinstance(content, bytes) and len(content) == struct.calcsize(form):
        return float(struct.unpack(form, content)[0])
    return None


def _tensor_scalar(tensor: dict[int, int | bytes]) -> float | None:
    dtype = tensor.get(1, 0)
    if isinstance(dtype, int) and dtype in _FLOATS:
        value = _unpack(_FLOATS[dtype], tensor.get(4))
        if value is not None:
            return value
    for number, form in _PACKED.items():
        value = _unpack(form, tensor.get(number))
        if value is not None:
            return value
    for number in _INTEGERS:
        content = tensor.get(number)
        if isinstance(content, int):
            return float(_signed(content))
        if isinstance(content, bytes):  # packed: one varint
            whole, end = _varint(content, 0)
            if end == len(content):
                return float(_signed(whole))
            return None
    return None


def _signed(value: int) -> int:
    if value >= 2**63:
        return value - 2**64
    return value


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protocol-buffer message: varints as numbers, everything else as bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, at = _varint(content, at)
        if length is None or at + length > len(content):
            return  # not a message of this kind
        yield key >> 3, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content) and shift < 70:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return value, len(content)
