"""Writer of TensorBoard event files without TensorBoard: TFRecords of protobuf `Event`s that hold scalars.

The format: https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto (`Event`:
wall_time 1 double, step 2 int64, file_version 3, summary 5) and summary.proto (`Value`: tag 1, simple_value 2 float).
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

_serial = itertools.count()


class EventWriter:
    """Appends scalars to a new event file in a folder; `tensorboard --logdir` finds it there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        unique = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_serial)}"
        self.path = folder / f"events.out.tfevents.{unique}"
        self._stream = self.path.open("xb", buffering=0)
        self._stream.write(_record(_double(1, time.time()) + _bytes(3, b"brain.Event:2")))

    def write(self, step: int, values: Mapping[str, float], *, wall_time: float | None = None) -> None:
        """Append one event with all values of a step, with one write(); NaN and infinity are kept."""
        summary = b"".join(_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items())
        if wall_time is None:
            wall_time = time.time()
        self._stream.write(_record(_double(1, wall_time) + _integer(2, step) + _bytes(5, summary)))

    def close(self) -> None:
        self._stream.close()


def _double(field: int, value: float) -> bytes:
    return struct.pack("<Bd", field << 3 | 1, value)


def _float(field: int, value: float) -> bytes:
    try:
        return struct.pack("<Bf", field << 3 | 5, value)
    except OverflowError:  # beyond float32
        return struct.pack("<Bf", field << 3 | 5, math.copysign(math.inf, value))


def _integer(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _bytes(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _record(content: bytes) -> bytes:
    """Frame an event as a TFRecord: length, its checksum, content, its checksum."""
    length = struct.pack("<Q", len(content))
    return length + masked_crc(length) + content + masked_crc(content)


def masked_crc(content: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc32c_table() -> list[int]:
    table = []
    for entry in range(256):
        for _ in range(8):
            entry = entry >> 1 ^ 0x82F63B78 * (entry & 1)  # Castagnoli's polynomial, reflected
        table.append(entry)
    return table


_CRC32C = _crc32c_table()
