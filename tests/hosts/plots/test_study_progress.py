from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.plots.study_progress import COLOURS, draw


def row(name: str, status: str, *scores: float, claimed: tuple[float, ...] = ()) -> dict[str, Any]:
    return {"candidate": name, "status": status, "scores": list(scores), "claimed": list(claimed)}


@pytest.mark.parametrize(
    ("rows", "head", "incumbent"),
    [
        ([], "baseline", None),
        ([row("baseline", "baseline", 1.0)], "baseline", None),
        ([row("baseline", "baseline", 1, 2, 3), row("c001", "debug"), row("c002", "advanced", 4, 5)], "c002", None),
        ([row("baseline", "baseline", 1, 2, 3, claimed=(1, 2)), row("c001", "confirmed", 5, 5, claimed=(6, 7)),
          *(row(f"c{number:03d}", status, 4, 3) for number, status in enumerate(COLOURS, start=2))], "c003", "c001"),
    ],
)  # fmt: skip
def test_a_study_is_drawn_at_every_stage(
    tmp_path: Path, rows: list[dict[str, Any]], head: str, incumbent: str | None
) -> None:
    path = draw(rows, tmp_path / "a.png", metric="return", head=head, incumbent=incumbent, title="trot")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 5_000


def test_what_failed_or_was_refused_is_in_the_picture_and_a_claim_is_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: (drawn.append(self), Path(file).write_bytes(b"x")))
    rows = [
        row("baseline", "baseline", 1, 2, 3, claimed=(4, 5)), row("c001", "confirmed", 5, 5, claimed=(6, 7)),
        row("c002", "debug"), {**row("c003", "draft"), "trouble": "out of scope"}, row("c004", "draft"),
        {**row("c005", "rejected", 9, 9), "guards": {"-energy": "harm"}},
    ]  # fmt: skip
    draw(rows, tmp_path / "a.png", metric="return", head="c001", incumbent="c001", title="trot " * 60)
    search, claim = drawn[0].axes
    names = [label.get_text().replace("\n", " ") for label in search.get_xticklabels()]
    assert names == ["baseline", "c001 confirmed", "c002 failed", "c003 refused", "c005 rejected (harm)"]
    assert [label.get_text().replace("\n", " ") for label in claim.get_xticklabels()] == ["baseline", "c001 confirmed"]
    assert "other episodes" in claim.get_title()
    assert [text.get_text() for text in search.texts] == ["no score", "no score"]
