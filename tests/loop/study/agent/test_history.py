"""What was tried teaches: one line per candidate, also of earlier studies of the same task."""

from __future__ import annotations

from pathlib import Path

from rlx.loop.study.agent import history
from rlx.loop.study.agent.history import Lesson, repeats, told_lines
from rlx.loop.study.new_study import new_study
from rlx.study.study_folder import Study, find_study
from tests.loop.told import WISHES, Told, typed


def failed(told: Told, rate: float) -> str:
    identity = told.checked(rate)
    told.trained(identity, (90.0, 91.0, 92.0))
    told.decide(identity, "rejected", effect=-9.0, against="baseline", n=[6, 3], test="race", p=0.99, says="p = 0.99")
    return identity


def test_a_candidate_is_one_line_with_score_effect_and_decision(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    failed(told, 0.01)
    (lesson,) = history.lessons(told.study, told.state)
    assert lesson.line == "c001 learning_rate=0.01: 91 (−9 v baseline) rejected"
    assert lesson.learned == "no gain: −9 on 3 seeds"


def test_a_second_study_of_the_task_begins_with_the_lessons_of_the_first(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    failed(told, 0.01)
    root = told.study.root
    new_study(root, "again", WISHES, task=told.study.task_name)
    study = find_study(root, "again")
    assert isinstance(study, Study)
    assert typed(root, "rlx next again")["history"] == ["faster/c001 learning_rate=0.01: 91 (−9 v baseline) rejected"]
    proposal = 'rlx propose --study again --kind hyperparameter --hypothesis "once more" -s algo.learning_rate=0.01'
    (note,) = typed(root, proposal)["notes"]
    assert note == "faster/c001 made the same change: rejected, no gain: −9 on 3 seeds"


def test_a_long_history_is_compressed() -> None:
    rows = [
        Lesson(f"c{number:03d}", "", {"a": number}, f"a={number}", "rejected", 1.0, None, "", "")
        for number in range(20)
    ]
    lines = told_lines(rows, most=3)
    assert lines[0] == "17 earlier candidates: 17 rejected"
    assert len(lines) == 4


def test_a_repeat_is_recognised_within_the_tolerance() -> None:
    lesson = Lesson("c001", "", {"algo.gamma": 0.9}, "gamma=0.9", "rejected", None, -1.0, "baseline", "no gain")
    assert repeats({"algo": {"gamma": 0.9}}, [lesson]) == [lesson]
    assert repeats({"algo.gamma": 0.5}, [lesson]) == []
    assert repeats({}, [lesson]) == []
