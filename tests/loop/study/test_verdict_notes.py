"""What stands beside a judgement."""

from __future__ import annotations

from pathlib import Path

from rlx.loop.study import verdict_notes
from rlx.loop.study.new_study import Wishes, new_study
from rlx.study.study_folder import Study
from tests.loop.told import Told


def test_claims_of_other_studies_of_the_task_stand_beside_a_claim(tmp_path: Path) -> None:
    story = Told(tmp_path)
    name = story.checked(0.01)
    story.trained(name, (400.0, 401.0, 402.0))
    story.decide(name, "advanced", against="baseline", test="race")
    plan = story.state.candidates[name].plan
    other = story.study
    new_study(other.root, "again", Wishes(seeds=60, hours=1.0), task=other.task_name)
    again = Study(other.root, other.task_name, "again")
    assert list(verdict_notes.other_claims(again)) == []
    story.intend("claim", name, "confirmation", (1000,), plan=plan)
    story.start("claim")
    story.end("claim", (1000,))
    says = f"the study {other.name} of the same task made 1 claim (0 confirmed): this study's error does not count them"
    assert list(verdict_notes.other_claims(again)) == [says]
    assert list(verdict_notes.other_claims(other)) == []


def test_seeds_that_were_stopped_under_way_and_trained_again_are_named(tmp_path: Path) -> None:
    story = Told(tmp_path)
    name = story.checked(0.01)
    plan = story.state.candidates[name].plan
    story.intend("first", name, "trial", (0, 1, 2), plan=plan)
    story.start("first")
    states = {"0": "completed", "1": "interrupted", "2": "prepared"}
    story.end("first", (0,), "cancelled", states=states)
    says = (
        f"1 seed of {name} stopped midway and trained again: "
        "if its training is not deterministic, that was a second try"
    )
    assert list(verdict_notes.retrained(story.state, name, "trial")) == [says]
    assert list(verdict_notes.retrained(story.state, "baseline", "baseline")) == []


def test_seeds_whose_supervisor_died_under_way_are_named_too(tmp_path: Path) -> None:
    story = Told(tmp_path)
    story.intend("claim", "baseline", "confirmation", (1000, 1001))
    story.start("claim")
    story.end("claim", (1000,), "lost", states={"1000": "completed", "1001": "lost"})
    (says,) = verdict_notes.retrained(story.state, "baseline", "confirmation")
    assert says.startswith("1 seed of baseline lost midway and trained again")
