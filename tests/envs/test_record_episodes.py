from __future__ import annotations

from typing import Any

import pytest

from rlx.envs.record_episodes import RecordedEpisode, RecordEpisodes
from rlx.envs.snapshot import probe
from tests.envs.worlds import Walk


class Reporting(Walk):
    """Reports reward terms, and success at the end under a name of choice."""

    def __init__(self, name: str | None = "is_success") -> None:
        super().__init__()
        self.name = name

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = super().step(action)
        terms = {"alive": 1.0, "energy": -0.25}
        info = {**info, "reward_terms": terms, **({self.name: terminated} if self.name else {})}
        return observation, sum(terms.values()), terminated, truncated, info


def finish(env: RecordEpisodes, steps: int = 20) -> None:
    env.reset(seed=0)
    for _ in range(steps):
        env.step(1)


def test_keeps_return_length_and_the_sum_of_every_term() -> None:
    env = RecordEpisodes(Reporting())
    finish(env)
    finish(env)
    expected = RecordedEpisode(15.0, 20, True, True, False, {"alive": 20.0, "energy": -5.0})
    assert env.episodes == [expected, expected]


@pytest.mark.parametrize(("name", "success"), [("is_success", True), ("success", True), (None, None)])
def test_success_is_what_the_last_info_says(name: str | None, success: bool | None) -> None:
    env = RecordEpisodes(Reporting(name))
    finish(env)
    assert env.episodes[0].success is success


def test_an_episode_cut_by_reset_is_not_kept() -> None:
    env = RecordEpisodes(Reporting())
    finish(env, steps=5)
    finish(env)
    assert [episode.length for episode in env.episodes] == [20]


def test_infos_are_passed_on_as_they_are_and_the_caller_is_told() -> None:
    told: list[RecordedEpisode] = []
    env = RecordEpisodes(Reporting(), on_episode=told.append)
    env.reset(seed=0)
    assert env.step(1)[4]["reward_terms"] == {"alive": 1.0, "energy": -0.25}
    for _ in range(19):
        env.step(1)
    assert told == env.episodes


def test_an_environment_without_terms_has_none() -> None:
    env = RecordEpisodes(Walk())
    finish(env)
    assert env.episodes[0].terms == {}


def test_a_recorded_environment_resumes_exactly() -> None:
    assert probe(lambda: RecordEpisodes(Reporting())).is_exact
