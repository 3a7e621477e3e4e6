"""Reading many run folders with several processes gives what one process reads."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlx.runs import index, index_rows
from rlx.runs.index_rows import read_shares
from tests.conftest import write_seed
from tests.runs.test_index import MakeRun


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_rows, "LEAST", 2)
    monkeypatch.setattr(index_rows, "PER_PROCESS", 1)
    monkeypatch.setattr(index_rows, "BATCH", 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # a plug-in of pytest has a thread


def pids(numbers: Sequence[int]) -> list[Any]:
    return [[number, os.getpid()] for number in numbers]


@pytest.mark.usefixtures("two_cores")
class TestShares:
    def test_every_number_is_read_once_by_some_process(self) -> None:
        seen: list[tuple[int, int]] = []
        rows = read_shares(20, pids, watch=lambda done, total: seen.append((done, total)))
        assert sorted(number for number, _ in rows) == list(range(20))
        assert len({pid for _, pid in rows}) == 3
        assert os.getpid() not in {pid for _, pid in rows}
        assert all(0 <= done < 20 and total == 20 for done, total in seen)

    def test_a_process_with_threads_reads_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(threading, "active_count", lambda: 2)
        assert {pid for _, pid in read_shares(20, pids)} == {os.getpid()}

    def test_a_killed_process_leaves_its_numbers_to_the_caller(self) -> None:
        own = os.getpid()

        def read(numbers: Sequence[int]) -> list[Any]:
            if os.getpid() != own and 6 in numbers:
                os.kill(os.getpid(), signal.SIGKILL)
            return pids(numbers)

        found = {number for number, _ in read_shares(20, read)}
        assert 6 not in found
        assert len(found) >= 12

    def test_a_reader_that_stops_early_leaves_no_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        children: list[int] = []
        fork = os.fork

        def remember() -> int:
            child = fork()
            children.append(child)
            return child

        def stop(_done: int, _total: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fork", remember)
        with pytest.raises(KeyboardInterrupt):
            read_shares(20, pids, watch=stop)
        assert len(children) == 3
        for child in children:
            with pytest.raises(ProcessLookupError):
                os.kill(child, 0)


def rows_of(root: Path) -> list[dict[str, Any]]:
    (root / ".rlx" / "index.db").unlink(missing_ok=True)
    return index.summaries(root, sort="name").rows


def test_the_index_is_the_same_however_many_processes_read(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for number in range(7):
        run = make_run(f"r{number}")
        write_seed(run, 0, state="completed", returns=[1.0, float(number)])
    (tmp_path / "runs" / "r3_001" / "metadata.json").write_text("{")
    alone = rows_of(tmp_path)
    request.getfixturevalue("two_cores")
    assert rows_of(tmp_path) == alone
    real = index_rows._row
    own = os.getpid()

    def dies(path: Path, stamp: tuple[int, int]) -> Any:
        if path.name == "r5_001" and os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path, stamp)

    monkeypatch.setattr(index_rows, "_row", dies)
    assert rows_of(tmp_path) == alone
