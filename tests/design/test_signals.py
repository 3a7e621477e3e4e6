"""Signals from configs and from words."""

from __future__ import annotations

from rlx.design import signals


def test_a_config_gives_numbers_and_leaves_out_the_unknown() -> None:
    config = {
        "env": {"id": "X", "num_envs": 8, "wrappers": [{"frame_stack": {"size": 4}}], "normalize": {"obs": True}},
        "algo": {"name": "ppo", "rollout_steps": 100, "batch_size": 64, "learning_rate": {"linear": [0.001, 0]}},
    }
    found = signals.from_config(config)
    assert found["rollout_size"] == 800
    assert found["batch_remainder"] == 32
    assert found["learning_rate"] == 0.001
    assert found["frames"] == 4
    assert found["normalize_obs"] == 1
    assert found["is_on_policy"] == 1
    assert "buffer_size" not in found


def test_every_signal_of_a_config_has_a_meaning() -> None:
    config = {"env": {"num_envs": 1}, "algo": {"name": "sac", "gradient_steps": 2, "train_every": 1}}
    assert set(signals.from_config(config)) <= set(signals.MEANINGS)


def test_words_name_tasks_and_stacks() -> None:
    found = signals.from_words("Train an Isaac Lab quadruped for a real robot")
    assert found["task_quadruped"] == found["stack_isaaclab"] == found["is_for_robot"] == 1
    assert found["task_grasp"] == 0


def test_a_word_inside_another_word_does_not_count() -> None:
    assert signals.from_words("a merchant in an important antenna")["task_quadruped"] == 0


def test_rules_that_looked_and_found_nothing_are_zero() -> None:
    assert signals.from_findings(["crashed"], ["plateau"]) == {"finding_crashed": 1.0, "finding_plateau": 0.0}
