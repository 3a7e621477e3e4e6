"""Every recipe keeps its claims at its smallest size, and agrees with torch where torch can say."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from rlx.design.recipe_index import FOLDER, NEEDS_TORCH, recipe_names, recipe_path, recipe_title, run_recipe
from rlx.design.recipes.recipe_claim import at_least, at_most
from rlx.errors import NotFound


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_keeps_its_claims(name: str) -> None:
    result = run_recipe(name, scale=0.0)
    assert result.claims
    assert [claim for claim in result.claims if not claim.holds] == []


def test_a_claim_fails_on_the_wrong_side_of_its_limit() -> None:
    assert not at_least("x", 1.0, 2.0).holds
    assert not at_most("x", 2.0, 1.0).holds
    assert not at_most("x", float("nan"), 1.0).holds


def test_every_file_is_registered_and_says_what_it_needs() -> None:
    files = {path for room in FOLDER.iterdir() if room.is_dir() for path in room.glob("[a-z]*.py")}
    assert files == {recipe_path(name) for name in recipe_names()}
    for name in recipe_names():
        tree = ast.parse(recipe_path(name).read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert ("torch" in imported) == (name in NEEDS_TORCH), name
        assert len(recipe_title(name)) > 20


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(NotFound) as error:
        recipe_path("qmixx")
    assert "qmix" in str(error.value.hint)


def test_the_squashed_density_is_that_of_torch() -> None:
    import torch
    from torch.distributions import Normal, TanhTransform, TransformedDistribution

    from rlx.design.recipes.networks.gaussian_actor import log_density

    raw = np.linspace(-3, 3, 25)[:, None]
    reference = TransformedDistribution(Normal(0.3, 0.7), [TanhTransform()])
    expected = reference.log_prob(torch.tanh(torch.tensor(raw))).numpy()[:, 0]
    ours = log_density(raw, np.full_like(raw, 0.3), np.full_like(raw, np.log(0.7)))
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_the_ppo_gradient_is_that_of_torch() -> None:
    import torch

    from rlx.design.recipes.networks.ppo_losses import CLIP, ENTROPY, policy_loss

    rng = np.random.default_rng(3)
    logits = rng.normal(size=(6, 4))
    states = rng.integers(6, size=50)
    actions = rng.integers(4, size=50)
    old = np.log(rng.uniform(0.1, 0.6, size=50))
    advantages = rng.normal(size=50)
    ours, gradient = policy_loss(logits, states, actions, old, advantages)
    table = torch.tensor(logits, requires_grad=True)
    chances = table[states].log_softmax(dim=1)
    ratio = (chances[torch.arange(50), torch.tensor(actions)] - torch.tensor(old)).exp()
    signed = torch.tensor(advantages)
    surrogate = torch.minimum(ratio * signed, ratio.clamp(1 - CLIP, 1 + CLIP) * signed)
    entropy = -(chances.exp() * chances).sum(dim=1)
    loss = -surrogate.mean() - ENTROPY * entropy.mean()
    loss.backward()
    assert table.grad is not None
    assert float(loss.detach()) == pytest.approx(ours, abs=1e-12)
    np.testing.assert_allclose(gradient, table.grad.numpy(), atol=1e-12)


def test_the_network_gradient_is_that_of_torch() -> None:
    import torch

    from rlx.design.recipes.networks.integrated_gradients import SmallNetwork

    network = SmallNetwork(5, seed=1)
    inputs = torch.tensor(np.random.default_rng(0).normal(size=5), requires_grad=True)
    value = torch.tanh(inputs @ torch.tensor(network.first)) @ torch.tensor(network.second)
    value.backward()
    assert inputs.grad is not None
    np.testing.assert_allclose(network.gradient(inputs.detach().numpy()), inputs.grad.numpy(), atol=1e-12)


def test_the_multi_agent_environment_passes_pettingzoos_own_test() -> None:
    testing = pytest.importorskip("pettingzoo.test")
    pettingzoo = pytest.importorskip("pettingzoo")
    from rlx.design.recipes.worlds.pettingzoo_checks import MeetOnLine

    class Registered(MeetOnLine, pettingzoo.ParallelEnv):  # type: ignore[misc, name-defined]
        """The recipe's environment as a real ParallelEnv."""

    testing.parallel_api_test(Registered(), num_cycles=50)


