from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.errors import FileDamaged
from rlx.study.ledger.ledger import GENESIS, Anchor, Ledger, audit


@pytest.fixture(params=[False, True], ids=["proves all rows", "keeps rows"])
def ledger(tmp_path: Path, request: pytest.FixtureRequest) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl", keeps_rows=request.param)


def fill(ledger: Ledger, count: int) -> None:
    for number in range(1, count + 1):
        ledger.append("refused", action="launch", number=number)


def numbers(ledger: Ledger) -> list[int]:
    return [event["number"] for event in ledger.events()]


def test_an_event_reads_back_as_append_returned_it(ledger: Ledger) -> None:
    fields = {"seeds": (0, 1), "states": {0: "completed"}, "score": math.nan, "says": "größer\nnull", "by": None}
    made = ledger.append("evaluated", **fields, kind="code")

    assert ledger.events() == (made,)
    assert made.kind == "evaluated"
    assert made["seeds"] == [0, 1]
    assert made["states"] == {"0": "completed"}
    assert made["score"] == "NaN"
    assert made["says"] == "größer\nnull"
    assert made["kind"] == "code"
    assert made.get("absent", 3) == 3
    assert made.hash == ledger.head()


def test_a_ledger_that_is_not_there_is_empty(ledger: Ledger) -> None:
    assert ledger.events() == ()
    assert ledger.head() == GENESIS
    assert audit(ledger.path).is_sound


def test_rows_are_chained_as_the_format_says(ledger: Ledger) -> None:
    fill(ledger, 3)
    prev = GENESIS
    for line in ledger.path.read_text().splitlines():
        row = json.loads(line)
        assert row.keys() == {"prev", "body", "hash"}
        assert row["prev"] == prev
        assert {"id", "time", "event"} <= json.loads(row["body"]).keys()
        prev = row["hash"]
    assert ledger.head() == prev


def test_the_same_key_is_appended_once(ledger: Ledger) -> None:
    first = ledger.append("ended", key="j1", outcome="completed")

    assert ledger.append("ended", key="j1", outcome="lost") == first
    assert ledger.append("started", key="j1").id != first.id
    assert len(ledger.events()) == 2


def test_an_event_that_is_there_already_is_made_sure_of_before_it_is_acknowledged(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append("ended", key="j1")

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="broken disk"):
        ledger.append("ended", key="j1")


def test_what_is_held_can_be_judged_and_appended_to(ledger: Ledger) -> None:
    fill(ledger, 1)
    with ledger.held() as held:
        assert len(held.events) == 1
        made = held.append("stopped", rule="budget")
        assert held.events[-1] == made
        assert held.append("stopped", key="k").hash == held.head
    assert [event.kind for event in ledger.events()] == ["refused", "stopped", "stopped"]


def test_half_a_row_that_could_not_be_taken_back_is_not_glued_to_the_next(ledger: Ledger) -> None:
    with ledger.held() as held:
        held.append("refused", number=1)
        with ledger.path.open("ab") as stream:
            stream.write(b'{"prev":"')  # a full disk, and then the truncation failed too
        held.append("refused", number=2)

    assert numbers(ledger) == [1, 2]


def test_a_row_that_is_missing_is_told_from_one_that_was_edited(ledger: Ledger) -> None:
    fill(ledger, 3)
    rewritten(lambda rows: [rows[0], rows[2]])(ledger.path)

    assert audit(ledger.path).says == "the row does not follow the one before it"


def test_a_field_cannot_take_the_place_of_the_events_own(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match="time"):
        ledger.append("refused", time=0)
    assert ledger.events() == ()


def test_an_unfinished_last_line_is_ignored_and_then_trimmed(ledger: Ledger) -> None:
    fill(ledger, 2)
    with ledger.path.open("ab") as stream:
        stream.write(b'{"prev":"' + b"x" * 100_000)

    assert numbers(ledger) == [1, 2]
    assert audit(ledger.path).torn_bytes == 100_009
    ledger.append("refused", number=3)
    assert numbers(ledger) == [1, 2, 3]
    assert audit(ledger.path).torn_bytes == 0


def rewritten(edit: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(edit(lines)))

    return act


def again_with_a_new_chain(lines: list[bytes]) -> list[bytes]:
    """Repeat the second event at the end as a row whose hashes hold."""
    from rlx.study.ledger import ledger

    body = json.loads(lines[1])["body"]
    return [*lines, ledger._row(json.loads(lines[-1])["hash"], body) + b"\n"]


def other(digit: bytes) -> bytes:
    return b"1" if digit == b"0" else b"0"


