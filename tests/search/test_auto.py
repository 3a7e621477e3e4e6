"""The whole search: halving, race, audit, replay, and failures, on simulated scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import yaml

from rlx.search.auto import Search, SearchSettings, TrialJob, Winner, search_cost, settings_for, settings_within
from rlx.search.halving import FULL_LENGTH, Halving
from rlx.search.minority_vote import MinorityVote
from rlx.search.observation import Observation
from rlx.search.parse_space import parse_space
from rlx.search.samplers import sampler_named
from rlx.search.seed_race import SeedRace
from rlx.search.space import Space, Values

SPACE = parse_space(["x=0:1", "y=0:1"], read=yaml.safe_load)
Score = Callable[[Values, TrialJob], float | None]


def hill(values: Values, job: TrialJob) -> float | None:
    noise = np.random.default_rng([int(values["x"] * 1e6), int(values["y"] * 1e6), job.seed]).normal(0, 0.05)
    return float(job.share * (1 - abs(values["x"] - 0.7)) + noise)


def played(search: Search, score: Score = hill) -> tuple[Winner | None, list[TrialJob]]:
    steps = search.run()
    asked: list[TrialJob] = []
    jobs = next(steps)
    while True:
        asked += jobs
        try:
            jobs = steps.send({job: score(search.trials[job.trial].values, job) for job in jobs})
        except StopIteration as stop:
            return stop.value, asked


def search_of(settings: SearchSettings, *, space: Space = SPACE, **named: Any) -> Search:
    return Search(space, sampler_named("model"), settings, **named)


def test_a_search_finds_the_hill_and_asks_for_nothing_twice() -> None:
    search = search_of(settings_for(32))
    winner, jobs = played(search)
    assert winner is not None
    assert abs(search.trials[winner.trial].values["x"] - 0.7) < 0.1
    assert winner.seeds >= 3
    assert len(search.trials) == 32
    assert len(jobs) == len(set(jobs))


def test_the_cost_stays_within_the_budget() -> None:
    for budget in (8, 32, 64):
        settings = settings_within(budget)
        search = search_of(settings)
        _, jobs = played(search)
        furthest: dict[tuple[int, int], float] = {}
        for job in jobs:
            furthest[job.trial, job.seed] = max(job.share, furthest.get((job.trial, job.seed), 0.0))
        assert sum(furthest.values()) <= budget + 1e-9


def test_only_the_better_trials_of_a_bracket_train_on() -> None:
    search = search_of(SearchSettings(10, 10, Halving((0.2, 1.0), 5.0), SeedRace((), 0.0)))
    _, jobs = played(search)
    assert [job.share for job in jobs] == [0.2] * 10 + [1.0] * 2
    scores = {trial.number: trial.scores[0, 0.2] or 0.0 for trial in search.trials}
    best = sorted(scores, key=lambda number: -scores[number])[:2]
    assert {job.trial for job in jobs if job.share == 1.0} == set(best)
    assert search_cost(10, Halving((0.2, 1.0), 5.0)) == 10 * 0.2 + 2 * 0.8


def test_a_search_is_replayed_from_its_record() -> None:
    first = search_of(settings_for(12))
    winner, jobs = played(first)
    again = search_of(settings_for(12))
    again.recorded = [trial.values for trial in first.trials]
    assert played(again) == (winner, jobs)


def test_failed_trials_never_train_on_and_never_win() -> None:
    def crashing(values: Values, job: TrialJob) -> float | None:
        return None if values["x"] > 0.5 else hill(values, job)

    search = search_of(settings_for(30))
    winner, jobs = played(search, crashing)
    assert winner is not None
    assert search.trials[winner.trial].values["x"] <= 0.5
    failed = {trial.number for trial in search.trials if trial.has_failed}
    assert all(job.share == 0.3 for job in jobs if job.trial in failed)
    shares = [np.mean([trial.values["x"] > 0.5 for trial in part]) for part in (search.trials[:10], search.trials[20:])]
    assert shares[1] < shares[0]


def test_a_search_in_which_everything_fails_has_no_winner() -> None:
    winner, _ = played(search_of(settings_for(4)), lambda _values, _job: None)
    assert winner is None


def test_the_race_drops_what_is_clearly_behind() -> None:
    race = SeedRace(budget=100)
    scores = {
        0: [1.0, 1.1, 1.2],
        1: [0.1, 0.0, 0.2],
        2: [1.0, 0.9, 1.1],
        3: [1.2, 0.6, 1.1],
    }
    assert race.field(scores, size=6, left=100) == [0, 2, 3]
    assert race.field(scores, size=6, left=6) == [0, 2]
    assert race.field(scores, size=6, left=3) == [0]


def test_the_first_configs_and_a_used_up_space() -> None:
    small = parse_space(["a=1,2,3"], read=yaml.safe_load)
    search = search_of(settings_for(10, halving=FULL_LENGTH), space=small, first=[{"a": 2}])
    winner, _ = played(search, lambda values, job: float(values["a"]))
    assert search.trials[0].values == {"a": 2}
    assert sorted(trial.values["a"] for trial in search.trials) == [1, 2, 3]
    assert winner is not None
    assert search.trials[winner.trial].values == {"a": 3}


def test_the_audit_prints_what_halving_lost() -> None:
    def late(values: Values, job: TrialJob) -> float | None:
        """Reverse the order at the end."""
        if job.share < 1.0:
            return float(values["x"])
        return float(-values["x"])

    settings = settings_for(12, halving=Halving((0.2, 1.0), 4.0))
    search = search_of(SearchSettings(12, 12, settings.halving, settings.race, audits=True))
    played(search, late)
    assert search.audit is not None
    assert len(search.audit.trials) == 1
    assert search.audit.regret > 0


def test_a_voter_gets_at_most_three_of_ten_and_garbage_is_left_out() -> None:
    def vote(space: Space, history: object, count: int) -> list[object]:
        good = [{"x": 0.111 + number / 100, "y": 0.5} for number in range(20)]
        return ["prose", {"x": 7, "y": 0.1}, {"seed": 1}, {"x": "high", "y": 0}, *good]

    sampler = MinorityVote(sampler_named("model"), vote)
    history = [Observation({"x": number / 10, "y": 0.3}, float(number)) for number in range(8)]
    proposed = sampler.propose(SPACE, history, 10, seed=0)
    assert len(proposed) == 10
    assert [values["y"] for values in proposed].count(0.5) == 3
    assert all(SPACE.point(values) is not None for values in proposed)
