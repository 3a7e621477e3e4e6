from __future__ import annotations

import os
from pathlib import Path

from rlx.train.backends.command.output_log import Output


def printed(tmp_path: Path, *pieces: bytes, most: int = 1000) -> tuple[Output, bytes]:
    """Pass pieces through and return the output and what reached the log."""
    read, write = os.pipe()
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    output = Output(os.fdopen(read, "rb", buffering=0), log=log, keeps_lines=True, most_bytes=most)
    for piece in pieces:
        os.write(write, piece)
    os.close(write)
    output.close(wait_seconds=10)
    os.close(log)
    return output, (tmp_path / "log").read_bytes()


def test_everything_reaches_the_log_and_whole_lines_can_be_taken(tmp_path: Path) -> None:
    output, log = printed(tmp_path, b"one\ntw", b"o\nthree")
    assert log == b"one\ntwo\nthree"
    assert output.lines() == ["one", "two", ""]
    assert output.lines(is_last=True) == ["three"]
    assert output.failure_line() == "three"


def test_too_much_is_cut_and_the_end_is_kept(tmp_path: Path) -> None:
    flood = b"x" * 70_000 + b"\nthe last words\n"
    output, log = printed(tmp_path, b"first\n", flood[:40_000], flood[40_000:], most=500)
    assert log.startswith(b"first\n")
    assert b"bytes of output left out here" in log
    assert log.endswith(b"the last words\n")
    assert len(log) < 70_000
    assert output.failure_line() == "the last words"
