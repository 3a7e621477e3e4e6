"""Every key of the config reaches SB3's constructor."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlx.config.schema import ALGORITHMS as SCHEMA
from rlx.errors import ConfigError, NotFound
from rlx.train.backends.sb3 import algorithms
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from tests.train.backends.sb3_examples import CONTINUOUS, TOYS, rehearse, tiny


def built(name: str = "ppo", **settings: Any) -> Any:
    learner = Sb3Learner(tiny(name, **settings), root=Path(), seed=0)
    learner.close()
    return learner.algorithm


def test_every_algorithm_of_the_schema_has_its_class() -> None:
    assert set(algorithms.CLASSES) == set(SCHEMA)


VALUES: list[tuple[str, str, Any, str]] = [
    ("ppo", "rollout_steps", 32, "n_steps"),
    ("ppo", "update_epochs", 3, "n_epochs"),
    ("ppo", "entropy_coef", 0.01, "ent_coef"),
    ("ppo", "value_coef", 0.4, "vf_coef"),
    ("ppo", "gae_lambda", 0.9, "gae_lambda"),
    ("ppo", "target_kl", 0.1, "target_kl"),
    ("ppo", "normalize_advantage", False, "normalize_advantage"),
    ("ppo", "max_grad_norm", 0.7, "max_grad_norm"),
    ("a2c", "gamma", 0.8, "gamma"),
    ("trpo", "critic_updates", 4, "n_critic_updates"),
    ("trpo", "cg_max_steps", 3, "cg_max_steps"),
    ("trpo", "cg_damping", 0.2, "cg_damping"),
    ("dqn", "target_update_every", 7, "target_update_interval"),
    ("dqn", "exploration_final", 0.2, "exploration_final_eps"),
    ("dqn", "exploration_initial", 0.9, "exploration_initial_eps"),
    ("dqn", "exploration_fraction", 0.3, "exploration_fraction"),
    ("dqn", "learning_starts", 9, "learning_starts"),
    ("sac", "tau", 0.1, "tau"),
    ("sac", "target_entropy", -3.0, "target_entropy"),
    ("sac", "gradient_steps", 2, "gradient_steps"),
    ("tqc", "dropped_quantiles", 1, "top_quantiles_to_drop_per_net"),
    ("td3", "policy_delay", 3, "policy_delay"),
    ("td3", "target_noise", 0.3, "target_policy_noise"),
    ("td3", "target_noise_clip", 0.6, "target_noise_clip"),
    ("ars", "deltas", 3, "n_delta"),
    ("ars", "eval_episodes", 2, "n_eval_episodes"),
]


@pytest.mark.parametrize(("name", "key", "value", "attribute"), VALUES, ids=lambda value: str(value))
def test_a_key_reaches_its_attribute(name: str, key: str, value: Any, attribute: str) -> None:
    extra = {"top_deltas": 2} if key == "deltas" else {}
    assert getattr(built(name, **{key: value}, **extra), attribute) == value


@pytest.mark.parametrize("name", SCHEMA)
def test_no_key_of_the_schema_is_forgotten(name: str) -> None:
    accepted = set(inspect.signature(algorithms.CLASSES[name]).parameters)
    elsewhere = algorithms.ELSEWHERE | algorithms.WITHOUT.get(name, set())
    for key in SCHEMA[name].model_fields:
        assert key in elsewhere or algorithms.SB3_NAMES.get(key, key) in accepted, key


def test_networks_follow_the_config() -> None:
    network = built(policy={"hidden_sizes": [5, 6]}).policy.mlp_extractor.policy_net
    sizes = [layer.out_features for layer in network if isinstance(layer, torch.nn.Linear)]
    assert sizes == [5, 6]
    assert isinstance(built(policy={"activation": "elu"}).policy.mlp_extractor.policy_net[1], torch.nn.ELU)
    assert built("recurrent_ppo", lstm_size=5).policy.lstm_actor.hidden_size == 5
    assert built("qrdqn", quantiles=7).policy.n_quantiles == 7
    critic = built("tqc", quantiles=6, critics=3, dropped_quantiles=1).policy.critic
    assert (critic.n_quantiles, critic.n_critics) == (6, 3)


def test_schedules_follow_what_remains_and_do_not_go_below_the_end() -> None:
    rate = built(learning_rate={"linear": [1e-2, 1e-3]}).lr_schedule
    assert [rate(1.0), rate(0.5), rate(0.0), rate(-0.3)] == pytest.approx([1e-2, 5.5e-3, 1e-3, 1e-3])
    clip = built(clip_range={"cosine": [0.4, 0.2]}).clip_range
    assert [clip(1.0), clip(0.5), clip(0.0)] == pytest.approx([0.4, 0.3, 0.2])


@pytest.mark.parametrize("name", ["td3", "ddpg"])
def test_action_noise_has_its_deviation_or_is_absent(name: str) -> None:
    noise = built(name, action_noise=0.3).action_noise
    np.testing.assert_allclose(noise._sigma, [0.3])
    assert built(name, action_noise=0.0).action_noise is None


@pytest.mark.parametrize("name", CONTINUOUS)
def test_off_policy_algorithms_use_their_buffer_size(name: str) -> None:
    assert built(name, buffer_size=50).replay_buffer.buffer_size == 25  # two environments


def test_results_do_not_depend_on_where_an_observation_lies_in_memory() -> None:
    """NumPy aligns to 16 bytes; the matrix product rounds differently for each alignment."""
    policy = built(policy={"hidden_sizes": [16, 16]}).policy
    observations = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    room = np.zeros(1000, dtype=np.uint8)
    seen = set()
    for offset in range(0, 256, 4):
        view = room[offset : offset + observations.nbytes].view(np.float32).reshape(observations.shape)
        view[:] = observations
        with torch.no_grad():
            seen.add(policy.predict_values(policy.obs_to_tensor(view)[0]).numpy().tobytes())
            seen.add(policy.predict_values(torch.as_tensor(view)).numpy().tobytes())
    assert len(seen) == 1


def test_a_class_that_is_no_algorithm_is_refused(tmp_path: Path) -> None:
    (tmp_path / "algo.py").write_text("class Mine: pass\n")
    with pytest.raises(ConfigError, match="is not a subclass of an SB3 algorithm"):
        rehearse(tiny("algo.py:Mine"), tmp_path)
    with pytest.raises(NotFound, match="has no `Yours`"):
        rehearse(tiny("algo.py:Yours"), tmp_path)


def test_a_policy_an_algorithm_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`ars` has no `multi` policy"):
        rehearse(tiny("ars", env={"id": f"{TOYS}:Mixed"}, policy={"type": "multi"}), tmp_path)


def test_what_a_constructor_refuses_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="building `ppo` raised TypeError") as caught:
        rehearse(tiny("ppo", policy={"kwargs": {"no_such_argument": 1}}), tmp_path)
    assert "\n" not in caught.value.message


def test_a_gpu_that_is_not_there_is_refused(tmp_path: Path) -> None:
    experiment = tiny("ppo").model_copy(update={"device": "cuda:7"})
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="`cuda:7` is not available"):
            rehearse(experiment, tmp_path)


def test_a_small_network_stays_on_the_cpu() -> None:
    assert algorithms.device_for(tiny("ppo")) == "cpu"


def test_training_mode_still_changes_when_it_should() -> None:
    policy = built("dqn").policy
    for mode in (False, True, True, False, False, True):
        policy.set_training_mode(mode)
        assert policy.training == policy.q_net.training == policy.q_net.q_net[0].training == mode
        assert not policy.q_net_target.training
    policy.predict(np.zeros((1, 4), dtype=np.float32))
    assert not policy.q_net.training
