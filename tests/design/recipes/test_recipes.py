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
