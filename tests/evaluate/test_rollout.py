"""Rolling out: every episode counts once, whatever its length; nothing outside is disturbed."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlx import files
from rlx.config.schema import Scenario
from rlx.errors import EvidenceInvalid, JobFailed
from rlx.evaluate.policy import RandomPolicy
from rlx.evaluate.protocol import UNDECLARED_HORIZON
from rlx.evaluate.rollout import Evaluation, Evaluator

from .conftest import MakeProtocol, Scripted, balance, zeros


def evaluate(protocol: object, act: object = zeros, **settings: int) -> Evaluation:
    with Evaluator(protocol, **settings) as evaluator:  # type: ignore[arg-type]
        return evaluator.evaluate(Scripted(act))  # type: ignore[arg-type]


def play_alone(seed: int, act: object = balance) -> tuple[float, int]:
    """One CartPole episode, the plain way."""
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=seed)
    total, length, is_over = 0.0, 0, False
    while not is_over:
        observation, reward, terminated, truncated, _ = env.step(int(act(observation[None])[0]))  # type: ignore[operator]
        total, length, is_over = total + float(reward), length + 1, terminated or truncated
    env.close()
    return total, length


def test_each_episode_is_what_its_seed_gives_when_played_alone(protocol: MakeProtocol) -> None:
    def clumsy(observations: np.ndarray) -> np.ndarray:
        return (observations[:, 2] > 0.02).astype(np.int64)

    evaluation = evaluate(protocol("CartPole-v1", episodes=12), clumsy)
    assert [episode.seed for episode in evaluation.episodes] == list(range(200_000, 200_012))
    assert [(one.episode_return, one.length) for one in evaluation.episodes] == [
        play_alone(one.seed, clumsy) for one in evaluation.episodes
    ]
    assert len({episode.length for episode in evaluation.episodes}) > 3


def test_a_good_script_reaches_the_time_limit_and_the_random_policy_does_not(protocol: MakeProtocol) -> None:
    with Evaluator(protocol("CartPole-v1")) as evaluator:
        good, chance = evaluator.evaluate(Scripted(balance)), evaluator.evaluate_random()
    assert good.summary()["min"] == 500.0
    assert (good.std, good.cut) == (0.0, 0)
    assert 15 < chance.mean < 35


@pytest.mark.parametrize("most_parallel", [1, 2, 7, 30])
def test_the_number_of_environments_changes_nothing(protocol: MakeProtocol, most_parallel: int) -> None:
    expected = evaluate(protocol("Lengths", episodes=23))
    found = evaluate(protocol("Lengths", episodes=23), most_parallel=most_parallel)
    assert found.episodes == expected.episodes


def test_short_episodes_do_not_push_long_ones_out(protocol: MakeProtocol) -> None:
    evaluation = evaluate(protocol("Lengths", episodes=60))
    lengths = []
    for seed in range(200_000, 200_060):
        lengths.append(200 if np.random.Generator(np.random.PCG64(seed)).random() < 0.2 else 1)
    assert [episode.length for episode in evaluation.episodes] == lengths
    assert evaluation.mean == np.mean(lengths)
    # what counting whichever 60 episodes end first would have said: almost only the short ones
    assert evaluation.mean > 20


def test_the_policy_always_sees_a_batch_of_the_same_size_and_every_reset(protocol: MakeProtocol) -> None:
    policy = Scripted(zeros)
    with Evaluator(protocol("Lengths", episodes=5), most_parallel=3) as evaluator:
        evaluator.evaluate(policy)
    assert set(policy.batches) == {3}
    assert policy.resets[0] is None
    finished = [row for row in policy.resets if row is not None]
    assert [sum(row[lane] for row in finished) for lane in range(3)] == [2, 2, 1]


def test_evaluating_twice_gives_the_same_episodes(protocol: MakeProtocol) -> None:
    with Evaluator(protocol("CartPole-v1", episodes=5)) as evaluator:
        first, second = (evaluator.evaluate_random() for _ in range(2))
    again = Evaluator(protocol("CartPole-v1", episodes=5))
    assert first.episodes == second.episodes == again.evaluate_random().episodes
    again.close()


def test_the_processes_random_generators_are_left_as_they_were(protocol: MakeProtocol) -> None:
    import torch

    def noisy(observations: np.ndarray) -> np.ndarray:
        torch.rand(1), np.random.random(), random.random()
        return zeros(observations)

    before = (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())
    evaluate(protocol("CartPole-v1", episodes=2), noisy)
    assert before == (random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist())


def test_a_stochastic_policy_that_uses_global_generators_is_reproducible(protocol: MakeProtocol) -> None:
    def coin(observations: np.ndarray) -> np.ndarray:
        return np.random.randint(0, 2, len(observations))

    np.random.seed(1)
    first = evaluate(protocol("CartPole-v1", episodes=4), coin)
    np.random.seed(2)
    assert evaluate(protocol("CartPole-v1", episodes=4), coin).episodes == first.episodes


def test_success_and_reward_terms_are_recorded_where_the_environment_reports_them(protocol: MakeProtocol) -> None:
    failed = evaluate(protocol("Reporting", episodes=6))
    won = evaluate(protocol("Reporting", episodes=6), lambda observations: zeros(observations) + 1)
    assert (failed.success_rate, won.success_rate) == (0.0, 1.0)
    for episode in won.episodes:
        assert episode.terms == {"alive": float(episode.length), "energy": -0.5 * episode.length}
    assert evaluate(protocol("Lengths", episodes=2)).success_rate is None


def test_an_episode_that_never_ends_is_cut_and_marked(protocol: MakeProtocol) -> None:
    evaluation = evaluate(protocol("Endless", episodes=2))
    assert [episode.length for episode in evaluation.episodes] == [UNDECLARED_HORIZON] * 2
    assert evaluation.summary()["cut"] == 2
    assert evaluation.document()["episodes"][0]["is_cut"] is True


def test_a_declared_time_limit_is_the_environments_own_end(protocol: MakeProtocol) -> None:
    evaluation = evaluate(protocol("Endless", episodes=2, wrappers=[{"time_limit": {"max_steps": 30}}]))
    assert [(episode.length, episode.is_cut) for episode in evaluation.episodes] == [(30, False)] * 2


def test_not_a_number_survives_into_the_file(protocol: MakeProtocol, tmp_path: Path) -> None:
    evaluation = evaluate(protocol("NotANumber", episodes=2))
    assert math.isnan(evaluation.mean)
    files.write_json(tmp_path / "evaluation.json", evaluation.document())
    stored = files.read_json(tmp_path / "evaluation.json")
    assert stored["mean"] == stored["std"] == stored["episodes"][0]["return"] == "NaN"


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (
            "Breaking",
            "raised ZeroDivisionError: the floor is lava .envs/worlds.py:.*. at step 1 of the episode with seed 2000",
        ),
        ("BreakingReset", "raised RuntimeError: no world today .* at reset of the episode with seed 200000"),
    ],
)
def test_an_environment_that_raises_fails_the_job_with_the_place(
    protocol: MakeProtocol, world: str, message: str
) -> None:
    with pytest.raises(JobFailed, match=message):
        evaluate(protocol(world, episodes=3))


def test_masks_reach_the_policy(protocol: MakeProtocol) -> None:
    with Evaluator(protocol("Masked", episodes=5)) as evaluator:
        assert evaluator.evaluate_random().summary()["min"] > 0


def test_structured_observations_and_actions_work(protocol: MakeProtocol) -> None:
    with Evaluator(protocol("Seen", episodes=5)) as evaluator:
        evaluation = evaluator.evaluate_random()
    assert [episode.episode_return for episode in evaluation.episodes] == [one.length for one in evaluation.episodes]


def test_the_document_holds_figures_protocol_and_every_episode(protocol: MakeProtocol) -> None:
    evaluation = evaluate(protocol("Lengths", episodes=3))
    document = evaluation.document()
    assert document["fingerprint"] == evaluation.protocol.fingerprint()
    assert (document["purpose"], document["n"], len(document["episodes"])) == ("report", 3, 3)
    assert document["protocol"]["env"]["id"] == "envs/worlds.py:Lengths"
    assert document["episodes"][0] == {
        "seed": 200_000,
        "return": document["episodes"][0]["length"],
        "length": document["episodes"][0]["length"],
    }
    assert evaluation.median == document["median"]


def scenario(**settings: Any) -> Scenario:
    return Scenario.model_validate(settings)


def test_scenarios_are_played_on_the_same_seeds_with_arguments_of_their_own(protocol: MakeProtocol) -> None:
    scenarios = {"short": scenario(kwargs={"long": 3}, **{"pass": "length <= 3"}), "usual": scenario()}
    with Evaluator(replace(protocol("Lengths", episodes=24), scenarios=scenarios)) as evaluator:
        found = evaluator.evaluate(Scripted(zeros))
    assert found.returns.max() == 200
    assert [one.seed for one in found.varied] == 2 * [one.seed for one in found.episodes]
    assert {one.scenario for one in found.varied} == {"short", "usual"}
    summary = found.summary()
    assert summary["scenarios"]["short"]["max"] == 3
    assert summary["scenarios"]["short"]["pass_rate"] == summary["pass_rate"] == 1.0
    assert "pass_rate" not in summary["scenarios"]["usual"]
    assert summary["scenarios"]["usual"]["mean"] == summary["mean"] == found.score
    rows = found.document()["episodes"]
    assert (rows[0].get("scenario"), rows[24]["scenario"], rows[24]["passed"]) == (None, "short", True)


def test_the_metric_says_what_the_score_is(protocol: MakeProtocol) -> None:
    scenarios = {"long": scenario(**{"pass": "length > 1 and alive > 100"})}
    measured = replace(protocol("Reporting", episodes=24), scenarios=scenarios)
    for metric in ("return", "success_rate", "pass_rate"):
        with Evaluator(replace(measured, metric=metric)) as evaluator:
            found = evaluator.evaluate(Scripted(lambda seen: np.ones(len(seen), dtype=np.int64)))
        expected = {"return": found.mean, "success_rate": 1.0, "pass_rate": found.pass_rate}[metric]
        assert found.score == expected
        assert found.summary().get("score", found.mean) == expected
    assert 0 < (found.pass_rate or 0) < 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metric": "success_rate"}, "reports no success"),
        ({"scenarios": {"odd": {"pass": "success"}}}, "`eval.scenarios.odd.pass` names 'success'"),
    ],
)
def test_a_figure_that_the_world_does_not_report_is_named(
    protocol: MakeProtocol, settings: dict[str, Any], words: str
) -> None:
    scenarios = {name: scenario(**one) for name, one in settings.get("scenarios", {}).items()}
    measured = replace(protocol("Lengths", episodes=2), **{**settings, "scenarios": scenarios})
    with Evaluator(measured) as evaluator, pytest.raises(EvidenceInvalid, match=re.escape(words)):
        evaluator.evaluate(Scripted(zeros)).summary()


def test_progress_is_told_episode_by_episode(protocol: MakeProtocol) -> None:
    told: list[tuple[int, int]] = []
    measured = replace(protocol("Lengths", episodes=4), scenarios={"same": scenario()})
    with Evaluator(measured, progress=lambda done, total: told.append((done, total))) as evaluator:
        evaluator.evaluate(Scripted(zeros))
    assert told[-1] == (8, 8)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Box(-2, 2, (1,)),
        gymnasium.spaces.Box(np.array([-1, 0.5]), np.array([1.0, 3.0]), dtype=np.float64),
        gymnasium.spaces.Box(-np.inf, 1, (2,)),
        gymnasium.spaces.Discrete(5),
    ],
    ids=str,
)
def test_random_actions_of_a_batch_are_those_drawn_one_by_one(space: Any) -> None:
    batch, single = RandomPolicy(space, seed=3), RandomPolicy(space, seed=3)
    drawn = np.concatenate([batch.predict(np.zeros(5)) for _ in range(4)])
    np.testing.assert_array_equal(drawn, np.stack([single.sample() for _ in range(20)]))
