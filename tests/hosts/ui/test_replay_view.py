"""A replay as HTML: every figure of a step is named, and a hostile file is refused or shown as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx import files
from rlx.errors import FileDamaged
from rlx.hosts.ui.replay_view import read_replay, replay_view, spelt

EVIL = "<img src=x onerror=alert(1)>"


def step(number: int, **given: Any) -> dict[str, Any]:
    row = {"step": number, "frame": "AAAA", "observation": {}, "value": 1.5, "entropy": 0.3, "distribution": {},
           "action": [1.0], "reward": -0.25, "total": 2.0, "terms": {}}  # fmt: skip
    return {**row, **given}


def replay(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"title": "run, seed 0, best", "env": "Env", "episode": {"return": 2.0, "length": len(steps) - 1},
            "end": "truncated: time limit", "is_drawn": False, "steps": list(steps)}  # fmt: skip


def test_the_chosen_option_stands_out_among_the_probabilities() -> None:
    shown = replay_view(replay(step(0, distribution={"probabilities": [0.25, 0.75]}), step(1, action=None)))
    assert 'value="0.2500"' in shown
    assert 'class="chosen" data-option="1"' in shown
    assert shown.count("chosen") == 1


def test_reward_terms_that_start_later_have_a_place_from_the_first_step() -> None:
    shown = replay_view(replay(step(0), step(1, terms={EVIL: 3.0}), step(2)))
    assert 'data-value="terms.&lt;img' in shown
    assert EVIL not in shown
    assert '<td class="n">3</td>' in shown


def test_a_step_is_spelt_by_name() -> None:
    row = step(1234, distribution={"mean": [0.5, -0.123456]}, terms={"a.b": 2.0})
    names = ("step", "reward", "distribution.mean", "terms.a.b", "terms.other")
    assert [spelt(row, name) for name in names] == ["1,234", "−0.25", "0.5, −0.1235", "2", "–"]
    assert spelt(step(0, action=None), "action") == "–"


def test_a_reward_that_never_changes_is_drawn_in_the_middle() -> None:
    shown = replay_view(replay(step(0), step(1)))
    assert "reward: −0.25 at every step" in shown
    assert 'points="0,32.0 1,32.0"' in shown


@pytest.mark.parametrize("field", ["step", "reward", "action", "terms", "distribution", "frame"])
def test_a_file_that_is_not_a_replay_is_refused(tmp_path: Path, field: str) -> None:
    (tmp_path / "replays").mkdir()
    path = tmp_path / "replays" / "a.json"
    path.write_bytes(files.encode(replay(step(0))))
    assert read_replay(tmp_path, "a")["end"] == "truncated: time limit"
    path.write_bytes(files.encode(replay(step(0, **{field: {"x": [EVIL]}}))))
    with pytest.raises(FileDamaged):
        read_replay(tmp_path, "a")
