"""Evidence that is changed after it was recorded: nothing is decided on it, and every view says so first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.mill import Mill


@pytest.fixture
def mill(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Mill:
    return Mill.ready(tmp_path / "mill", tmp_path_factory)


def test_a_decision_on_changed_evidence_is_refused_and_every_view_says_so(mill: Mill) -> None:
    identity = mill.proposes(gain=9)
    mill.trains(identity)
    mill.types("verdict", identity)
    score = mill.study.state().evaluations[identity, "trial"][0]
    path = mill.study.folder / score.file
    honest = path.read_bytes()
    path.write_bytes(honest.replace(b"9.0", b"99.0"))
    before = mill.study.ledger.events()

    refused = mill.types("decide", identity, code=6)
    assert f"{score.file} is not the file that was recorded" in refused["error"]
    (row,) = mill.study.ledger.events()[len(before) :]
    assert (row.kind, row["action"], row["reasons"][0]["code"]) == ("refused", "decide", "EVIDENCE")

    for words in (("status",), ("next",)):
        told = mill.types(*words, code=6)
        assert told["integrity"] == [f"{score.file} is not the file that was recorded"]
        assert "NOT sound" in mill.prints(*words, code=6).splitlines()[0]
    report = mill.types("study", "report", code=6)
    assert report["outcome"].startswith("nothing is shown")
    assert "Integrity: NOT sound" in mill.study.report_path.read_text()

    path.write_bytes(honest)
    assert mill.types("decide", identity)["decision"] == "inconclusive"
    assert mill.types("study", "report")["problems"] == []
