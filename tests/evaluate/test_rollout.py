"""Rolling out: every episode counts once, whatever its length; nothing outside is disturbed."""

from __future__ import annotations

import math
import random
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rlx import files
from rlx.errors import JobFailed
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
