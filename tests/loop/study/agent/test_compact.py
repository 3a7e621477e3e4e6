"""What `rlx next` says in short about an idea that is needed."""

from __future__ import annotations

import pytest

from rlx.command import Command, rlx
from rlx.loop.study.agent.compact import in_short
from rlx.loop.study.agent.ideas import Idea
from rlx.loop.study.step_commands import Step
from rlx.study.moves import Move, MoveKind

SCHEMA, FILE = rlx("schema", "candidate"), rlx("propose", "--file", "candidate.json")
WORKS = Idea("no_learning-gamma", "set gamma to 1", "it does not learn", "hyperparameter", {"algo.gamma": 1}, 0.0)
FAILED = Idea("flat-clip", "set clip to 1", "flat", "hyperparameter", {"algo.clip": 1}, 5.0, "c001: no gain", True)


def shown(command: Command, *ideas: Idea) -> Step:
    return in_short(Step(Move("propose"), command, "long words"), ("--study", "first"), ideas)


@pytest.mark.parametrize(
    ("command", "ideas", "short"),
    [
        (SCHEMA, (WORKS, FAILED), "rlx try --idea no_learning-gamma --study first"),
        (SCHEMA, (FAILED,), "rlx schema candidate"),
        (SCHEMA, (), "rlx schema candidate"),
        (FILE, (WORKS,), "rlx try --file candidate.json --study first"),
    ],
)
def test_the_command_takes_the_proposal_or_else_the_best_idea_that_did_not_fail(
    command: Command, ideas: tuple[Idea, ...], short: str
) -> None:
    assert str(shown(command, *ideas).command) == short


def test_only_ideas_that_are_shown_are_offered() -> None:
    reasons = {
        "some": shown(SCHEMA, WORKS, FAILED).why,
        "failed": shown(SCHEMA, FAILED).why,
        "none": shown(SCHEMA).why,
        "file": shown(FILE, WORKS).why,
    }
    assert len(set(reasons.values())) == 4
    assert [name for name, why in reasons.items() if "take one of these" in why] == ["some"]
    assert all("rlx try -f candidate.json" in reasons[name] for name in ("some", "failed", "none"))


def test_another_step_keeps_its_words() -> None:
    step = Step(Move("approve"), rlx("study", "approve", needs_person=True), "a person does this")
    assert in_short(step, (), (WORKS,)) == step


@pytest.mark.parametrize("kind", ["launch", "wait", "verdict"])
def test_the_heads_fresh_seeds_are_trained_by_the_try_of_the_candidate_that_races_it(kind: MoveKind) -> None:
    step = Step(Move(kind, "c001", "promotion"), rlx(kind, "c001"), "the new head needs 6 fresh seeds")
    assert str(in_short(step, (), (), racers=("c002", "c003")).command) == "rlx try c002"
    assert in_short(step, (), ()).command == step.command
