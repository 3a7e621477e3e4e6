"""Explanations find the input that a policy uses, and agree with other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rlx.evaluate.explain.attention import attention_over_time
from rlx.evaluate.explain.saliency import (
    Observations,
    component_names,
    gradient_saliency,
    hidden_range,
    occlusion,
    permutation_importance,
    value_slice,
)
from rlx.train.backends.fast.action_distributions import distribution_for
from rlx.train.backends.fast.features import Features
from rlx.train.backends.fast.network import NetworkShape, Weights
from rlx.train.backends.fast.numpy_policy import FastPolicy

INPUTS = 6


def planted(number: int) -> tuple[FastPolicy, Observations, int]:
    """Return a policy of random weights that reads a single input, and random observations."""
    generator = np.random.default_rng(number)
    observed = spaces.Box(-5, 5, (INPUTS,), np.float32)
    acts: spaces.Space[object] = spaces.Discrete(3) if number % 2 else spaces.Box(-1, 1, (2,), np.float32)  # type: ignore[assignment]
    distribution = distribution_for(acts)
    shape = NetworkShape(INPUTS, (16, 16), distribution.num_outputs, "tanh", distribution.has_log_std)
    weights = Weights(shape)
    for name, array in weights.named():
        array[...] = generator.normal(0, 0.7, array.shape)
        if name.endswith("net.0.weight"):
            array[:, [index for index in range(INPUTS) if index != number % INPUTS]] *= 0.02
    policy = FastPolicy(weights, distribution, Features(observed), None)
    batch = generator.normal(size=(200, INPUTS)).astype(np.float32)
    return policy, Observations(batch, observed, None), number % INPUTS


def test_every_method_finds_the_planted_input_in_ten_of_ten_policies() -> None:
    for number in range(10):
        policy, observations, important = planted(number)
        found = gradient_saliency(policy, observations)
        assert int(np.argmax(found.gradient)) == important
        assert int(np.argmax(found.integrated)) == important
        assert found.value_gradient is not None
        assert int(np.argmax(found.value_gradient)) == important
        assert found.completeness < 0.02
        shuffled = permutation_importance(policy, observations)
        assert max(shuffled, key=shuffled.__getitem__) == f"obs[{important}]"


def test_gradients_equal_small_differences() -> None:
    policy, observations, _ = planted(3)
    inputs = np.asarray(policy.inputs(observations.batch[:5]), dtype=np.float64)
    weights = np.array([[1.0, -0.5, 2.0]] * 5)
    analytic = policy.gradients(inputs, weights, 0.3)
    step = 1e-2
    for index in range(INPUTS):
        ends = []
        for sign in (1, -1):
            moved = inputs.copy()
            moved[:, index] += sign * step
            outputs, values = policy.outputs(moved)
            assert values is not None
            ends.append((outputs * weights).sum(axis=1) + 0.3 * values)
        assert analytic[:, index] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=0.02, abs=0.02)


def test_the_action_probabilities_are_those_of_the_distribution() -> None:
    policy, observations, _ = planted(1)
    internals = policy.internals(observations.batch)
    assert internals.probabilities is not None
    assert internals.entropy is not None
    assert internals.probabilities.sum(axis=1) == pytest.approx(np.ones(200), abs=1e-5)
    assert (internals.probabilities.argmax(axis=1) == policy.predict(observations.batch)).all()
    entropy = -(internals.probabilities * np.log(internals.probabilities)).sum(axis=1)
    assert internals.entropy == pytest.approx(entropy, abs=1e-4)
    real, seen, _ = planted(2)
    gaussian = real.internals(seen.batch)
    assert gaussian.mean is not None
    assert gaussian.std is not None
    assert np.clip(gaussian.mean, -1, 1) == pytest.approx(real.predict(seen.batch), abs=1e-5)


def test_parts_of_dicts_and_choices_have_names() -> None:
    space = spaces.Dict({"arm": spaces.Box(-1, 1, (2,)), "mode": spaces.Discrete(2)})
    assert component_names(space) == ["arm[0]", "arm[1]", "mode=0", "mode=1"]


def test_the_value_over_two_inputs_is_that_of_the_critic() -> None:
    policy, observations, important = planted(4)
    area = value_slice(policy, observations, (f"obs[{important}]", "obs[0]"))
    assert area is not None
    row = np.median(observations.batch, axis=0)
    row[important] = area.x[3]
    row[0] = area.y[5]
    values = policy.internals(row[None].astype(np.float32)).values
    assert values is not None
    assert area.values[5, 3] == pytest.approx(values[0], abs=1e-4)


class LooksAtOneCorner:
    """Chooses by the brightness of the upper left patch of an image."""

    def predict(self, observations: np.ndarray, *, deterministic: bool = True, masks: object = None) -> np.ndarray:
        return (observations[:, :4, :4].mean(axis=(1, 2, 3)) > 127).astype(np.int64)

    def reset(self, finished: object = None) -> None:
        pass


def test_occlusion_finds_the_patch_that_a_policy_looks_at() -> None:
    space = spaces.Box(0, 255, (32, 32, 3), np.uint8)
    images = np.random.default_rng(0).integers(0, 255, (40, 32, 32, 3), dtype=np.uint8)
    images[::2, :4, :4] //= 4
    heat = occlusion(LooksAtOneCorner(), Observations(images, space, None))["obs"]  # type: ignore[arg-type]
    assert np.unravel_index(np.argmax(heat), heat.shape) == (0, 0)
    assert np.count_nonzero(heat) == 1


def test_hidden_states_have_a_range() -> None:
    hidden = hidden_range(np.array([[0.0, 0.99], [-0.5, 0.1]]))
    assert hidden["low"] == -0.5
    assert hidden["saturated"] == 0.25


@pytest.mark.slow
def test_integrated_gradients_agree_with_captum() -> None:
    torch = pytest.importorskip("torch", reason="the extra `sb3` is not installed")
    attr = pytest.importorskip("captum.attr", reason="captum is not installed")
    from stable_baselines3.common.policies import ActorCriticPolicy

    from rlx.train.backends.sb3.torch_policy import Sb3Policy

    space = spaces.Box(-5, 5, (INPUTS,), np.float32)
    torch.manual_seed(0)
    network = ActorCriticPolicy(space, spaces.Discrete(3), lambda _: 1e-3, net_arch=[16])
    policy = Sb3Policy(network)
    batch = np.random.default_rng(0).normal(size=(50, INPUTS)).astype(np.float32)
    ours = gradient_saliency(policy, Observations(batch, space, None))
    outputs, _ = policy.outputs(batch)
    chosen = torch.as_tensor(outputs.argmax(axis=1))

    def preferred(inputs: object) -> object:
        logits = network.get_distribution(inputs).distribution.logits
        return logits.gather(1, chosen.repeat(len(logits) // len(chosen))[:, None])[:, 0] - logits.mean(dim=1)

    start = torch.as_tensor(batch.mean(axis=0, keepdims=True)).repeat(len(batch), 1)
    theirs = attr.IntegratedGradients(preferred).attribute(
        torch.as_tensor(batch), start, n_steps=64, method="riemann_middle", internal_batch_size=len(batch)
    )
    assert ours.integrated == pytest.approx(theirs.abs().mean(dim=0).detach().numpy(), rel=0.01, abs=1e-4)


def test_a_recurrent_policy_is_explained_without_gradients() -> None:
    pytest.importorskip("torch", reason="the extra `sb3` is not installed")
    from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy

    from rlx.errors import UsageError
    from rlx.train.backends.sb3.torch_policy import Sb3Policy

    space = spaces.Box(-5, 5, (INPUTS,), np.float32)
    policy = Sb3Policy(RecurrentActorCriticPolicy(space, spaces.Discrete(3), lambda _: 1e-3, lstm_hidden_size=8))
    batch = np.random.default_rng(0).normal(size=(20, INPUTS)).astype(np.float32)
    with pytest.raises(UsageError, match="hidden state"):
        gradient_saliency(policy, Observations(batch, space, None))
    assert len(permutation_importance(policy, Observations(batch, space, None))) == INPUTS
    policy.predict(batch)
    state = policy.hidden_state()
    assert state is not None
    assert np.abs(state).max() <= 1.0
    policy.reset()
    policy.predict(batch)
    before = policy.hidden_state()
    internals = policy.internals(batch)
    assert internals.probabilities is not None
    assert internals.probabilities.argmax(axis=1).tolist() == policy.predict(batch).tolist()
    policy.reset()
    policy.predict(batch)
    policy.internals(batch)
    np.testing.assert_array_equal(policy.hidden_state(), before)  # looking does not change the memory
    episodes = [tuple(batch[:12]), tuple(batch[5:])]
    attention = attention_over_time(policy, episodes, space)
    assert list(attention) == [0, 1, 2, 4, 8]
    assert attention[0] > 0


class Remembers:
    """Acts on what it saw some steps ago."""

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._seen: list[np.ndarray] = []

    def predict(self, observations: np.ndarray, *, deterministic: bool = True, masks: object = None) -> np.ndarray:
        self._seen.append(observations)
        return (self._seen[max(0, len(self._seen) - 1 - self._lag)][:, 0] > 0).astype(np.int64)

    def reset(self, finished: object = None) -> None:
        self._seen = []


@pytest.mark.parametrize("lag", [0, 1, 2, 4, 8, 16])
def test_attention_over_time_finds_the_observation_that_a_policy_remembers(lag: int) -> None:
    generator = np.random.default_rng(lag)
    space = spaces.Box(-5, 5, (3,), np.float32)
    episodes = [tuple(generator.normal(size=(40, 3)).astype(np.float32)) for _ in range(4)]
    attention = attention_over_time(Remembers(lag), episodes, space)  # type: ignore[arg-type]
    assert attention[lag] > 0.3
    assert all(value == 0 for steps, value in attention.items() if steps != lag)


def test_attention_over_time_needs_long_enough_episodes() -> None:
    space = spaces.Box(-5, 5, (3,), np.float32)
    short = [tuple(np.zeros((1, 3), np.float32))] * 20
    assert attention_over_time(Remembers(0), short, space) == {}  # type: ignore[arg-type]
