from __future__ import annotations

import errno
import fcntl
import math
import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx import files

NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(2**53), 2**53)


@given(st.dictionaries(st.text(), NUMBERS))
def test_every_number_reads_back_as_it_was_written(values: dict[str, float]) -> None:
    read = {name: files.number(value) for name, value in files.decode(files.encode(values)).items()}

    assert read.keys() == values.keys()
    for name, value in values.items():
        assert read[name] == value or (math.isnan(read[name]) and math.isnan(value))


def test_non_finite_numbers_are_the_three_words_also_inside_lists_and_arrays() -> None:
    value = {"a": [math.nan, (math.inf,)], "b": np.array([-math.inf, 1.0]), "c": np.float32("nan"), "d": None}

    assert files.decode(files.encode(value)) == {
        "a": ["NaN", ["Infinity"]], "b": ["-Infinity", 1.0], "c": "NaN", "d": None,
    }  # fmt: skip


def test_numpy_scalars_and_integer_keys_are_plain_json() -> None:
    assert files.encode({1: np.int64(2), "x": np.float32(0.5)}) == b'{"1":2,"x":0.5}'


def test_a_name_that_is_not_utf8_is_escaped_rather_than_refused() -> None:
    name = os.fsdecode(b"caf\xe9")

    assert files.decode(files.encode({name: name})) == {"caf\\udce9": "caf\\udce9"}
    assert files.decode(files.encode_pretty([name])) == ["caf\\udce9"]


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        files.encode({"x": object()})


@pytest.mark.parametrize(
    ("value", "is_it"),
    [
        (1, True),
        (1.5, True),
        ("NaN", True),
        ("Infinity", True),
        ("nan", False),
        (True, False),
        (None, False),
        ("", False),
    ],
)
def test_says_what_is_a_number(value: object, is_it: bool) -> None:
    assert files.is_number(value) is is_it


def test_atomic_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    for content in (b"one", b"two"):
        files.write_atomic(path, content)

    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["labels.json"]


def test_a_failed_atomic_write_keeps_the_old_file_and_leaves_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "labels.json"
    files.write_atomic(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        files.write_atomic(path, b"new")

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["labels.json"]


def test_a_bad_json_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    path.write_bytes(b'{"a": ')

    with pytest.raises(ValueError, match=r"metadata.json is not valid JSON"):
        files.read_json(path)


def test_a_torn_last_line_is_ignored_by_readers_and_trimmed_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":')

    assert list(files.read_rows(path)) == [{"a": 1}]
    files.append_line(path, b'{"a":2}')
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 4097, 100_000])
def test_torn_tails_of_any_length_are_trimmed(tmp_path: Path, length: int) -> None:
    path = tmp_path / "rows.jsonl"
    for kept in (b"", b'{"a":1}\n', b"x" * 70_000 + b"\n"):
        path.write_bytes(kept + b"t" * length)
        descriptor = files.open_append(path)
        os.close(descriptor)
        assert path.read_bytes() == kept


def test_a_bad_line_in_the_middle_is_corruption_and_never_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a"\n{"a":2}\n')

    with pytest.raises(ValueError, match=r"rows.jsonl has a bad line"):
        list(files.read_rows(path))


def test_an_absent_file_has_no_rows(tmp_path: Path) -> None:
    assert list(files.read_rows(tmp_path / "none.jsonl")) == []


def test_reading_goes_on_from_a_byte_offset(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{}\n{"a":2}\n{"a":3}\n')

    assert list(files.read_rows(path, offset=3)) == [{"a": 2}, {"a": 3}]


def test_a_short_write_is_taken_back_and_raised_as_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    files.append_line(path, b"1")
    genuine = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: genuine(descriptor, content[: len(content) // 2]))

    with pytest.raises(OSError, match="No space left"):
        files.append_line(path, b'{"a": 123456}')

    assert path.read_bytes() == b"1\n"


def test_a_lock_is_exclusive_and_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    with files.locked(path), pytest.raises(BlockingIOError), files.locked(path, wait=False):
        pass
    with files.locked(path, wait=False):
        pass


@pytest.fixture
def without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder on a disk without locks; other places have them."""
    disk = tmp_path / "disk"
    (tmp_path / "tmp").mkdir()
    disk.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_relative_to(disk):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    return disk


def test_on_a_disk_without_locks_processes_of_one_machine_are_still_kept_apart(without_locks: Path) -> None:
    path = without_locks / "seed"
    assert not files.is_locked(path)
    with files.locked(path):
        assert files.is_locked(path)
        with pytest.raises(BlockingIOError), files.locked(path, wait=False):
            pass
    with files.locked(path, wait=False):
        pass
    assert not files.is_locked(path)


def test_on_a_disk_without_locks_rows_are_appended(without_locks: Path, tmp_path: Path) -> None:
    path = without_locks / "rows.jsonl"
    files.append_line(path, b"1")
    shutil.rmtree(tmp_path / "tmp")  # nor is there another place for locks
    files.append_line(path, b"2")
    assert path.read_bytes() == b"1\n2\n"


def _append(path: Path, writer: int, rows: int) -> None:
    for row in range(rows):
        files.append_line(path, files.encode({"writer": writer, "row": row}))


def test_concurrent_appends_are_all_kept_whole_and_in_each_writers_order(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append, args=(path, writer, 100)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    rows = list(files.read_rows(path))

    assert len(rows) == 300
    for writer in range(3):
        assert [row["row"] for row in rows if row["writer"] == writer] == list(range(100))


@pytest.mark.parametrize("can_exchange", [True, False])
def test_replacing_a_folder_puts_the_new_one_there_and_removes_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    target = tmp_path / "latest"
    for content in ("one", "two", "three"):
        new = tmp_path / "new"
        new.mkdir()
        (new / "policy").write_text(content)
        files.replace_folder(new, target)

        assert (target / "policy").read_text() == content
        assert os.listdir(tmp_path) == ["latest"]


def test_sha256_is_sha256() -> None:
    assert files.sha256(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_nothing_is_appended_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text("torn")
    (tmp_path / "events.jsonl").symlink_to("ledger.jsonl")
    with pytest.raises(OSError, match="symbolic links"):
        files.append_line(tmp_path / "events.jsonl", b"{}")
    with pytest.raises(OSError, match="symbolic links"):
        files.open_append(tmp_path / "events.jsonl")
    assert (tmp_path / "ledger.jsonl").read_text() == "torn"