def test_the_two_step_game_passes_pettingzoos_own_test() -> None:
    testing = pytest.importorskip("pettingzoo.test")
    pettingzoo = pytest.importorskip("pettingzoo")
    from rlx.design.recipes.worlds.pettingzoo_checks import check_parallel
    from rlx.design.recipes.worlds.qmix import TwoStepGame

    class Registered(TwoStepGame, pettingzoo.ParallelEnv):  # type: ignore[misc, name-defined]
        """The game as a real ParallelEnv."""

    testing.parallel_api_test(Registered(), num_cycles=50)
    assert check_parallel(TwoStepGame()) == set()


def test_the_turn_based_checks_accept_what_pettingzoo_makes_of_the_environment() -> None:
    pettingzoo = pytest.importorskip("pettingzoo")
    conversions = pytest.importorskip("pettingzoo.utils.conversions")
    from rlx.design.recipes.worlds.pettingzoo_checks import MeetOnLine, check_aec

    class Registered(MeetOnLine, pettingzoo.ParallelEnv):  # type: ignore[misc, name-defined]
        """The recipe's environment as a real ParallelEnv."""

    for seed in range(5):
        assert check_aec(conversions.parallel_to_aec(Registered()), seed=seed) == set()


def test_exploitability_is_that_of_open_spiel() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    from open_spiel.python import policy
    from open_spiel.python.algorithms import exploitability as reference

    from rlx.design.recipes.worlds.exploitability import CfrPlus, exploitability, information_sets

    solver = CfrPlus()
    for iteration in range(1, 4):
        solver.iterate(float(iteration))
    uniform = {key: np.full(2, 0.5) for key in information_sets()}
    game = pyspiel.load_game("kuhn_poker")
    for strategy in (uniform, solver.average()):
        table = policy.TabularPolicy(game)
        for key, chances in strategy.items():
            table.policy_for_key(key)[:] = chances
        assert exploitability(strategy) == pytest.approx(reference.exploitability(game, table), abs=1e-9)


def test_integrated_gradients_are_those_of_captum() -> None:
    import torch

    attr = pytest.importorskip("captum.attr")
    from rlx.design.recipes.networks.integrated_gradients import SmallNetwork, attributions

    network = SmallNetwork(5, seed=2)
    first = torch.tensor(network.first)
    second = torch.tensor(network.second)
    inputs = np.random.default_rng(1).normal(size=5)
    explainer = attr.IntegratedGradients(lambda rows: torch.tanh(rows @ first) @ second)
    expected = explainer.attribute(torch.tensor(inputs)[None], n_steps=400)[0].numpy()
    ours = attributions(network, inputs, np.zeros(5), steps=400)
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_the_expectiles_of_iql_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    from rlx.design.recipes.from_data.iql import expectile

    rng = np.random.default_rng(4)
    values = rng.normal(size=20)
    weights = rng.integers(1, 5, size=20).astype(float)
    for tau in (0.1, 0.5, 0.9):
        expected = stats.expectile(values, alpha=tau, weights=weights)
        assert expectile(values, weights, tau=tau) == pytest.approx(expected, abs=1e-8)


def test_the_conservative_term_of_cql_is_the_gradient_of_torch() -> None:
    """Without a temporal difference one sweep moves the values down the gradient of E[log Σ exp Q − Q(data)]."""
    import torch

    from rlx.design.recipes.from_data.cql import mixed_data, q_learning
    from rlx.design.recipes.small_worlds import grid

    mdp = grid(3, slip=0.1)
    data = mixed_data(mdp, np.random.default_rng(0), episodes=5)
    start = q_learning(mdp, data, conservatism=0.0, sweeps=1)
    step = q_learning(mdp, data, conservatism=1.0, sweeps=1) - start
    table = torch.zeros((mdp.states, mdp.actions), dtype=torch.float64, requires_grad=True)
    losses = [
        torch.logsumexp(table[state], dim=0) - torch.stack([table[state, row.action] for row in rows]).mean()
        for state in range(mdp.states)
        if (rows := [row for row in data if row.state == state])
    ]
    torch.stack(losses).sum().backward()
    assert table.grad is not None
    np.testing.assert_allclose(step, -table.grad.numpy(), atol=1e-12)


