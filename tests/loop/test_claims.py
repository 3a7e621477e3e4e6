"""Both sides of a claim, from stories told row by row."""

from __future__ import annotations

import pytest

from rlx.compare.race import Claim, Complexity, confirm
from rlx.loop.study.decide import DECISIONS, Judgement
from rlx.loop.study.judge_scores import claim_sides
from rlx.loop.study.measure_scores import Measured
from tests.study.story import Story


def claim(story: Story, name: str, ours: dict[int, float], theirs: dict[int, float]) -> None:
    """Train and measure both sides of a claim on their own seeds."""
    sides = {"baseline": ours, name: theirs}
    for side, scores in sides.items():
        story.job(f"{side}-{name}-c", side, "confirmation", tuple(scores))
        hashes = {str(seed): f"{side}-{name}-{seed}" for seed in scores}
        story.tell("weights", candidate=side, run=f"run_{side}-{name}-c", checkpoints=hashes)
    story.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=list(sides))
    for side, scores in sides.items():
        for seed, score in scores.items():
            story.evaluate(side, "confirmation", seed, score)


def test_a_second_claim_does_not_pool_the_baseline_of_the_first() -> None:
    story = Story()
    story.bring("c001", "advanced")
    claim(story, "c001", {1000: 1.0, 1001: 2.0}, {1000: 5.0, 1001: 6.0})
    story.decide("c001", "confirmed")
    story.bring("c002", "advanced")
    claim(story, "c002", {1002: 3.0, 1003: 4.0}, {1000: 7.0, 1001: 8.0})

    assert story.state.violations == ()
    for name, ours, theirs in (("c001", [1.0, 2.0], [5.0, 6.0]), ("c002", [3.0, 4.0], [7.0, 8.0])):
        sides = claim_sides(story.state, name)
        assert [[one.score for one in side] for side in sides] == [ours, theirs], name


def stopped_and_trained_again(story: Story, side: str) -> None:
    """Train twelve seeds of which the first three are stopped, and these once more."""
    seeds = tuple(range(1000, 1012))
    states = {str(seed): "interrupted" if seed < 1003 else "completed" for seed in seeds}
    story.job(f"{side}-first", side, "confirmation", seeds, states=states)
    assert story.state.cut_off(side, "confirmation") == {1000, 1001, 1002}
    assert story.state.claim_lacks(side, "c001", 9) == 3, "nine others do not take their place"
    story.job(f"{side}-again", side, "confirmation", (1000, 1001, 1002))
    for run, trained in (("first", seeds[3:]), ("again", seeds[:3])):
        hashes = {str(seed): f"{side}-{seed}" for seed in trained}
        story.tell("weights", candidate=side, run=f"run_{side}-{run}", checkpoints=hashes)


def test_seeds_that_were_stopped_keep_their_place_in_a_claim() -> None:
    story = Story()
    story.bring("c001", "advanced")
    for side in ("baseline", "c001"):
        stopped_and_trained_again(story, side)
    story.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=["baseline", "c001"])
    for side in ("baseline", "c001"):
        for seed in range(1000, 1012):
            story.evaluate(side, "confirmation", seed, float(seed))

    assert story.state.violations == ()
    for side in claim_sides(story.state, "c001"):
        assert [one.seed for one in side] == list(range(1000, 1012))


def test_a_claim_counts_up_to_a_seed_that_was_cut_off_and_not_trained_again() -> None:
    story = Story()
    story.bring("c001", "advanced")
    for side, cut in (("baseline", 1001), ("c001", None)):
        seeds = (1000, 1001, 1002)
        states = {str(seed): "lost" if seed == cut else "completed" for seed in seeds}
        story.job(f"{side}-c", side, "confirmation", seeds, states=states)
        hashes = {str(seed): f"{side}-{seed}" for seed in seeds if seed != cut}
        story.tell("weights", candidate=side, run=f"run_{side}-c", checkpoints=hashes)
    story.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=["baseline", "c001"])
    for side, seeds in (("baseline", (1000, 1002)), ("c001", (1000, 1001, 1002))):
        for seed in seeds:
            story.evaluate(side, "confirmation", seed, 1.0)

    assert story.state.violations == ()
    assert [[one.seed for one in side] for side in claim_sides(story.state, "c001")] == [[1000], [1000, 1001, 1002]]


@pytest.mark.parametrize(("level", "answer"), [("reported", "provisional"), ("pinned", "confirmed")])
def test_a_claim_by_the_trainings_own_word_is_decided_and_stays_provisional(level: str, answer: str) -> None:
    ours = [Measured(1000 + seed, "run", 0.0 + seed, level) for seed in range(10)]
    theirs = [Measured(1000 + seed, "run", 100.0 + seed, level) for seed in range(10)]
    found = confirm([one.score for one in ours], [one.score for one in theirs], claim=Claim(seeds=10))
    judged = Judgement("c001", "baseline", found, (ours, theirs), Complexity(0), {}, (None, None))

    assert (judged.answer, found.answer) == (answer, "confirmed")
    assert ("which moves no incumbent" in judged.reason) == (level == "reported")
    assert DECISIONS[judged.answer] == ("inconclusive" if level == "reported" else "confirmed")
