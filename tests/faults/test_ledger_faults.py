"""A study's ledger through crashes, full and broken disks: what was acknowledged is there once, and the chain holds."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from rlx.study.ledger.ledger import Ledger, audit
from tests.faults.sweep import OPERATIONS, TRACER, calls_of, run, sweep

pytestmark = pytest.mark.slow
KILLS = 12


def a_torn_row(root: Path) -> None:
    """A ledger whose last writer was killed in the middle of a row."""
    Ledger(root / "ledger.jsonl").append("refused", key="A", word="A")
    with (root / "ledger.jsonl").open("ab") as stream:
        stream.write(b'{"prev":"00')


def nothing(root: Path) -> None:
    """A study whose ledger does not exist yet."""


def words(root: Path) -> list[str]:
    return [event["word"] for event in Ledger(root / "ledger.jsonl").events()]


@pytest.mark.parametrize("tracer", sorted({"inside", TRACER}))
@pytest.mark.parametrize("operation", ["ledger", "ledger_again", "ledger_held"])
@pytest.mark.parametrize("prepare", [a_torn_row, nothing])
def test_an_acknowledged_event_is_there_once_whatever_fails(
    tmp_path: Path, tracer: str, operation: str, prepare: object
) -> None:
    before = ["A"] if prepare is a_torn_row else []
    for root, outcome in sweep(operation, tmp_path, prepare, tracer=tracer):  # type: ignore[arg-type]
        found = words(root)
        assert found in ([*before], [*before, "B"], [*before, "B", "C"]), outcome.trace
        assert set(outcome.acknowledged) <= set(found)
        assert audit(root / "ledger.jsonl").is_sound
        for word in ("B", "C", "D"):
            Ledger(root / "ledger.jsonl").append("refused", key=word, word=word)
        assert words(root) == [*before, "B", "C", "D"]


@pytest.mark.parametrize("fault", ["fsync:error=EIO:when=1", "write:error=ENOSPC:when=1", "ftruncate:error=EIO:when=1"])
def test_a_tool_that_tries_again_succeeds_after_one_error(tmp_path: Path, fault: str) -> None:
    root = tmp_path / "state"
    root.mkdir()
    a_torn_row(root)
    outcome = run("ledger_again", root, fault, tracer=TRACER)

    assert outcome.acknowledged == ["B", "C"], outcome.talk
    assert words(root) == ["A", "B", "C"]


def test_every_kind_of_call_that_an_append_makes_was_swept(tmp_path: Path) -> None:
    a_torn_row(tmp_path)

    assert {"write", "fsync", "ftruncate"} <= calls_of(run("ledger", tmp_path, tracer=TRACER).trace).keys()


class Writer:
    """A process that appends until it is killed, and what it acknowledged."""

    def __init__(self, folder: Path, name: str) -> None:
        argv = [os.path.realpath(sys.executable), "-S", "-B", OPERATIONS, "ledger_writer", folder / name]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
        self.acknowledged: list[str] = []

    def read(self, count: int) -> None:
        assert self.process.stdout is not None
        self.acknowledged += [self.process.stdout.readline().strip() for _ in range(count)]

    def kill(self) -> list[str]:
        """Kill it and return every line it had written whole."""
        self.process.kill()
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.process.wait()
        self.process.stdout.close()
        return [*self.acknowledged, *rest[: rest.rfind("\n") + 1].split()]


def test_two_writers_and_a_dozen_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    chance = random.Random(0)
    acknowledged: list[str] = []
    writers = [Writer(tmp_path, "w0"), Writer(tmp_path, "w1")]
    for number in range(2, KILLS + 2):
        victim = chance.randrange(2)
        writers[victim].read(chance.randrange(1, 12))
        acknowledged += writers[victim].kill()
        writers[victim] = Writer(tmp_path, f"w{number}")
    for writer in writers:
        acknowledged += writer.kill()
    found = words(tmp_path)

    assert len(acknowledged) >= KILLS
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
    assert len(set(found) - set(acknowledged)) <= 2 * (KILLS + 2)  # a row a kill took the answer of, and no more
    assert audit(tmp_path / "ledger.jsonl").is_sound
