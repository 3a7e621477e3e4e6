"""The brief always fits into 8 kB, and always has the ten largest effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.loop.lab import brief as briefs
from rlx.loop.lab.attempt import Attempt
from rlx.loop.lab.brief import MOST_BYTES, brief, largest_effects
from rlx.loop.lab.brief_media import PNG, head_sheet
from rlx.loop.lab.session.agent_session import session_brief
from rlx.loop.study import baseline
from tests.loop.lab.lab_project import tiny_lab


def test_after_200_attempts_it_fits_and_has_the_ten_largest_effects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tiny_lab(tmp_path, is_approved=False)
    count = 200
    lab.program_path.write_text("A long mission. " * 800)
    tried = [
        Attempt(
            row=f"hop-1x2/c{number:03d}", rung=lab.rung, status="discard", description=f"idea {number} " * 40,
            candidate=f"c{number:03d}", parent="baseline", score=float(number), effect=((number * 37) % 200 - 100) / 7,
            against="baseline", notes={"lesson": "what was learned " * 30, "parts": ["a", "b"]},
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    monkeypatch.setattr(briefs, "attempts", lambda _: tried)
    text = brief(lab)
    assert len(text.encode()) <= MOST_BYTES
    assert len(session_brief(lab).encode()) <= MOST_BYTES
    for heading in ("Mission", "Rules", "Where we stand", "Largest effects", "Newest attempts", "Open ideas"):
        assert f"## {heading}" in text
    effects = text.partition("## Largest effects")[2].partition("##")[0]
    for attempt in largest_effects(tried):
        assert f"- {attempt.candidate} at 1/2: discard" in effects
    assert len(largest_effects(tried)) == min(10, count)
    expected = sorted((abs(attempt.effect or 0) for attempt in tried), reverse=True)[:10]
    assert [abs(attempt.effect or 0) for attempt in largest_effects(tried)] == expected


def test_it_says_how_to_try_by_hand_and_in_a_session_never_both(tmp_path: Path) -> None:
    lab = tiny_lab(tmp_path, is_approved=False)
    by_hand, in_session = brief(lab), session_brief(lab)
    assert "rlx lab try --description" in by_hand
    assert "## This session" not in by_hand
    assert "rlx lab try --description" not in in_session
    assert "Do not run `rlx lab try`" in in_session


@pytest.mark.slow
def test_a_picture_of_the_head_is_drawn_once_it_is_trained(tmp_path: Path) -> None:
    lab = tiny_lab(tmp_path)
    assert head_sheet(lab).problem == "baseline is not trained at 1/2 yet"
    baseline.fill(lab.study, say=lambda _: None)
    path = head_sheet(lab).path
    assert path is not None
    assert path.read_bytes().startswith(PNG)
    assert str(path) in brief(lab, picture=str(path))