TAMPERED = {
    "edited": (2, lambda rows: [rows[0], rows[1].replace(b"launch", b"lunch!"), *rows[2:]]),
    "edited in its time": (2, lambda rows: [rows[0], rows[1].replace(b'time\\":1', b'time\\":2'), *rows[2:]]),
    "edited in its hash": (2, lambda rows: [rows[0], rows[1][:-4] + other(rows[1][-4:-3]) + b'"}\n', *rows[2:]]),
    "given a space": (2, lambda rows: [rows[0], rows[1].replace(b'","hash"', b'", "hash"'), *rows[2:]]),
    "given a field": (2, lambda rows: [rows[0], rows[1].replace(b'"}', b'","more":1}'), *rows[2:]]),
    "given a blank line": (2, lambda rows: [rows[0], b"\n", *rows[1:]]),
    "deleted": (2, lambda rows: [rows[0], *rows[2:]]),
    "deleted at the start": (1, lambda rows: rows[1:]),
    "swapped": (2, lambda rows: [rows[0], rows[2], rows[1], *rows[3:]]),
    "doubled": (3, lambda rows: [*rows[:2], *rows[1:]]),
    "doubled with a new chain": (6, again_with_a_new_chain),
    "cut short": (2, lambda rows: [rows[0], rows[1][:60] + b"\n", *rows[2:]]),
    "cut short and glued": (2, lambda rows: [rows[0], rows[1][:60], *rows[2:]]),
    "glued": (2, lambda rows: [rows[0], rows[1].rstrip(b"\n"), *rows[2:]]),
    "replaced by a list": (2, lambda rows: [rows[0], b"[1]\n", *rows[2:]]),
    "replaced by bytes": (2, lambda rows: [rows[0], b"\xff\x00\n", *rows[2:]]),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_row_that_was_tampered_with_is_found_and_named(ledger: Ledger, how: str) -> None:
    fill(ledger, 5)
    row, edit = TAMPERED[how]
    rewritten(edit)(ledger.path)  # type: ignore[arg-type]

    found = audit(ledger.path)
    assert (found.is_sound, found.bad_row, found.rows) == (False, row, row - 1)
    with pytest.raises(FileDamaged, match=rf"ledger.jsonl:{row}: {found.says}") as caught:
        Ledger(ledger.path).events()
    assert "rlx study audit" in str(caught.value.hint)
    before = ledger.path.read_bytes()
    with pytest.raises(FileDamaged):
        Ledger(ledger.path).append("refused", number=6)
    assert ledger.path.read_bytes() == before


def test_rows_cut_off_the_end_show_only_against_a_head_kept_elsewhere(ledger: Ledger) -> None:
    fill(ledger, 5)
    kept = Anchor(ledger.head(), rows=5)
    rewritten(lambda rows: rows[:3])(ledger.path)

    assert audit(ledger.path).is_sound
    found = audit(ledger.path, anchors=[kept])
    assert (found.bad_row, found.says) == (4, "5 rows were anchored and only 3 are there")
    assert "no row has the anchored hash" in audit(ledger.path, anchors=[Anchor(kept.head)]).says


def test_a_chain_made_anew_shows_against_an_anchor_and_names_its_row(tmp_path: Path, ledger: Ledger) -> None:
    fill(ledger, 3)
    anchors = [Anchor(event.hash, rows=number) for number, event in enumerate(ledger.events(), 1)]
    other = Ledger(tmp_path / "other.jsonl")
    fill(other, 5)

    assert audit(ledger.path, anchors=anchors).is_sound
    found = audit(other.path, anchors=anchors)
    assert (found.bad_row, found.says) == (1, f"the row is not the one that was anchored as {anchors[0].head}")


def test_a_ledger_object_notices_that_rows_it_saw_are_gone(ledger: Ledger) -> None:
    fill(ledger, 3)
    rewritten(lambda rows: rows[:2])(ledger.path)

    with pytest.raises(FileDamaged, match="gone or rewritten"):
        ledger.events()
    with pytest.raises(FileDamaged, match="gone or rewritten"):
        ledger.append("refused", number=4)
    assert numbers(Ledger(ledger.path)) == [1, 2]


def append_many(path: Path, writer: int, count: int) -> None:
    for number in range(count):
        Ledger(path).append("refused", key=f"{writer}-{number}", number=number)
        Ledger(path).append("refused", key=f"all-{number}", number=number)


def test_writers_side_by_side_keep_one_chain_and_one_row_a_key(ledger: Ledger) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(ledger.path, writer, 20)) for writer in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()

    ids = [event.id for event in ledger.events()]
    assert len(ids) == len(set(ids)) == 3 * 20 + 20
