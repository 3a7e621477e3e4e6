"""A night, cut short: the first idea from the evidence, and a second study that begins with the lessons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from night import FARMED, MOST_BYTES, SHAPING, Night

from rlx.loop.study.agent.ideas import best_ideas
from rlx.loop.study.step_commands import situation_of
from rlx.study.study_folder import find_study

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_evidence_names_the_farmed_bonus_and_the_shaping_and_a_second_study_knows_what_failed(
    tmp_path: Path,
) -> None:
    night = Night(tmp_path / "night")
    night.build("-s", "metric.seeds=2", "-s", "evaluation.confirm_episodes=4")
    study = find_study(night.root, "door")
    first = [set(idea.changes) for idea in best_ideas(study, situation_of(study))[:3]]
    assert {FARMED} in first
    assert {SHAPING} in first
    told = night.agent("next")
    assert told["command"].startswith("rlx try --idea ")
    tried = night.agent(*told["command"].split()[1:])
    assert tried["decision"] in ("advanced", "rejected")
    assert night.try_idea(1) == "rejected"
    assert all(call.size <= MOST_BYTES for call in night.calls), [call.size for call in night.calls]
    night.person("study", "new", "later", "--task", "yard", "--seeds", "60", "--hours", "1")
    history = night.person("next", "later")["history"]
    assert any(line.startswith("door/c002 gamma=0.5: ") and line.endswith(" rejected") for line in history), history
    assert json.loads((study.folder / "ideas.json").read_text())["schema"] == 1