def test_the_discriminator_of_gail_learns_as_with_torchs_loss() -> None:
    """Its gradient is that of the binary cross-entropy, and its reward is log D."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

    from rlx.design.recipes.from_data.gail import discriminator_gradient, reward_of

    rng = np.random.default_rng(5)
    wanted, shown = rng.dirichlet(np.ones(12), size=2).reshape(2, 3, 4)
    logits = rng.normal(size=(3, 4))
    table = torch.tensor(logits, requires_grad=True)
    loss = binary_cross_entropy_with_logits(table, torch.ones(3, 4), weight=torch.tensor(wanted), reduction="sum")
    loss = loss + binary_cross_entropy_with_logits(
        table, torch.zeros(3, 4), weight=torch.tensor(shown), reduction="sum"
    )
    loss.backward()
    assert table.grad is not None
    np.testing.assert_allclose(discriminator_gradient(logits, wanted, shown), -table.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(reward_of(logits), logsigmoid(torch.tensor(logits)).numpy(), atol=1e-12)


def test_the_reward_models_fit_is_a_step_of_torch() -> None:
    import torch
    from torch.nn.functional import logsigmoid

    from rlx.design.recipes.from_data.reward_model import RewardModel, pairs

    rng = np.random.default_rng(6)
    winners, losers = pairs(rng, 30, rng.normal(size=5))
    model = RewardModel(5)
    model.weights = 0.1 * rng.normal(size=5)
    weights = torch.tensor(model.weights, requires_grad=True)
    gaps = [torch.tanh(torch.tensor(side) @ weights).sum(dim=1) for side in (winners, losers)]
    loss = -logsigmoid(gaps[0] - gaps[1]).mean() + 0.5e-3 * (weights**2).sum()
    loss.backward()
    assert weights.grad is not None
    expected = model.weights - 0.5 * weights.grad.numpy()
    model.fit(winners, losers, steps=1, rate=0.5)
    np.testing.assert_allclose(model.weights, expected, atol=1e-12)


def test_running_statistics_are_those_of_stable_baselines3() -> None:
    running = pytest.importorskip("stable_baselines3.common.running_mean_std")
    from rlx.design.recipes.networks.running_statistics import RunningStatistics

    rng = np.random.default_rng(7)
    ours = RunningStatistics(3)
    theirs = running.RunningMeanStd(epsilon=0.0, shape=(3,))
    for size in (5, 1, 40, 7):
        batch = rng.normal([5.0, 0.0, -3.0], [2.0, 0.1, 50.0], size=(size, 3))
        ours.update(batch)
        theirs.update(batch)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-9)
    np.testing.assert_allclose(ours.variance, theirs.var, rtol=1e-9)


def test_advantages_are_those_of_stable_baselines3() -> None:
    buffers = pytest.importorskip("stable_baselines3.common.buffers")
    import torch
    from gymnasium import spaces

    from rlx.design.recipes.networks.ppo_losses import gae

    rng = np.random.default_rng(8)
    steps = 30
    rewards = rng.normal(size=steps)
    values = rng.normal(size=steps + 1)
    ended = rng.random(steps) < 0.2
    space = spaces.Box(-1, 1, (1,))
    buffer = buffers.RolloutBuffer(steps, space, space, gae_lambda=0.9, gamma=0.97)
    for step in range(steps):
        is_start = np.array([step == 0 or bool(ended[step - 1])])
        value = torch.tensor([[values[step]]], dtype=torch.float32)
        nothing = np.zeros((1, 1), np.float32)
        buffer.add(nothing, nothing, rewards[step : step + 1], is_start, value, torch.zeros(1))
    buffer.compute_returns_and_advantage(torch.tensor([[values[-1]]]), ended[-1:])
    ours = gae(rewards, values, ended, gamma=0.97, lam=0.9)
    np.testing.assert_allclose(ours, buffer.advantages[:, 0], atol=1e-5)


def test_the_interquartile_mean_is_the_trimmed_mean_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    from rlx.design.recipes.measuring.interquartile_mean import interquartile_mean

    scores = np.random.default_rng(9).normal(size=(6, 12))
    np.testing.assert_allclose(interquartile_mean(scores), stats.trim_mean(scores, 0.25, axis=-1), rtol=1e-12)
