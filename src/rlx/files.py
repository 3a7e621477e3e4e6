"""Files that survive a crash: atomic write, append, lock, hash, and JSON that keeps NaN and infinity.

Not covered: power loss on disks that ignore fsync, and atomic appends on NFS (use one writer per file there).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from rlx.errors import FileDamaged, UsageError

_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_DUMP = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
# The most bytes that rlx reads of a file, of a JSON document and of one line. It writes nothing larger.
LARGEST = 2**30
READ_BYTES = 2**20
LARGEST_DOCUMENT = 2**26
LONGEST_LINE = 2**24


def encode(value: object) -> bytes:
    """Return `value` as JSON. NaN and ±infinity become the strings "NaN", "Infinity", "-Infinity"."""
    try:
        text = orjson.dumps(value, option=_DUMP)
    except orjson.JSONEncodeError:  # a file name that is not UTF-8, or a value that cannot be JSON at all
        text = b"null null"
    # orjson writes NaN and infinity as null. The word in a text only costs time.
    if b"null" in text and text.count(b"null") != _count_absent(value):
        return orjson.dumps(_spell(value), option=_DUMP)
    return text


def _count_absent(value: object) -> int:
    """Count the None in a value."""
    if value is None:
        return 1
    if type(value) is dict:
        return sum(map(_count_absent, value.values()))
    if type(value) is list or type(value) is tuple:
        return sum(map(_count_absent, value))
    return 0


def encode_pretty(value: object) -> bytes:
    """Return `value` as indented JSON with a final newline, for files that people open."""
    return orjson.dumps(_spell(value), option=_DUMP | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode(text: bytes | str) -> Any:
    """Parse JSON as written by `encode`. The three words stay strings (see `number`)."""
    return orjson.loads(text)


def number(value: object) -> float:
    """Return a metric value as float, reading the three non-finite words back."""
    if isinstance(value, str):
        return _NON_FINITE[value]
    return float(value)  # type: ignore[arg-type]


def is_number(value: object) -> bool:
    """Return whether `number` can read `value`."""
    if isinstance(value, str):
        return value in _NON_FINITE
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _spell(value: Any) -> Any:
    """Replace values that JSON cannot hold by words: non-finite numbers, and bytes of file names that are not UTF-8."""
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
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` by `content`. Readers see the old file or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        write_durable(temporary, content)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextlib.contextmanager
def replacing(path: Path, *, option: str = "--out") -> Iterator[Path]:
    """Yield a new file that replaces `path` if the block succeeds. Raises `UsageError` if it cannot be created.

    `option` is the one that named the file: the hint repeats it.
    """
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary.touch()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", hint=f"name another file with {option}") from error
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_durable(path: Path, content: bytes) -> None:
    """Write and fsync a file that has no readers yet."""
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
def reading(path: Path, *, largest: int = LARGEST) -> Iterator[BinaryIO]:
    """Open a plain file. A pipe, a device, a folder or a too large file raises `FileDamaged` and never blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        refuse_special(descriptor, path, largest=largest)
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.close(descriptor)


def refuse_special(descriptor: int, path: Path, *, largest: int = LARGEST) -> int:
    """Return the size of an open file. Raises `FileDamaged` if it is not plain, or larger than any that rlx writes."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise FileDamaged(f"{path.parent.name}/{path.name} is not a plain file")
    if status.st_size > largest:
        raise FileDamaged(f"{path.parent.name}/{path.name} is larger than {largest // 2**20} MB")
    return status.st_size


def read_bytes(path: Path, *, largest: int = LARGEST) -> bytes:
    """Return the content of a plain file, see `reading`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = refuse_special(descriptor, path, largest=largest)
        content = os.read(descriptor, size + 1)  # a list of many runs reads small files: no stream, one call
        if len(content) == size:
            return content
        parts = [content]
        while part := os.read(descriptor, READ_BYTES):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def read_window(path: Path, *, most: int) -> tuple[bytes, bool]:
    """Return the last bytes of a plain file, and whether there are others before them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        start = max(0, refuse_special(descriptor, path) - most)
        return os.pread(descriptor, most, start), start > 0
    finally:
        os.close(descriptor)


def read_end(path: Path, *, most: int, within: Path) -> bytes:
    """Return the last bytes of a plain file of any size; none if it is anything else, or lies outside a folder."""
    if not path.resolve().is_relative_to(within.resolve()):
        return b""
    try:
        with reading(path, largest=2**63) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - most))
            return stream.read(most)
    except (OSError, FileDamaged):
        return b""


def read_json(path: Path) -> Any:
    """Parse a JSON file. Raises `FileDamaged` with its name if it is not valid."""
    content = read_bytes(path, largest=LARGEST_DOCUMENT)
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


NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of a disk on which no process can lock a file."""
# Never through a link: a job could put one into its run that leads to a ledger.
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def open_append(path: Path) -> int:
    """Open a JSONL file for appending, after trimming a torn last line, and return the descriptor."""
    descriptor = os.open(path, _APPEND, 0o644)
    try:
        refuse_special(descriptor, path)
        trim_torn_tail(descriptor)
    except (OSError, FileDamaged):
        os.close(descriptor)
        raise
    return descriptor


