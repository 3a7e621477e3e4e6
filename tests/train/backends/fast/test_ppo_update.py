"""The update's gradients are autograd's, its steps are SB3's, and seeds do not see each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch.distributions import Bernoulli, Categorical, Normal

from rlx.config.schema import Ppo
from rlx.train.backends.fast.action_distributions import ActionDistribution, distribution_for
from rlx.train.backends.fast.adam import Adam
from rlx.train.backends.fast.network import NetworkPass, NetworkShape, Weights
from rlx.train.backends.fast.ppo_update import PpoUpdate, UpdateStats, normalize_advantages
from rlx.train.backends.fast.rollout_buffer import Samples
from rlx.train.backends.sb3 import sb3_loop, training_state
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from tests.train.backends.sb3_examples import TOYS, tiny

ROWS, INPUTS = 24, 5
SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(3),
    "dials": spaces.MultiDiscrete([2, 4, 3]),
    "bits": spaces.MultiBinary(4),
    "box": spaces.Box(-1, 1, (2,)),
}
ACTIVATIONS = {"tanh": torch.nn.Tanh(), "relu": torch.nn.ReLU(), "elu": torch.nn.ELU(), "silu": torch.nn.SiLU(),
               "gelu": torch.nn.GELU()}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "entropy": {"entropy_coef": 0.1},
    "value clipping": {"clip_range_value": 0.3, "value_coef": 0.7},
}


def settings(**algo: Any) -> Ppo:
    return Ppo(name="ppo", batch_size=ROWS, **algo)


def shape_of(
    actions: ActionDistribution, *, hidden: tuple[int, ...] = (7, 6), activation: str = "tanh"
) -> NetworkShape:
    return NetworkShape(INPUTS, hidden, actions.num_outputs, activation, actions.has_log_std)


def random_weights(shape: NetworkShape, *, seeds: int = 1, dtype: Any = np.float64) -> Weights:
    """Return weights whose heads and biases are not small, so that ratios leave the clip range."""
    weights = Weights(shape, seeds=seeds, dtype=dtype)
    weights.initialise([np.random.default_rng(seed) for seed in range(seeds)])
    for seed in range(seeds):
        for _, view in weights.named(seed):
            view += 0.3 * np.random.default_rng(seed + 100).standard_normal(view.shape)
    return weights


def random_samples(actions: ActionDistribution, seed: int, *, rows: int = ROWS, dtype: Any = np.float64) -> Samples:
    """Return samples of one seed, with actions that could have been drawn."""
    generator = np.random.default_rng(seed)
    inputs = generator.standard_normal((1, rows, INPUTS + 1))
    inputs[..., -1] = 1
    head = generator.standard_normal((1, actions.num_outputs, rows))
    weights = Weights(shape_of(actions), dtype=np.float64)
    choices = actions.sample(head, weights.log_std, actions.noise(generator, head.shape, np.float64))
    numbers = [generator.standard_normal((1, rows)) for _ in range(4)]
    numbers[0] = numbers[0] * 0.3 - 1.5
    parts = [inputs, actions.encode(choices, np.float64), *numbers]
    return Samples(*(np.asarray(part, dtype=dtype) for part in parts), action_masks=None)


def torch_loss(
    parameters: dict[str, torch.Tensor], space: Any, activation: str, part: Samples, algo: Ppo, clip_range: float
) -> torch.Tensor:
    """Return SB3's loss, from parameters under SB3's names."""
    inputs = torch.tensor(part.inputs[0, :, :-1])
    outputs = {}
    for net, head in (("policy", "action"), ("value", "value")):
        units = inputs
        layers = sorted(int(name.split(".")[2]) for name in parameters if f"{net}_net" in name and "weight" in name
                        and "extractor" in name)  # fmt: skip
        for layer in layers:
            weight, bias = (parameters[f"mlp_extractor.{net}_net.{layer}.{kind}"] for kind in ("weight", "bias"))
            units = ACTIVATIONS[activation](units @ weight.T + bias)
        outputs[head] = units @ parameters[f"{head}_net.weight"].T + parameters[f"{head}_net.bias"]
    targets, logits = torch.tensor(part.actions[0]), outputs["action"]
    if part.action_masks is not None:
        logits = torch.where(torch.tensor(part.action_masks[0]), logits, torch.tensor(-1e8, dtype=logits.dtype))
    if isinstance(space, spaces.Box):
        normal = Normal(logits, parameters["log_std"].exp())
        log_prob, entropy = normal.log_prob(targets).sum(1), normal.entropy().sum(1)
    elif isinstance(space, spaces.MultiBinary) and part.action_masks is None:
        bits = Bernoulli(logits=logits)
        log_prob, entropy = bits.log_prob(targets).sum(1), bits.entropy().sum(1)
    else:
        sizes = (
            [space.n]
            if isinstance(space, spaces.Discrete)
            else list(getattr(space, "nvec", [2] * (logits.shape[1] // 2)))
        )
        dials = [Categorical(logits=each) for each in logits.split([int(size) for size in sizes], dim=1)]
        picked = [each.argmax(1) for each in targets.split([int(size) for size in sizes], dim=1)]
        log_prob = torch.stack([dial.log_prob(choice) for dial, choice in zip(dials, picked, strict=True)]).sum(0)
        entropy = torch.stack([dial.entropy() for dial in dials]).sum(0)
    advantages, returns, old = (torch.tensor(each[0]) for each in (part.advantages, part.returns, part.values))
    ratio = torch.exp(log_prob - torch.tensor(part.log_probs[0]))
    surrogate = torch.min(advantages * ratio, advantages * torch.clamp(ratio, 1 - clip_range, 1 + clip_range)).mean()
    values = outputs["value"].flatten()
    if algo.clip_range_value is not None:
        values = old + torch.clamp(values - old, -algo.clip_range_value, algo.clip_range_value)
    value_loss = torch.nn.functional.mse_loss(returns, values)
    return -surrogate - algo.entropy_coef * entropy.mean() + algo.value_coef * value_loss


def compare_gradients(space: Any, part: Samples, shape: NetworkShape, algo: Ppo, *, is_masked: bool = False) -> None:
    actions = distribution_for(space, has_masks=is_masked)
    weights = random_weights(shape)
    update = PpoUpdate(weights, actions, algo)
    figures = update.compute_gradients(part, clip_range=0.2)
    parameters = {name: torch.tensor(array, requires_grad=True) for name, array in weights.arrays().items()}
    loss = torch_loss(parameters, space, shape.activation, part, algo, 0.2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert update.loss(tuple(float(figure[0]) for figure in figures)) == pytest.approx(loss.item(), rel=1e-6)
    ours = update.gradients.arrays()
    for name, parameter in parameters.items():
        assert parameter.grad is not None, name
        np.testing.assert_allclose(ours[name], parameter.grad.numpy(), rtol=1e-6, atol=2e-7, err_msg=name)
    assert any(np.abs(array).max() > 1e-3 for array in ours.values())


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", SPACES)
def test_gradients_are_autograds(kind: str, option: str) -> None:
    actions = distribution_for(SPACES[kind])
    part = random_samples(actions, 3)
    compare_gradients(SPACES[kind], part, shape_of(actions), settings(**OPTIONS[option]))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_are_autograds_with_every_activation(activation: str) -> None:
    actions = distribution_for(SPACES["discrete"])
    part = random_samples(actions, 4)
    compare_gradients(SPACES["discrete"], part, shape_of(actions, activation=activation), settings())


@pytest.mark.parametrize("hidden", [(), (4,), (3, 8, 5)])
def test_gradients_are_autograds_at_every_depth(hidden: tuple[int, ...]) -> None:
    actions = distribution_for(SPACES["box"])
    compare_gradients(SPACES["box"], random_samples(actions, 5), shape_of(actions, hidden=hidden), settings())


@pytest.mark.parametrize("kind", ["discrete", "dials", "bits"])
def test_gradients_are_autograds_with_masks(kind: str) -> None:
    actions = distribution_for(SPACES[kind], has_masks=True)
    part = random_samples(actions, 6)
    masks = (part.actions == 1) | (np.random.default_rng(7).random(part.actions.shape) >= 0.4)
    masked = Samples(**{**vars(part), "action_masks": masks})
    compare_gradients(SPACES[kind], masked, shape_of(actions), settings(entropy_coef=0.1), is_masked=True)


def test_advantages_are_normalised_minibatch_by_minibatch_as_torch_does() -> None:
    values = np.random.default_rng(0).standard_normal((2, 3, 8)) * 5 + 2
    ours = values.copy()
    normalize_advantages(ours)
    for mine, theirs in zip(ours.reshape(6, 8), values.reshape(6, 8), strict=True):
        tensor = torch.tensor(theirs)
        np.testing.assert_allclose(mine, ((tensor - tensor.mean()) / (tensor.std() + 1e-8)).numpy(), rtol=1e-12)


REPLAYED: dict[str, dict[str, Any]] = {
    "discrete": {},
    "box": {"env": {"id": "Pendulum-v1"}},
    "bits": {"env": {"id": f"{TOYS}:Switches"}, "entropy_coef": 0.01},
    "dials": {"env": {"id": f"{TOYS}:Dials"}},
    "masks": {"algorithm": "maskable_ppo", "entropy_coef": 0.01},
    "value clipping": {"clip_range_value": 0.1},
    "raw advantages": {"normalize_advantage": False},
    "early stop": {"env": {"id": "Pendulum-v1"}, "target_kl": 0.02, "learning_rate": 0.02, "update_epochs": 6},
}


@pytest.mark.parametrize("name", REPLAYED)
def test_an_update_of_sb3_replayed_gives_the_same_parameters_and_figures(name: str, tmp_path: Path) -> None:
    experiment = tiny(**{"rollout_steps": 32, "policy": {"hidden_sizes": [8, 8]}, **REPLAYED[name]})
    sb3 = Sb3Learner(experiment, root=tmp_path, seed=0)
    sb3.begin()
    algorithm: Any = sb3.algorithm
    is_masked = "mask" in experiment.algo.name
    actions = distribution_for(sb3.env.action_space, has_masks=is_masked)
    weights = fast_weights(sb3, actions)
    adam = Adam(weights)
    update = PpoUpdate(weights, actions, cast("Ppo", experiment.algo))
    for iteration in range(3):
        algorithm.collect_rollouts(
            algorithm.env, sb3_loop.Callback(sb3, cast("Any", Silent())), algorithm.rollout_buffer, algorithm.n_steps
        )
        weights.load(training_state.policy_arrays(algorithm), where="here")
        algorithm._current_progress_remaining = 1 - iteration / 10
        np.random.seed(iteration)
        algorithm.train()
        samples = sb3_samples(algorithm.rollout_buffer, actions, is_masked=is_masked)
        generators: Any = {0: np.random.RandomState(iteration)}
        rate, clip = algorithm.policy.optimizer.param_groups[0]["lr"], sb3.log.values["train/clip_range"]
        losses = update.run(samples, adam, generators, learning_rate=rate, clip_range=clip)[0]
        compare_to_sb3(sb3, weights, losses)
    sb3.close()
    assert (name == "early stop") == (losses.epochs < experiment.algo.update_epochs)  # type: ignore[union-attr]


class Silent:
    """A session that never asks for a stop."""

    stop_requested = False

    def progress(self, step: int, episode_return: float | None) -> None: ...


def fast_weights(sb3: Sb3Learner, actions: ActionDistribution) -> Weights:
    inputs = sb3.algorithm.policy.features_extractor.features_dim  # type: ignore[operator, union-attr]
    return Weights(NetworkShape(int(inputs), (8, 8), actions.num_outputs, "tanh", actions.has_log_std))


def sb3_samples(buffer: Any, actions: ActionDistribution, *, is_masked: bool) -> Samples:
    """Return SB3's rollout in the order in which it draws its minibatches from it."""

    def rows(array: NDArray[Any]) -> NDArray[Any]:
        flat = array if buffer.generator_ready else buffer.swap_and_flatten(array)
        return flat.reshape(1, len(flat), -1)

    seen = rows(buffer.observations)
    if isinstance(buffer.observation_space, spaces.MultiDiscrete):
        sizes = buffer.observation_space.nvec
        seen = np.concatenate([np.eye(size)[seen[..., i].astype(int)] for i, size in enumerate(sizes)], axis=-1)
    inputs = np.concatenate([seen, np.ones_like(seen[..., :1])], axis=-1).astype(np.float32)
    acted = rows(buffer.actions)
    choices = acted.transpose(0, 2, 1)
    choices = choices if actions.has_log_std else choices.astype(np.int64)
    numbers = [rows(getattr(buffer, name))[..., 0] for name in ("log_probs", "values", "advantages", "returns")]
    masks = rows(buffer.action_masks) != 0 if is_masked else None
    return Samples(inputs, actions.encode(choices, np.float32), *numbers, action_masks=masks)


