"""The rules of a research campaign: race every variant against the head, and claim once at the end. No I/O.

The race and the confirmation are those of a study (`rlx.compare.race`): 3 seeds, perhaps 3 more, against 6 of the head.
A variant that wins becomes the head and is trained on 6 fresh seeds. If the head has moved, the end is one claim: 10
fresh seeds of the head against 10 of the original config, at level .05. No variant starts that would leave too few
seeds for that. `bench/campaign.py` measures these rules over whole campaigns.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlx.compare.race import LEAST_SEEDS, Confirmation, Race, Scores, confirm, race
from rlx.compare.race_thresholds import RULE, RaceRule

FIRST_CONFIRM_SEED = 1000
FRESH_HEAD_SEED = 100
BASE = 0
REPLACEMENTS = 2
"""How often crashed seeds of the head are replaced."""


@dataclass(frozen=True)
class SeedsAsked:
    """Trainings that a campaign asks for: a config by its number, and the seeds."""

    config: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class ProposalsAsked:
    """A campaign asks for the variants of its next round."""

    round: int


@dataclass(frozen=True)
class RaceDone:
    """A variant has been raced. The driver records the result in the log."""

    config: int
    result: Race


Asked = SeedsAsked | ProposalsAsked | RaceDone


@dataclass
class CampaignState:
    """The state of a campaign: head, seeds spent, moves, and the results of its races by config."""

    head: int = BASE
    spent: int = 0
    moves: list[int] = field(default_factory=list)
    races: dict[int, Race] = field(default_factory=dict)
    head_scores: list[float | None] = field(default_factory=list)
    confirmation: Confirmation | None = None
    stop: str = ""


class ResearchCampaign:
    """A campaign of several rounds within a budget of seeds."""

    def __init__(self, *, rounds: int, budget: int, rule: RaceRule = RULE) -> None:
        self.rounds = rounds
        self.budget = budget
        self.rule = rule
        self.state = CampaignState()

    def run(self) -> Generator[Asked, Any, CampaignState]:
        """Yield what the campaign needs and receive it: numbers of new configs, or one score per seed."""
        state = self.state
        state.head_scores = yield from self._train_head(BASE, 0)
        for number in range(1, self.rounds + 1):
            variants: Sequence[int] = yield ProposalsAsked(number)
            if not variants:
                state.stop = "no further proposals"
                break
            for variant in variants:
                if not self._may_start():
                    break
                yield from self._race(variant)
            if not self._may_start():
                state.stop = "the budget is spent"
                break
        state.stop = state.stop or f"all {self.rounds} rounds are done"
        if state.moves:
            yield from self._claim()
        return state

    def _may_start(self) -> bool:
        """Say whether a variant can be raced, become the head, and still be confirmed."""
        return self.state.spent + self.rule.last + self.rule.head + 2 * LEAST_SEEDS <= self.budget

    def _race(self, variant: int) -> Generator[Asked, Any, None]:
        state = self.state
        scores = yield from self._train(variant, range(self.rule.first))
        result = race(state.head_scores, scores, rule=self.rule)
        if result.step == "more":
            scores += yield from self._train(variant, range(self.rule.first, self.rule.last))
            result = race(state.head_scores, scores, rule=self.rule)
        state.races[variant] = result
        if result.step == "advance":
            state.head = variant
            state.moves.append(variant)
            state.head_scores = yield from self._train_head(variant, FRESH_HEAD_SEED)
        yield RaceDone(variant, result)

    def _train_head(self, config: int, first: int) -> Generator[Asked, Any, list[float | None]]:
        """Train the head's seeds; crashed ones are replaced a few times."""
        scores = yield from self._train(config, range(first, first + self.rule.head))
        for _ in range(REPLACEMENTS):
            missing = self.rule.head - sum(score is not None for score in scores)
            if not missing:
                break
            begin = first + len(scores)
            scores += yield from self._train(config, range(begin, begin + missing))
        return scores

    def _claim(self) -> Generator[Asked, Any, None]:
        fresh = range(FIRST_CONFIRM_SEED, FIRST_CONFIRM_SEED + LEAST_SEEDS)
        baseline = yield from self._train(BASE, fresh)
        head = yield from self._train(self.state.head, fresh)
        self.state.confirmation = confirm(baseline, head)

    def _train(self, config: int, seeds: range) -> Generator[Asked, Any, list[float | None]]:
        scores: Mapping[int, float | None] = yield SeedsAsked(config, tuple(seeds))
        self.state.spent += len(seeds)
        return [scores[seed] for seed in seeds]


def least_budget(rule: RaceRule = RULE) -> int:
    """Return the smallest budget in seeds that can race one variant and confirm it."""
    return rule.head + rule.last + rule.head + 2 * LEAST_SEEDS


def mean_of(scores: Scores) -> float | None:
    """Return the mean of the seeds that have a score."""
    known = [score for score in scores if score is not None]
    if not known:
        return None
    return sum(known) / len(known)
