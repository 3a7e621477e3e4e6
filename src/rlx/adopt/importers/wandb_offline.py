"""Offline W&B runs: `run-ID.wandb`, a LevelDB log of protobuf records. A torn tail ends the reading with a note.

Only the fields of the history, the config, the run and its exit are read. Nothing is uploaded and no library is needed.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, name_and_seed, seed_of
from rlx.runs.readers.reader import Point, as_number

MAGIC = b":W&B"
HEADER = 7
BLOCK = 32768
RECORD_HEADER = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
LARGEST = 4 * 2**30
_HISTORY, _CONFIG, _RUN, _EXIT = 2, 5, 17, 18
"""The numbers of the record's fields."""
_VALUE_JSON = 16


class WandbImporter:
    """Reads offline W&B runs."""

    name = "wandb"

    def claims(self, path: Path) -> bool:
        """Return whether there is a file that starts with W&B's mark."""
        for file in files_below(path, "*.wandb")[:20]:
            with file.open("rb") as stream:
                if stream.read(len(MAGIC)) == MAGIC:
                    return True
        return False

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield one run per file."""
        for file in files_below(path, "*.wandb"):
            if file.stat().st_size > LARGEST:
                continue
            yield _run(file)


def _run(file: Path) -> ForeignRun:
    run = ForeignRun(file.stem.removeprefix("run-"), file.name, state="interrupted")
    points: list[Point] = []
    try:
        for record in records(file, run.notes):
            for field, value in fields(record):
                if field == _HISTORY and isinstance(value, bytes):
                    point = _history(value, len(points))
                    if point is not None:
                        points.append(point)
                elif field == _CONFIG and isinstance(value, bytes):
                    _configure(value, run)
                elif field == _RUN and isinstance(value, bytes):
                    _describe(value, run)
                elif field == _EXIT and isinstance(value, bytes):
                    code = next((number for key, number in fields(value) if key == 1), 0)
                    run.state = "failed" if code else "completed"
    except ValueError as error:
        run.notes.append(f"{file.name} is damaged: {error}; the rows before that were read")
    run.points = merged(points)
    if run.seed is None:
        run.seed = seed_of(run.config)
    return run


def records(file: Path, notes: list[str]) -> Iterator[bytes]:
    """Yield the records of a LevelDB log; a record that is cut off at the end gives a note."""
    with file.open("rb") as stream:
        if stream.read(HEADER)[: len(MAGIC)] != MAGIC:
            raise ValueError("it does not start with W&B's mark")
        offset = HEADER
        parts: list[bytes] = []
        while True:
            left = BLOCK - offset % BLOCK
            if left < RECORD_HEADER:
                stream.seek(left, 1)
                offset += left
                continue
            head = stream.read(RECORD_HEADER)
            if len(head) < RECORD_HEADER:
                if head or parts:
                    notes.append(f"{file.name} ends in the middle of a record: the last one is lost")
                return
            checksum, length, kind = struct.unpack("<IHB", head)
            body = stream.read(length)
            offset += RECORD_HEADER + len(body)
            if len(body) < length:
                notes.append(f"{file.name} ends in the middle of a record: the last one is lost")
                return
            if zlib.crc32(body, zlib.crc32(bytes([kind]))) != checksum:
                raise ValueError("a checksum is wrong")
            if kind in (FULL, FIRST):
                parts = []
            parts.append(body)
            if kind in (FULL, LAST):
                yield b"".join(parts)
                parts = []


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the field numbers and raw values of a protobuf message."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == 0:
            number, at = _varint(message, at)
            yield tag >> 3, number
        elif kind == 2:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("a field is longer than its record")
            yield tag >> 3, message[at : at + length]
            at += length
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            raise ValueError(f"a field has the unknown kind {kind}")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ValueError("a number is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number is too long")


def _items(message: bytes, item_field: int) -> Iterator[tuple[str, Any]]:
    """Yield the keys and decoded JSON values of a history or config record."""
    for field, value in fields(message):
        if field != item_field or not isinstance(value, bytes):
            continue
        key = ""
        text = b""
        nested: list[str] = []
        for inner, content in fields(value):
            if inner == 1 and isinstance(content, bytes):
                key = content.decode("utf-8", "replace")
            elif inner == 2 and isinstance(content, bytes):
                nested.append(content.decode("utf-8", "replace"))
            elif inner == _VALUE_JSON and isinstance(content, bytes):
                text = content
        try:
            yield key or ".".join(nested), json.loads(text)
        except (ValueError, RecursionError):
            continue


def _history(message: bytes, count: int) -> Point | None:
    values: dict[str, float] = {}
    step = count
    time = None
    for field, value in fields(message):
        if field == 2 and isinstance(value, bytes):
            step = next((number for key, number in fields(value) if key == 1 and isinstance(number, int)), step)
    for key, value in _items(message, 1):
        number = as_number(value)
        if key == "_step" and number is not None:
            step = int(number)
        elif key == "_timestamp":
            time = number
        elif number is not None and not key.startswith("_"):
            values[key] = number
    if not values:
        return None
    step_key = next((key for key in ("global_step", "time/total_timesteps", "total_timesteps") if key in values), None)
    if step_key is not None:
        step = int(values[step_key])
    return Point(step, values, time)


def _configure(message: bytes, run: ForeignRun) -> None:
    for key, value in _items(message, 1):
        if key and key != "_wandb":
            run.config[key] = value


def _describe(message: bytes, run: ForeignRun) -> None:
    texts = {number: value.decode("utf-8", "replace") for number, value in fields(message) if isinstance(value, bytes)}
    group = texts.get(6) or ""
    display = texts.get(8) or texts.get(1) or run.name
    name, seed = name_and_seed(group or display)
    run.name = name
    if seed is not None:
        run.seed = seed
    run.lineage = {"wandb_id": texts.get(1, ""), "project": texts.get(3, ""), "display_name": texts.get(8, "")}
    config = next((value for number, value in fields(message) if number == 4 and isinstance(value, bytes)), None)
    if config is not None:
        _configure(config, run)