def compare_to_sb3(sb3: Sb3Learner, weights: Weights, losses: UpdateStats) -> None:
    theirs = training_state.policy_arrays(sb3.algorithm)
    for key, array in weights.arrays().items():
        np.testing.assert_allclose(array, theirs[key], rtol=2e-3, atol=3e-5, err_msg=key)
    logged = {name.removeprefix("train/"): value for name, value in sb3.metrics().items()}
    for key, value in losses.means().items():
        assert value == pytest.approx(logged[key], rel=2e-3, abs=2e-4), key


@pytest.mark.parametrize("kind", SPACES)
def test_a_seed_learns_the_same_alone_and_among_others_to_the_bit(kind: str) -> None:
    actions = distribution_for(SPACES[kind])
    algo = settings(update_epochs=4, target_kl=0.02, entropy_coef=0.01)
    numbers = (0, 1, 2)

    def learn(seeds: tuple[int, ...]) -> tuple[list[dict[str, Any]], list[UpdateStats]]:
        shape = shape_of(actions)
        weights = Weights(shape, seeds=len(seeds))
        weights.initialise([np.random.default_rng(seed) for seed in seeds])
        adam, update = Adam(weights), PpoUpdate(weights, actions, algo)
        generators = {place: np.random.default_rng(seed) for place, seed in enumerate(seeds)}
        for turn in range(3):
            each = [random_samples(actions, 10 * turn + seed, rows=4 * ROWS, dtype=np.float32) for seed in seeds]
            joined = {name: np.concatenate([getattr(one, name) for one in each]) for name in vars(each[0])
                      if name != "action_masks"}  # fmt: skip
            network = NetworkPass(weights, 4 * ROWS)
            network.forward(joined["inputs"])
            joined["log_probs"] = actions.evaluate(network.actor_out, joined["actions"], weights.log_std)[0]
            samples = Samples(**joined, action_masks=None)
            losses = update.run(samples, adam, generators, learning_rate=0.015, clip_range=0.2)
        return [weights.arrays(index) for index in range(len(seeds))], list(losses.values())

    together, all_losses = learn(numbers)
    assert kind != "box" or len({len(losses.minibatches) for losses in all_losses}) > 1, (
        "none stopped before the others"
    )
    for index, number in enumerate(numbers):
        alone, losses = learn((number,))
        assert losses[0].minibatches == all_losses[index].minibatches
        for name, array in alone[0].items():
            np.testing.assert_array_equal(array, together[index][name], err_msg=name)
