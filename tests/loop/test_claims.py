"""Both sides of a claim, from stories told row by row."""

from __future__ import annotations

from rlx.loop.judgement import claim_sides
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
