"""The whole search as one generator: it asks for trainings, gets their scores, and ends with the winner.

1. Search wide on one seed: brackets of configs, each by successive halving. The sampler proposes a bracket from
   everything seen so far.
2. Perhaps train some of the dropped configs to the end, to see what the halving has lost (the audit).
3. Race the best few over more seeds.

`bench/search.py` measures it next to other methods. The same scores always lead to the same search, so a search that
was stopped is replayed from its log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from rlx.search.halving import FULL_LENGTH, Halving
from rlx.search.observation import Observation, Sampler
from rlx.search.seed_race import RaceScores, SeedRace, standing
from rlx.search.space import Space, Values

AUDIT_SHARE = 0.1
SEARCH_SHARE = 0.65
"""The part of a budget that goes into the wide search; the rest is for the race."""


@dataclass(frozen=True, order=True)
class TrialJob:
    """A training that the search asks for: a trial, which of its seeds, and up to which share of its length."""

    trial: int
    seed: int
    share: float


Results = Mapping[TrialJob, float | None]
"""TrialJob → score, higher is better. None: the training crashed, diverged or ran out of memory."""


@dataclass(frozen=True)
class SearchSettings:
    """How to search: how many trials, in brackets of which size, which rungs, and the race."""

    trials: int
    bracket: int
    halving: Halving = FULL_LENGTH
    race: SeedRace = field(default_factory=SeedRace)
    seed: int = 0
    audits: bool = False


DEFAULT_HALVING = Halving()


def settings_for(trials: int, *, halving: Halving = DEFAULT_HALVING, seed: int = 0) -> SearchSettings:
    """Return the default settings for a number of trials: three brackets, and a race of about its square root."""
    entrants = max(2, min(5, math.ceil(math.sqrt(trials))))
    search = search_cost(trials, halving)
    budget = max(4.0 * entrants, search * (1 - SEARCH_SHARE) / SEARCH_SHARE)
    return SearchSettings(trials, bracket_size(trials), halving, SeedRace(budget=budget), seed)


def settings_within(runs: float, *, halving: Halving = DEFAULT_HALVING, seed: int = 0) -> SearchSettings:
    """Return the default settings for a budget in full trainings."""
    trials = 2
    while search_cost(trials + 1, halving) <= runs * SEARCH_SHARE:
        trials += 1
    race = SeedRace(budget=runs * (1 - SEARCH_SHARE))
    return SearchSettings(trials, bracket_size(trials), halving, race, seed)


def search_cost(trials: int, halving: Halving) -> float:
    """Return the cost of the wide search, in full trainings."""
    size = bracket_size(trials)
    rest = trials % size
    cost = trials // size * halving.cost(size)
    if rest:
        cost += halving.cost(rest)
    return cost


def bracket_size(trials: int) -> int:
    """Return the size of a bracket: a third of the trials, but enough of them to learn from."""
    if trials < 12:
        return trials
    return math.ceil(trials / 3)


@dataclass
class Trial:
    """A config of the search, and its scores by seed and share of the length."""

    number: int
    values: Values
    scores: dict[tuple[int, float], float | None] = field(default_factory=dict)

    @property
    def has_failed(self) -> bool:
        return any(score is None for (seed, _), score in self.scores.items() if seed == 0)

    @property
    def share(self) -> float:
        """The share of the full length that its first seed has trained."""
        return max((share for seed, share in self.scores if seed == 0), default=0.0)

    @property
    def full_scores(self) -> list[float | None]:
        """The scores at full length, by seed. A seed that failed early failed."""
        by_seed: dict[int, float | None] = {}
        for (seed, share), score in sorted(self.scores.items()):
            if share >= 1.0 or score is None:
                by_seed[seed] = score
        return list(by_seed.values())

    def observation(self) -> Observation:
        """Return what samplers learn from."""
        if self.has_failed:
            return Observation(self.values, has_failed=True)
        return Observation(self.values, self.scores.get((0, self.share)), self.share)


@dataclass(frozen=True)
class Winner:
    """The trial that won the race, its mean score and the number of its seeds."""

    trial: int
    score: float
    seeds: int


@dataclass(frozen=True)
class PruningAudit:
    """What halving lost: the score by which an audited trial was better than the best that was kept; 0 if none was."""

    trials: tuple[int, ...]
    regret: float


class Search:
    """A search in progress: the trials so far, the stage, and the generator of the next trainings."""

    def __init__(
        self, space: Space, sampler: Sampler, settings: SearchSettings, *, first: Sequence[Values] = ()
    ) -> None:
        self.space = space
        self.sampler = sampler
        self.settings = settings
        self.trials: list[Trial] = []
        self.stage = "search"
        self.audit: PruningAudit | None = None
        self.recorded: list[Values] = []
        self.earlier: list[Observation] = []
        self.goes_on: Callable[[], bool] = lambda: True
        self.first = list(first)

    def run(self) -> Generator[list[TrialJob], Results, Winner | None]:
        """Yield the trainings of each stage and receive their scores; return the winner, or None if all failed."""
        for trials in self._brackets():
            yield from self._halve(trials)
        if self.settings.audits:
            self.stage = "audit"
            yield from self._audit_pruning()
        self.stage = "race"
        return (yield from self._race())

    def _brackets(self) -> Iterator[list[Trial]]:
        planned = self.settings.trials
        while len(self.trials) < planned and self.goes_on():
            count = min(self.settings.bracket, planned - len(self.trials))
            added = self._propose(count)
            if not added:  # the space is used up
                return
            yield added

    def _propose(self, count: int) -> list[Trial]:
        """Return new trials: recorded ones first, then the given ones, then those of the sampler."""
        before = len(self.trials)
        for values in self.recorded[before : before + count]:
            self._add(values)
        while self.first and len(self.trials) < before + count:
            values = self.first.pop(0)
            if self.space.identity(values) not in {self.space.identity(trial.values) for trial in self.trials}:
                self._add(values)
        missing = before + count - len(self.trials)
        history = [*self.earlier, *(trial.observation() for trial in self.trials)]
        if missing:
            for values in self.sampler.propose(self.space, history, missing, seed=self.settings.seed):
                self._add(values)
        return self.trials[before:]

    def _add(self, values: Values) -> None:
        self.trials.append(Trial(len(self.trials), values))

    def _halve(self, trials: Sequence[Trial]) -> Generator[list[TrialJob], Results, None]:
        halving = self.settings.halving
        kept = [trial.number for trial in trials]
        for rung, share in enumerate(halving.shares):
            yield from self._train([TrialJob(number, 0, share) for number in kept])
            scores = {number: self.trials[number].scores[0, share] for number in kept}
            kept = halving.keep(scores, trials=len(trials), rung=rung + 1)

    def _audit_pruning(self) -> Generator[list[TrialJob], Results, None]:
        pruned = [trial for trial in self.trials if trial.share < 1.0 and not trial.has_failed]
        kept = [score for trial in self.trials for score in trial.full_scores if score is not None]
        if not pruned or not kept:
            self.audit = PruningAudit((), 0.0)
            return
        count = max(1, round(AUDIT_SHARE * len(pruned)))
        audited = pruned[:: max(1, len(pruned) // count)][:count]
        yield from self._train([TrialJob(trial.number, 0, 1.0) for trial in audited])
        found = [score for trial in audited for score in trial.full_scores if score is not None]
        regret = max(0.0, max(found, default=-math.inf) - max(kept))
        self.audit = PruningAudit(tuple(trial.number for trial in audited), regret)

    def _race(self) -> Generator[list[TrialJob], Results, Winner | None]:
        full = [trial for trial in self.trials if trial.share >= 1.0 and not trial.has_failed]
        if not full:
            return None
        left = self.settings.race.budget
        racers = [trial.number for trial in full]
        for size in self.settings.race.sizes:
            scores = self._race_scores(racers)
            racers = self.settings.race.field(scores, size=size, left=left)
            if len(racers) < 2:
                break
            jobs = [TrialJob(number, seed, 1.0) for number in racers for seed in range(len(scores[number]), size)]
            yield from self._train(jobs)
            left -= len(jobs)
        scores = self._race_scores(racers)
        best = standing(scores)[0]
        return Winner(best, fmean(scores[best]), len(scores[best]))

    def _race_scores(self, trials: Sequence[int]) -> RaceScores:
        """Return the scores at full length. A failed seed gets the worst score of the search, at any length."""
        seen = [score for trial in self.trials for score in trial.scores.values() if score is not None]
        worst = min(seen)
        return {
            number: [worst if score is None else score for score in self.trials[number].full_scores]
            for number in trials
        }

    def _train(self, jobs: Sequence[TrialJob]) -> Generator[list[TrialJob], Results, None]:
        """Ask for trainings and keep their scores."""
        if not jobs:
            return
        results = yield list(jobs)
        for job in jobs:
            self.trials[job.trial].scores[job.seed, job.share] = results[job]
