"""The policy of a team: an agent acts on its own view only, and the critic sees all views or each one alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gymnasium import spaces

from rlx.errors import ConfigError
from rlx.train.backends.sb3.team_policy import TeamPolicy

SEEN = spaces.Box(-1, 1, (6,))


def policy(critic: Any, agents: int = 2) -> TeamPolicy:
    torch.manual_seed(0)
    made = TeamPolicy(
        SEEN, spaces.MultiDiscrete([3] * agents), lambda _: 1e-3, agents=agents, critic=critic, net_arch=[8]
    )
    for parameter in made.parameters():  # the last layer starts near 0
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def logits(made: TeamPolicy, seen: torch.Tensor) -> torch.Tensor:
    distributions: Any = made.get_distribution(seen).distribution
    return torch.cat([part.logits for part in distributions], dim=1)


@pytest.mark.parametrize("critic", ["central", "local"])
def test_what_one_agent_sees_does_not_change_the_others_action(critic: str) -> None:
    made = policy(critic)
    seen = torch.zeros(1, 6)
    other = seen.clone()
    other[0, 3:] = 1.0  # only the second agent sees a difference
    before = logits(made, seen)
    after = logits(made, other)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])
    assert not torch.allclose(made.predict_values(seen), made.predict_values(other))


def test_the_agents_share_one_network_and_know_their_number() -> None:
    made = policy("local")
    seen = torch.ones(1, 6)
    found = logits(made, seen)
    assert not torch.allclose(found[:, :3], found[:, 3:])
    shapes = [tuple(parameter.shape) for parameter in made.mlp_extractor.actor.parameters()]  # type: ignore[union-attr]
    assert shapes == [(8, 5), (8,)]  # three numbers, and two for the agent


def test_every_parameter_is_trained() -> None:
    made = policy("central")
    trained = {id(parameter) for group in made.optimizer.param_groups for parameter in group["params"]}
    assert {id(parameter) for parameter in made.parameters()} == trained


def test_views_of_different_sizes_are_refused() -> None:
    with pytest.raises(ConfigError, match="4 agents"):
        policy("central", agents=4)
    with pytest.raises(ConfigError, match="shared"):
        policy("shared")