def append_row(descriptor: int, row: bytes) -> None:
    """Append one line with one write(). A short write is undone and raised as a full disk."""
    line = row + b"\n"
    written = os.write(descriptor, line)
    if written != len(line):
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_END) - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def append_line(path: Path, row: bytes) -> None:
    """Append one line durably and under a lock. After an error the file is unchanged."""
    with locked_append(path) as (descriptor, size):
        append_durable(descriptor, row, size=size)


@contextlib.contextmanager
def locked_append(path: Path) -> Iterator[tuple[int, int]]:
    """Yield a JSONL file's descriptor and size, locked and without a torn last line. The lock ends with the process."""
    descriptor = os.open(path, _APPEND, 0o644)
    lock = descriptor
    try:
        refuse_special(descriptor, path)
        lock = take_lock(descriptor, fcntl.LOCK_EX)
        size = trim_torn_tail(descriptor)
        if size == 0:
            sync_folder(path.parent)  # the file may be new: its name must be durable before a row in it counts
        yield descriptor, size
    finally:
        close_locked(descriptor, lock)


def append_durable(descriptor: int, row: bytes, *, size: int) -> None:
    """Append one line to a locked file of `size` bytes and fsync. After an fsync error the line may be there or not."""
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
    """Yield the rows of a JSONL file from a byte offset on. An unfinished last line is ignored."""
    try:
        yield from rows_in(complete_lines(path, offset=offset))
    except FileDamaged:
        raise
    except ValueError as error:
        raise FileDamaged(f"{path.parent.name}/{path.name} has a bad line: {error}") from None


def complete_lines(path: Path, *, offset: int = 0) -> bytes:
    """Return the complete lines from a byte offset on, or nothing if the file does not exist."""
    try:
        with reading(path) as stream:
            stream.seek(offset)
            content = stream.read()
    except FileNotFoundError:
        return b""
    return content[: content.rfind(b"\n") + 1]


def rows_in(lines: bytes) -> Iterator[Any]:
    """Parse complete JSONL lines. A bad line is corruption and raises `ValueError`."""
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
    """Hold an exclusive lock next to `path`. It ends with the process. Without `wait`, raises BlockingIOError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(_lock_file(path), flags, 0o644)
    lock = descriptor
    try:
        if wait:
            lock = take_lock(descriptor, fcntl.LOCK_EX)
        else:
            lock = _lock_soon(descriptor)
        yield
    finally:
        close_locked(descriptor, lock)


def _lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _lock_soon(descriptor: int) -> int:
    """Take a lock, or raise BlockingIOError. `is_locked` in another process may hold it for a moment."""
    for _ in range(10):
        with contextlib.suppress(BlockingIOError):
            return take_lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.01)
    return take_lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def take_lock(descriptor: int, operation: int) -> int:
    """Lock an open file and return the descriptor that holds the lock: this one, if its disk has locks.

    Some network disks have no locks. For a file there, rlx locks a file in this machine's temporary folder instead. It
    keeps the processes of this machine apart. Processes of other hosts see only heartbeats and written results.
    """
    try:
        fcntl.flock(descriptor, operation)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return _lock_stand_in(descriptor, operation)
    return descriptor


def close_locked(descriptor: int, lock: int) -> None:
    """Close a file and the descriptor from `take_lock` that holds its lock, which may be the same."""
    os.close(descriptor)
    if lock != descriptor:
        os.close(lock)


def _lock_stand_in(descriptor: int, operation: int) -> int:
    """Lock this machine's file for a file on a disk without locks. If that file cannot be made, nothing is locked."""
    status = os.fstat(descriptor)
    try:
        folder = user_temporary_folder("rlx-locks")
        path = folder / f"{status.st_dev}-{status.st_ino}"
        stand_in = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return descriptor
    try:
        fcntl.flock(stand_in, operation)
    except BlockingIOError:
        os.close(stand_in)
        raise
    except OSError:
        os.close(stand_in)
        return descriptor
    return stand_in


def user_temporary_folder(name: str) -> Path:
    """Return a folder of this user in the machine's temporary folder, which all projects share."""
    import tempfile  # few processes need it

    folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or folder.is_symlink():
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


def is_locked(path: Path) -> bool:
    """Say whether a process holds the lock next to `path`, on any host if the file system shares locks."""
    try:
        descriptor = os.open(_lock_file(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    lock = descriptor
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            lock = take_lock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        close_locked(descriptor, lock)
    return False


def sha256(content: bytes) -> str:
    """Return the hex digest of some bytes."""
    import hashlib

    return hashlib.sha256(content).hexdigest()


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def replace_folder(new: Path, target: Path) -> None:
    """Replace the folder `target` by `new`, atomically if the file system can (renameat2)."""
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
