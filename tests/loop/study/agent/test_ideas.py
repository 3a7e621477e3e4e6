"""Ideas from findings: which change, of which kind, in which order."""

from __future__ import annotations

from rlx.diagnose.finding import Finding
from rlx.loop.study.agent.history import Lesson
from rlx.loop.study.agent.ideas import Idea, _ideas_of, _merged, _with_result

ARGUMENTS = {
    "env.wrappers.0.kwargs.alive": 0.05,
    "env.kwargs.progress": 0.0,
    "env.kwargs.size": 3,
    "env.kwargs.on": True,
}


def ideas(*findings: Finding, has_code: bool = False) -> list[Idea]:
    found = [idea for finding in findings for idea in _ideas_of(finding, ARGUMENTS, has_code=has_code)]
    return sorted(_merged(found), key=lambda idea: idea.rank)


FARMED = Finding("term_domination", "medium", "`alive` is most of the reward", (), term="alive")
ZERO = Finding("term_zero", "low", "`progress` was never paid", (), term="progress")
SPARSE = Finding("reward_sparse", "low", "it pays only on a condition", (), tries=("add a potential",))
SLOW = Finding(
    "no_learning", "high", "it does not learn", (), changes=({"algo.learning_rate": 0.01}, {"algo.gamma": 1})
)


def test_a_farmed_term_is_not_paid_any_more_and_one_that_guides_is_paid() -> None:
    found = ideas(SLOW, ZERO, FARMED, SPARSE)
    assert [dict(idea.changes) for idea in found[:3]] == [
        {"env.wrappers.0.kwargs.alive": 0.0},
        {"env.kwargs.progress": 0.1},
        {"algo.learning_rate": 0.01},
    ]
    assert found[0].command == "rlx try --idea term_domination-alive"


def test_a_reward_without_an_argument_is_an_idea_for_code_if_its_code_is_in_scope() -> None:
    finding = Finding("reward_hacking", "high", "`speed` is farmed", (), tries=("cap it",), term="speed")
    assert ideas(finding) == []
    (idea,) = ideas(finding, has_code=True)
    assert (idea.kind, idea.text, dict(idea.changes)) == ("reward engineering", "cap it", {})
    assert idea.proposal()["records"] == {"reflection": "`speed` is farmed"}


def test_a_longer_training_is_not_an_idea_and_a_key_comes_once() -> None:
    longer = Finding("plateau", "high", "flat", (), changes=({"algo.total_timesteps": 10},))
    twice = Finding("plateau", "medium", "flat", (), changes=({"algo.learning_rate": 0.02},))
    assert [idea.name for idea in ideas(longer, twice, SLOW)] == ["no_learning-learning_rate", "no_learning-gamma"]


def test_an_idea_that_failed_before_shows_its_effect_and_comes_last() -> None:
    lesson = Lesson(
        "c002", "first", {"algo.learning_rate": 0.01}, "", "rejected", 0.1, -0.2, "baseline", "no gain: −0.2"
    )
    (before, *_) = ideas(SLOW)
    after = _with_result(before, [lesson])
    assert after.tried == "first/c002: no gain: −0.2"
    assert after.has_failed
    assert after.rank > before.rank + 4
