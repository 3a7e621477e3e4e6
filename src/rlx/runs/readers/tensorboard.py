"""TensorBoard: the scalars of all event files in a folder, read without TensorFlow or TensorBoard.

The format is that of `runs.tensorboard`. Of tensors only those of one number are scalars (TensorFlow 2 writes those);
histograms, images and texts are no figures. Where several folders hold event files, the first one's tags stand as they
are, the others' after the name of their folder.
What is not covered: compressed event files, and event files on object stores.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rlx.runs.reader import STEP, Point
from rlx.runs.tensorboard import masked_crc

MARK = "tfevents"
LARGEST_RECORD = 256 * 2**20
CHECKED_BYTES = 4096
"""Longer records (images) are not checked byte by byte: that takes longer than reading them."""
_HEAD = 12
_FLOATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
"""TensorFlow's numbers of the types a scalar may have."""
_PACKED = {5: "<f", 6: "<d"}
_INTEGERS = (7, 10)


@dataclass
class _File:
    """An event file and how far it was read; a damaged one is read no further."""

    path: Path
    prefix: str
    offset: int = 0
    is_damaged: bool = False
    names: dict[str, None] = field(default_factory=dict)

    def records(self) -> Iterator[bytes]:
        """Yield the whole records that are new."""
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
    """Reads event files that grow; new ones that appear are read, too."""

    name = "tensorboard"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._files: dict[Path, _File] = {}
        self._home: Path | None = None

    def claims(self, path: Path) -> bool:
        """Say whether a path is an event file or a folder that has some."""
        return bool(_event_files(path))

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points, a scalar each, in the order they were written."""
        for found in _event_files(path):
            if found not in self._files:
                self._files[found] = _File(found, self._prefix(found, path))
        points = [one for file in self._files.values() for record in file.records() for one in _points(record, file)]
        self.names |= dict.fromkeys(name for one in points for name in one.values)
        return points

    @property
    def damaged(self) -> list[Path]:
        """Return the files that could not be read to their ends."""
        return [file.path for file in self._files.values() if file.is_damaged]

    def _prefix(self, file: Path, top: Path) -> str:
        self._home = self._home or file.parent
        if file.parent == self._home:
            return ""
        return f"{file.parent.relative_to(top).as_posix()}/" if file.parent != top else ""


def _event_files(path: Path) -> list[Path]:
    """Return the event files at or below a path, the oldest first: their names begin with their time."""
    if path.is_dir():
        return sorted(path.rglob(f"*{MARK}*"), key=lambda file: (file.name, str(file)))
    return [path] if MARK in path.name and path.is_file() else []


def _points(record: bytes, file: _File) -> Iterator[Point]:
    event = dict(_fields(record))
    summary = event.get(5)
    if not isinstance(summary, bytes):
        return
    clock, step = event.get(1), event.get(2, 0)
    time = struct.unpack("<d", clock)[0] if isinstance(clock, bytes) and len(clock) == 8 else None
    at = _signed(step) if isinstance(step, int) else None
    for number, value in _fields(summary):
        if number == 1 and isinstance(value, bytes) and at is not None:
            parts = dict(_fields(value))
            tag, scalar = parts.get(1), _scalar(parts)
            if isinstance(tag, bytes) and scalar is not None:
                yield Point(at, {file.prefix + tag.decode("utf-8", "replace"): scalar}, time)


def _scalar(parts: dict[int, int | bytes]) -> float | None:
    """Return a summary value's number: `simple_value`, or a tensor of one element."""
    simple, tensor = parts.get(2), parts.get(8)
    if isinstance(simple, bytes) and len(simple) == 4:
        return float(struct.unpack("<f", simple)[0])
    return _of_tensor(dict(_fields(tensor))) if isinstance(tensor, bytes) else None


def _of_tensor(tensor: dict[int, int | bytes]) -> float | None:
    kind, content = _FLOATS.get(int(tensor.get(1, 0)) if isinstance(tensor.get(1, 0), int) else 0), tensor.get(4)
    if kind and isinstance(content, bytes) and len(content) == struct.calcsize(kind):
        return float(struct.unpack(kind, content)[0])
    for number, packed in _PACKED.items():
        value = tensor.get(number)
        if isinstance(value, bytes) and len(value) == struct.calcsize(packed):
            return float(struct.unpack(packed, value)[0])
    for number in _INTEGERS:
        value = tensor.get(number)
        if isinstance(value, bytes):  # packed: one varint
            whole, end = _varint(value, 0)
            return float(_signed(whole)) if end == len(value) else None
        if isinstance(value, int):
            return float(_signed(value))
    return None


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


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
            return  # no message of this kind
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
