"""The record of looks on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlx.errors import EvidenceInvalid
from rlx.runs import interim_looks
from rlx.runs.interim_looks import LookRecord, Party


def a_look(**changes: object) -> LookRecord:
    base = Party("a_001", "id-a", "group-a", {0: 1.5, 7: 2.0})
    new = Party("b_001", "id-b", "group-b", {3: 2.5, 1: -4.0})
    return replace(LookRecord(base, new, "print", 10, 0.03, 0.97), **changes)  # type: ignore[arg-type]


def test_a_look_is_read_back_as_it_was_taken(tmp_path: Path) -> None:
    assert interim_looks.read(tmp_path) == []
    interim_looks.record(tmp_path, [a_look()])
    (found,) = interim_looks.read(tmp_path)
    assert found == a_look()
    assert list(found.candidate.scores) == [3, 1]
    assert found.time > 0


def test_repeating_a_look_is_not_a_new_look(tmp_path: Path) -> None:
    for _ in range(3):
        interim_looks.record(tmp_path, [a_look(), a_look()])
    assert len(interim_looks.read(tmp_path)) == 1


def test_other_scores_another_size_protocol_or_pair_are_another_look(tmp_path: Path) -> None:
    other = Party("b_001", "id-b", "group-b", {3: 2.5, 1: -4.1})
    stranger = Party("c_001", "id-c", "group-b", {3: 2.5, 1: -4.0})
    different = [a_look(candidate=other), a_look(candidate=stranger), a_look(seeds=16), a_look(fingerprint="else")]
    interim_looks.record(tmp_path, [a_look(), *different])
    assert [look.digest for look in interim_looks.read(tmp_path)] == [look.digest for look in (a_look(), *different)]
    assert len({look.digest for look in interim_looks.read(tmp_path)}) == 5


def test_a_look_is_known_by_its_contents_not_by_the_order_of_its_seeds() -> None:
    turned = Party("b_001", "id-b", "group-b", {1: -4.0, 3: 2.5})
    assert a_look(candidate=turned).digest == a_look().digest


def test_a_torn_last_line_is_no_look_and_is_written_over(tmp_path: Path) -> None:
    interim_looks.record(tmp_path, [a_look()])
    with interim_looks.path(tmp_path).open("ab") as stream:
        stream.write(b'{"schema": 1, "dig')
    interim_looks.record(tmp_path, [a_look(seeds=16)])
    assert [look.seeds for look in interim_looks.read(tmp_path)] == [10, 16]


@pytest.mark.parametrize("line", [b"not json", b'{"schema": 1}', b"[]", b'{"p": [1, 2], "baseline": 3}'])
def test_a_damaged_record_is_named_and_nothing_is_decided_without_it(tmp_path: Path, line: bytes) -> None:
    interim_looks.record(tmp_path, [a_look()])
    with interim_looks.path(tmp_path).open("ab") as stream:
        stream.write(line + b"\n")
    with pytest.raises(EvidenceInvalid, match=r"looks\.jsonl is damaged") as caught:
        interim_looks.read(tmp_path)
    assert "move the file away" in str(caught.value.hint)
