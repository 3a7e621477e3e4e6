"""Disturbances between a policy and its world, on literal batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlx.evaluate.robustness.disturbances import (
    DelayedActions,
    FrozenSensors,
    LostActions,
    RepeatedActions,
    SensorNoise,
    SensorOffset,
    SpreadRecorder,
)


class Echo:
    """Remembers what it saw and takes the actions it is told to."""

    def __init__(self, actions: Any = None) -> None:
        self.seen: list[Any] = []
        self.actions = actions
        self.resets: list[Any] = []

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> np.ndarray:
        self.seen.append(observations)
        step = len(self.seen) - 1
        rows = len(next(iter(observations.values()))) if isinstance(observations, dict) else len(observations)
        return np.full(rows, step, dtype=np.int64) if self.actions is None else np.asarray(self.actions[step])

    def reset(self, finished: Any = None) -> None:
        self.resets.append(finished)


ROWS = np.zeros((3, 2), dtype=np.float32)
UNIT = [np.array([1.0, 10.0])]


def test_the_spread_is_that_of_every_number_while_its_episode_is_played() -> None:
    watch = SpreadRecorder(Echo(), episodes=2)
    watch.reset()
    for value in (0.0, 2.0):
        watch.predict(np.array([[value, 1e6], [value, 1e6 + value]]))
    watch.reset(np.array([True, False]))
    watch.predict(np.array([[500.0, 0.0], [1.0, 1e6 + 1]]))
    (found,) = watch.spread()
    assert found is not None
    np.testing.assert_allclose(found, [np.std([0, 0, 2, 2, 1]), np.std([0, 0, 0, 2, 1])])


def test_classes_and_counts_have_no_spread_and_images_have() -> None:
    watch = SpreadRecorder(Echo(), episodes=4)
    generator = np.random.default_rng(0)
    for _ in range(3):
        watch.predict({
            "class": generator.integers(9, size=4),
            "image": generator.integers(255, size=(4, 3, 3), dtype=np.uint8),
            "real": generator.random((4, 2)),
        })  # fmt: skip
    kind, image, real = watch.spread()
    assert kind is None
    assert image is not None
    assert image.shape == (3, 3)
    assert real is not None


def test_noise_has_the_asked_spread_and_is_new_at_every_step() -> None:
    inner = Echo()
    noisy = SensorNoise(inner, strength=0.5, seed=0, spread=UNIT)
    for _ in range(400):
        noisy.predict(ROWS)
    seen = np.array(inner.seen)
    np.testing.assert_allclose(seen.std(axis=(0, 1)), [0.5, 5.0], rtol=0.1)
    assert seen.dtype == np.float32
    assert not ROWS.any()


def test_noise_on_images_stays_an_image_and_leaves_classes_alone() -> None:
    inner = Echo()
    spread = [None, np.full((2, 2), 50.0)]
    batch = {"class": np.arange(3), "image": np.full((3, 2, 2), 250, dtype=np.uint8)}
    SensorNoise(inner, strength=1.0, seed=0, spread=spread).predict(batch)
    assert inner.seen[0]["image"].dtype == np.uint8
    assert inner.seen[0]["image"].max() == 255
    assert (inner.seen[0]["class"] == np.arange(3)).all()


def test_an_offset_is_constant_within_an_episode_and_drawn_anew_for_the_next() -> None:
    inner = Echo()
    shifted = SensorOffset(inner, strength=0.5, seed=1, spread=UNIT)
    shifted.reset()
    for step in range(40):
        if step:
            shifted.reset(np.array([step % 2 == 0, False, False]))
        shifted.predict(ROWS)
    seen = np.array(inner.seen)
    assert set(np.abs(seen[..., 0]).ravel()) == {0.5}
    assert set(np.abs(seen[..., 1]).ravel()) == {5.0}
    assert (seen[:, 1:] == seen[0, 1:]).all()
    assert (seen[2::2, 0] == seen[3::2, 0]).all()
    assert len(np.unique(seen[:, 0], axis=0)) == 4


def test_frozen_sensors_stay_where_the_episode_began() -> None:
    inner = Echo()
    frozen = FrozenSensors(inner, strength=0.5, seed=0, spread=[np.ones(4)])
    frozen.reset()
    for step in range(6):
        frozen.predict(np.full((2, 4), float(step)))
        frozen.reset(np.array([step == 2, False]))
    seen = np.array(inner.seen)
    assert (np.sort(seen[2], axis=1) == [0, 0, 2, 2]).all()
    assert (np.sort(seen[5, 0]) == [3, 3, 5, 5]).all()
    assert (np.sort(seen[5, 1]) == [0, 0, 5, 5]).all()


def test_at_least_one_sensor_freezes() -> None:
    inner = Echo()
    frozen = FrozenSensors(inner, strength=0.01, seed=0, spread=[np.ones(3)])
    for step in range(2):
        frozen.predict(np.full((5, 3), float(step)))
    assert ((inner.seen[1] == 0).sum(axis=1) == 1).all()


def played(policy: Any, steps: int, ends: dict[int, list[bool]] | None = None) -> np.ndarray:
    policy.reset()
    applied = []
    for step in range(steps):
        applied.append(np.array(policy.predict(ROWS)))
        if ends and step in ends:
            policy.reset(np.array(ends[step]))
    return np.array(applied)


def test_a_late_action_waits_and_the_next_episode_begins_anew() -> None:
    applied = played(DelayedActions(Echo(), strength=2, seed=0, neutral=None), 7, {3: [True, False, False]})
    assert applied[:, 1].tolist() == [0, 0, 0, 1, 2, 3, 4]
    assert applied[:, 0].tolist() == [0, 0, 0, 1, 4, 4, 4]


def test_before_the_first_action_arrives_the_neutral_one_is_applied() -> None:
    actions = [np.full((3, 1), step + 5.0) for step in range(4)]
    applied = played(DelayedActions(Echo(actions), strength=1, seed=0, neutral=np.zeros(1)), 4)
    assert applied[:, 0, 0].tolist() == [0.0, 5.0, 6.0, 7.0]


def test_a_lost_action_is_the_neutral_one() -> None:
    actions = [np.full((3, 1), 5.0)] * 300
    applied = played(LostActions(Echo(actions), strength=0.3, seed=0, neutral=np.array([-1.0])), 300)
    assert set(applied.ravel()) == {5.0, -1.0}
    assert np.mean(applied == -1) == pytest.approx(0.3, abs=0.05)


def test_a_repeated_action_is_the_one_applied_before_and_never_that_of_another_episode() -> None:
    applied = played(RepeatedActions(Echo(), strength=1.0, seed=0, neutral=None), 6, {2: [True, False, False]})
    assert applied[:, 0].tolist() == [0, 0, 0, 3, 3, 3]
    assert applied[:, 1].tolist() == [0] * 6


def test_an_action_that_is_not_allowed_is_never_applied() -> None:
    late = DelayedActions(Echo(), strength=1, seed=0, neutral=None)
    masks = np.ones((3, 9), dtype=np.bool_)
    late.predict(ROWS, masks=masks)
    masks[0, 0] = False
    assert late.predict(ROWS, masks=masks).tolist() == [1, 0, 0]


def test_the_same_seed_disturbs_alike_and_another_otherwise() -> None:
    def seen(seed: int) -> np.ndarray:
        inner = Echo()
        SensorNoise(inner, strength=1.0, seed=seed, spread=UNIT).predict(ROWS)
        return np.asarray(inner.seen[0])

    assert (seen(0) == seen(0)).all()
    assert (seen(0) != seen(1)).any()


def test_the_policy_inside_hears_of_every_reset() -> None:
    inner = Echo()
    noisy = SensorNoise(inner, strength=1.0, seed=0, spread=UNIT)
    noisy.reset()
    noisy.reset(np.array([True, False, False]))
    assert inner.resets[0] is None
    assert inner.resets[1].tolist() == [True, False, False]
