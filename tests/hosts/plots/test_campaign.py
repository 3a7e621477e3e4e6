from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.plots.campaign import COLOURS, draw


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
