"""The loops learn what SB3's own would, stop when asked, and stop where a number is not finite."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.distributions import Distribution

from rlx.config.schema import Experiment
from rlx.errors import JobFailed
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.testing import RecordingSession, digest
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from rlx.train.finite_checks import Diverged
from tests.train.backends.sb3_examples import TOYS, rehearse, tiny, weights_of


@pytest.mark.parametrize("name", ["ppo", "a2c", "recurrent_ppo", "dqn", "sac", "td3"])
def test_our_loop_is_sb3s_own(name: str, tmp_path: Path) -> None:
    experiment = tiny(name, env={"normalize": {"obs": True, "reward": True}})
    ours = rehearse(experiment, tmp_path)
    learner = Sb3Learner(experiment, root=tmp_path, seed=0)
    learner.algorithm.learn(experiment.algo.total_timesteps)
    learner.close()
    theirs = {key: value.numpy() for key, value in learner.algorithm.policy.state_dict().items()}
    assert weights_of(ours.saved.policy) == weights_of(theirs)


class Gambler(RecordingSession):
    """A session whose evaluations draw from every generator."""

    def after_update(self, step: int, metrics: Callable[[], Mapping[str, float]], **arguments: Any) -> bool:
        random.random()
        np.random.rand(3)
        torch.rand(3)
        arguments["policy"].predict(self.observations, deterministic=False)
        return super().after_update(step, metrics, **arguments)


@pytest.mark.parametrize("name", ["ppo", "sac", "recurrent_ppo"])
def test_what_an_evaluation_draws_changes_nothing(name: str, tmp_path: Path) -> None:
    quiet = rehearse(tiny(name), tmp_path / "quiet")
    gambler = Gambler(tiny(name), tmp_path / "gambler", root=tmp_path)
    Sb3Trainer().train(cast("Any", gambler))
    assert digest(gambler.saved) == digest(quiet.saved)
    before, after = quiet.saved.state["random"], gambler.saved.state["random"]
    assert before["python"] == after["python"]
    np.testing.assert_array_equal(before["torch"], after["torch"])


def constant(name: str, *, terminates: bool, **algo: Any) -> Experiment:
    env: dict[str, Any] = {"id": f"{TOYS}:Constant", "num_envs": 2, "kwargs": {"terminates": terminates}}
    if not terminates:
        env["wrappers"] = [{"time_limit": {"max_steps": 5}}]
    return tiny(name, env=env, gamma=0.9, **algo)


def learned_value(session: RecordingSession) -> float:
    learner = Sb3Learner(session.experiment, root=session.root, seed=0)
    learner.begin()
    learner.restore(session.saved)
    observation = torch.ones(1, 1)
    policy: Any = learner.algorithm.policy
    with torch.no_grad():
        values = policy.q_net(observation).max() if hasattr(policy, "q_net") else policy.predict_values(observation)
    learner.close()
    return float(values)


ON_POLICY = {"rollout_steps": 64, "batch_size": 64, "total_timesteps": 5120, "learning_rate": 0.02, "gae_lambda": 1.0}
OFF_POLICY = {"total_timesteps": 2400, "learning_rate": 0.01, "target_update_every": 40, "buffer_size": 1000}


@pytest.mark.parametrize(("name", "algo"), [("ppo", ON_POLICY), ("dqn", OFF_POLICY)])
def test_an_episode_that_is_cut_is_worth_what_would_have_followed(name: str, algo: Any, tmp_path: Path) -> None:
    """Reward 1 and γ = .9 are worth 10 for ever; the five steps until the cut, 4.1."""
    session = rehearse(constant(name, terminates=False, **algo), tmp_path)
    assert learned_value(session) == pytest.approx(10, abs=0.5)


def test_an_episode_that_ends_is_worth_no_more_than_its_rewards(tmp_path: Path) -> None:
    session = rehearse(constant("ppo", terminates=True, **ON_POLICY), tmp_path)
    mean = np.mean([(1 - 0.9**left) / 0.1 for left in range(1, 6)])
    assert learned_value(session) == pytest.approx(mean, abs=0.3)


def test_an_observation_that_is_not_finite_stops_the_seed(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match=r"observation of environment \d is -?inf at step \d+"):
        rehearse(tiny("ppo", env={"id": f"{TOYS}:Sick"}), tmp_path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of SB3, on the way there
@pytest.mark.parametrize("name", ["ppo", "a2c", "sac", "td3", "dqn"])
def test_weights_that_explode_stop_the_seed_and_are_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(Diverged, match=r"(loss|parameter) `[\w./]+` is (nan|-?inf) at step \d+") as caught:
        rehearse(tiny(name, learning_rate=1e30, total_timesteps=2000), tmp_path)
    assert isinstance(caught.value, JobFailed)
    assert caught.value.hint


def test_weights_broken_between_updates_are_named(tmp_path: Path) -> None:
    class Vandal(RecordingSession):
        def after_update(self, step: int, metrics: Callable[[], Mapping[str, float]], **arguments: Any) -> bool:
            arguments["policy"].network.action_net.bias.data[0] = float("nan")
            return super().after_update(step, metrics, **arguments)

    with pytest.raises(Diverged, match=r"parameter `action_net\.bias` is nan"):
        Sb3Trainer().train(cast("Any", Vandal(tiny("ppo"), tmp_path, root=tmp_path)))


def test_nothing_but_the_untrained_policy_is_saved_after_divergence(tmp_path: Path) -> None:
    with pytest.raises(Diverged):
        rehearse(tiny("ppo", learning_rate=1e30), tmp_path / "checkpoints")
    assert checkpoints.names(tmp_path / "checkpoints") == ["untrained"]


def test_torchs_own_settings_are_put_back(tmp_path: Path) -> None:
    before = Distribution._validate_args
    rehearse(tiny("ppo"), tmp_path)
    assert Distribution._validate_args == before


def test_random_search_stops_in_the_middle_of_an_update(tmp_path: Path) -> None:
    experiment = tiny("ars", total_timesteps=400)
    whole = rehearse(experiment, tmp_path / "whole")
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=5)
    assert stopped.rows == []
    assert stopped.saved.step == 0
    assert digest(rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved).saved) == digest(whole.saved)


def test_random_search_counts_every_step_once(tmp_path: Path) -> None:
    session = rehearse(tiny("ars", env={"num_envs": 3}, eval_episodes=3), tmp_path)
    assert session.saved.step == session.saved.state["account"]["steps"]
    assert session.saved.step % 3 == 0


def test_the_session_is_told_about_progress_between_updates(tmp_path: Path) -> None:
    class Listener(RecordingSession):
        heard: list[int]

        def progress(self, step: int, episode_return: float | None = None) -> None:
            self.heard = [*getattr(self, "heard", []), step]

    session = Listener(tiny("ppo"), tmp_path, root=tmp_path)
    Sb3Trainer().train(cast("Any", session))
    assert session.heard[0] == 2
