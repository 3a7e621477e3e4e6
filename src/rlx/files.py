"""Files that survive a crash: atomic write, append, lock, hash, and JSON that keeps NaN and infinity.

What is not covered: power loss on disks that lie about fsync, and append atomicity on NFS (one writer a file there).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from rlx.errors import FileDamaged, UsageError

_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_DUMP = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
LARGEST, LONGEST_LINE = 2**30, 2**24
"""The most bytes that are read of a file, and of one of its lines; more is nothing that rlx wrote."""


def encode(value: object) -> bytes:
    """Return `value` as JSON; NaN and ±infinity become the strings "NaN", "Infinity", "-Infinity"."""
    try:
        text = orjson.dumps(value, option=_DUMP)
    except orjson.JSONEncodeError:  # a file name that is not UTF-8, or a mistake that `_spell` does not mend
        return orjson.dumps(_spell(value), option=_DUMP)
    return orjson.dumps(_spell(value), option=_DUMP) if b"null" in text else text


def encode_pretty(value: object) -> bytes:
    """Return `value` as indented JSON with a final newline, for files that people open."""
    return orjson.dumps(_spell(value), option=_DUMP | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode(text: bytes | str) -> Any:
    """Parse JSON as written by `encode`; the three words stay strings (see `number`)."""
    return orjson.loads(text)


def number(value: object) -> float:
    """Return a metric value as float, reading the three non-finite words back."""
    return _NON_FINITE[value] if isinstance(value, str) else float(value)  # type: ignore[arg-type]


def is_number(value: object) -> bool:
    """Say whether `number` can read `value`."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)) or (
        isinstance(value, str) and value in _NON_FINITE
    )


def _spell(value: Any) -> Any:
    """Put words for what JSON cannot hold: numbers that are not finite, and bytes of file names that are not UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spell(key): _spell(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spell(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if hasattr(value, "tolist"):  # NumPy scalar or array, without importing NumPy
        return _spell(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: readers see the old file or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        write_durable(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new file beside `path` that takes its place when the block ends well; says so where none can be made."""
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary.touch()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint="name another file with --out") from error
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_durable(path: Path, content: bytes) -> None:
    """Write and fsync a file that nobody reads yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: object) -> None:
    """Replace `path` by `value` as readable JSON, atomically."""
    write_atomic(path, encode_pretty(value))


@contextlib.contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """Open a plain file; a pipe, a device or a folder in its place is damage that is never waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        refuse_special(descriptor, path)
        stream = os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
    with stream:
        yield stream


def refuse_special(descriptor: int, path: Path) -> None:
    """Raise `FileDamaged` where what was opened is no plain file, or is larger than anything that rlx writes."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise FileDamaged(f"{path.parent.name}/{path.name} is not a plain file")
    if found.st_size > LARGEST:
        raise FileDamaged(f"{path.parent.name}/{path.name} is larger than {LARGEST // 2**20} MB")


def read_bytes(path: Path) -> bytes:
    """Return the content of a plain file, see `reading`."""
    with reading(path) as stream:
        return stream.read()


def read_json(path: Path) -> Any:
    """Parse a JSON file; a bad one raises `FileDamaged`, which names it."""
    content = read_bytes(path)
    try:
        return orjson.loads(content)
    except ValueError as error:
        raise FileDamaged(f"{path.parent.name}/{path.name} is not valid JSON: {error}") from None


def sync_folder(folder: Path) -> None:
    """Make renames and creations inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Never through a link: a job could leave one in its run that leads to a ledger."""


def open_append(path: Path) -> int:
    """Open a JSONL file for appending, after trimming a torn last line, and return the descriptor."""
    descriptor = os.open(path, _APPEND, 0o644)
    try:
        refuse_special(descriptor, path)
        trim_torn_tail(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def append_row(descriptor: int, row: bytes) -> None:
    """Append one line with one write(); a short write is taken back and raised as a full disk."""
    line = row + b"\n"
    written = os.write(descriptor, line)
    if written != len(line):
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_END) - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def append_line(path: Path, row: bytes) -> None:
    """Append one line durably and under a lock; on error the file is as it was."""
    with locked_append(path) as (descriptor, size):
        append_durable(descriptor, row, size=size)


@contextlib.contextmanager
def locked_append(path: Path) -> Iterator[tuple[int, int]]:
    """Yield a JSONL file's descriptor and size, locked and with a torn last line trimmed; the lock dies with us."""
    descriptor = os.open(path, _APPEND, 0o644)
    try:
        refuse_special(descriptor, path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = trim_torn_tail(descriptor)
        if size == 0:
            sync_folder(path.parent)  # the file itself may be new: its name must last before a row in it counts
        yield descriptor, size
    finally:
        os.close(descriptor)


def append_durable(descriptor: int, row: bytes, *, size: int) -> None:
    """Append one line to a locked file of `size` bytes and fsync; after an fsync error the line may be there or not."""
    try:
        append_row(descriptor, row)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    os.fsync(descriptor)


def trim_torn_tail(descriptor: int) -> int:
    """Cut the bytes after the last newline (they were never acknowledged) and return the file's size."""
    size = os.fstat(descriptor).st_size
    end = size
    window = 4096
    while end > 0:
        start = max(0, size - window)
        newline = os.pread(descriptor, size - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        if start == 0:
            end = 0
            break
        window *= 4
    if end != size:
        os.ftruncate(descriptor, end)
    return end


def read_rows(path: Path, *, offset: int = 0) -> Iterator[Any]:
    """Yield the rows of a JSONL file from a byte offset on; an unfinished last line is ignored."""
    try:
        yield from rows_in(complete_lines(path, offset=offset))
    except FileDamaged:
        raise
    except ValueError as error:
        raise FileDamaged(f"{path.parent.name}/{path.name} has a bad line: {error}") from None


def complete_lines(path: Path, *, offset: int = 0) -> bytes:
    """Return the complete lines from a byte offset on; empty where the file is absent."""
    try:
        with reading(path) as stream:
            stream.seek(offset)
            content = stream.read()
    except FileNotFoundError:
        return b""
    return content[: content.rfind(b"\n") + 1]


def rows_in(lines: bytes) -> Iterator[Any]:
    """Parse complete JSONL lines; a bad line is corruption and raises `ValueError`."""
    for line in lines.split(b"\n"):
        if len(line) > LONGEST_LINE:
            raise ValueError(f"a row is longer than {LONGEST_LINE // 2**20} MB")
        if line:
            row = orjson.loads(line)
            if not isinstance(row, dict):
                raise ValueError("a row is not an object")
            yield row


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold an exclusive lock beside `path`; it dies with the process. Without `wait`, raises BlockingIOError."""
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def sha256(content: bytes) -> str:
    """Return the hex digest of some bytes."""
    import hashlib

    return hashlib.sha256(content).hexdigest()


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def replace_folder(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`, atomically where the file system can (renameat2)."""
    import shutil

    if not target.exists():
        os.rename(new, target)
    elif _exchange(new, target):
        shutil.rmtree(new, ignore_errors=True)
    else:
        aside = target.with_name(f".{target.name}.old")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(target, aside)
        os.rename(new, target)
        shutil.rmtree(aside, ignore_errors=True)
    sync_folder(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    import ctypes

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    code: int = renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return code == 0
