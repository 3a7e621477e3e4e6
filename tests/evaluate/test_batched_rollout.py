"""Episodes of worlds that are stepped as arrays: one a world, each to its end, whatever the others do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx.config.schema import Env, Wrapper
from rlx.errors import JobFailed
from rlx.evaluate.protocol import Protocol
from rlx.evaluate.rollout import Evaluator
from tests.envs.swarm import Swarm

ROOT = Path(__file__).parents[2]


class Steady:
    """Pushes against the cart's own motion."""

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> Any:
        return (np.asarray(observations)[:, 0] + 3 * np.asarray(observations)[:, 1] < 0).astype(np.int64)

    def reset(self, finished: Any = None) -> None:
        pass


class Reckless(Steady):
    """Pushes to the right."""

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> Any:
        return np.ones(len(observations), dtype=np.int64)


def protocol(name: str = "tests.envs.swarm:Swarm", *, episodes: int = 7, **env: Any) -> Protocol:
    return Protocol(env=Env(id=name, **env), episodes=episodes, deterministic=True, purpose="report", root=ROOT)


@pytest.mark.parametrize("policy", [Steady(), Reckless()])
def test_every_world_plays_one_episode_to_its_end(policy: Any) -> None:
    asked = protocol(kwargs={"horizon": 30})
    with Evaluator(asked) as evaluator:
        evaluation = evaluator.evaluate(policy)
        again = evaluator.evaluate(policy)
    worlds = Swarm(7, horizon=30)
    observations, _ = worlds.reset(seed=asked.episode_seeds().start)
    totals, lengths, done = np.zeros(7), np.zeros(7), np.zeros(7, dtype=bool)
    while not done.all():
        observations, rewards, terminated, truncated, _ = worlds.step(policy.predict(observations))
        totals[~done] += rewards[~done]
        lengths[~done] += 1
        done |= terminated | truncated
    np.testing.assert_allclose(evaluation.returns, totals)
    assert [episode.length for episode in evaluation.episodes] == lengths.tolist()
    assert [episode.seed for episode in evaluation.episodes] == list(asked.episode_seeds())
    assert again.episodes == evaluation.episodes


def test_short_episodes_do_not_count_more_often() -> None:
    with Evaluator(protocol(kwargs={"horizon": 200, "push": 0.2})) as evaluator:
        lengths = [episode.length for episode in evaluator.evaluate(Reckless()).episodes]
    assert len(lengths) == 7
    assert len(set(lengths)) > 1


def test_the_random_policy_is_measured_too() -> None:
    with Evaluator(protocol()) as evaluator:
        assert evaluator.evaluate_random().returns.shape == (7,)


def test_with_wrappers_the_worlds_are_played_one_by_one() -> None:
    with Evaluator(protocol(wrappers=(Wrapper(name="time_limit", kwargs={"max_steps": 5}),))) as evaluator:
        assert {episode.length for episode in evaluator.evaluate(Steady()).episodes} == {5}


class Endless(Swarm):
    """Never ends an episode by itself."""

    max_episode_steps = 25

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, _ = super().step(actions)
        return observations, rewards, np.zeros_like(terminated), np.zeros_like(truncated), {}


def test_an_episode_that_goes_on_is_cut_and_marked() -> None:
    with Evaluator(protocol(f"{__name__}:Endless")) as evaluator:
        evaluation = evaluator.evaluate(Steady())
    assert evaluation.cut == 7
    assert {episode.length for episode in evaluation.episodes} == {25}


class Telling(Swarm):
    """Tells its reward's terms and success, as arrays."""

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, infos = super().step(actions)
        infos["reward_terms"] = {"near": rewards, "cost": np.full(self.num_envs, -1.0)}
        infos["is_success"] = truncated
        return observations, rewards, terminated, truncated, infos


def test_terms_and_success_are_kept() -> None:
    with Evaluator(protocol(f"{__name__}:Telling", kwargs={"horizon": 10})) as evaluator:
        evaluation = evaluator.evaluate(Steady())
    for episode in evaluation.episodes:
        assert episode.terms["cost"] == -episode.length
        assert episode.terms["near"] == pytest.approx(episode.episode_return)
        assert episode.success == (not episode.terminated)


class Broken(Swarm):
    def step(self, actions: Any) -> Any:
        raise ValueError("no more carts")


def test_an_environment_that_raises_is_named_with_its_words() -> None:
    with (
        pytest.raises(JobFailed, match=r"Broken raised ValueError: no more carts"),
        Evaluator(protocol(f"{__name__}:Broken")) as evaluator,
    ):
        evaluator.evaluate(Steady())


@pytest.mark.parametrize("policy", [Steady(), Reckless()])
def test_the_course_of_every_world_is_kept_if_asked(policy: Any) -> None:
    with Evaluator(protocol(kwargs={"horizon": 30}), keeps_trajectories=True) as evaluator:
        evaluation = evaluator.evaluate(policy)
    assert [one.seed for one in evaluation.trajectories] == [one.seed for one in evaluation.episodes]
    for one, episode in zip(evaluation.trajectories, evaluation.episodes, strict=True):
        assert (len(one), one.terminated, one.success) == (episode.length, episode.terminated, episode.success)
        assert one.rewards.sum() == pytest.approx(episode.episode_return)
        assert {name: values.sum() for name, values in one.terms.items()} == pytest.approx(dict(episode.terms))
        seen = one.observations[""]
        assert np.abs(np.diff(seen[:, 0])).max() < 1.0  # no jump to the next episode's first observation
        np.testing.assert_array_equal(policy.predict(seen[:-1]), one.actions[""])
